"""How a run of model ``transformer`` learns, by autograd: the oracle.

Sec. 7.3: AdamW on the cross-entropy of a batch drawn on the fly; a run's scores are
its best validation accuracy and the test accuracy of the same weights.
"""

from __future__ import annotations

import torch
from torch.nn import Parameter
from torch.nn.functional import cross_entropy

from rgr_dist.engines.api import Outcome, StopReason
from rgr_dist.engines.reference.trainer import Trainer
from rgr_dist.models.transformer import block_logits, count_answers, superpose
from rgr_dist.problem.matching_task import Examples, MatchingTask, initial_block
from rgr_dist.study.run import Run

AT_ONCE = 250
"""Examples scored at once; this bounds memory and does not affect the result."""


class BlockTrainer(Trainer):
    """One run: its task, its parameters, and a copy of the best ones so far."""

    def __init__(self, run: Run, dtype: torch.dtype) -> None:
        self.task = MatchingTask.of(run.cell, run.seed)
        self.E = torch.tensor(self.task.table, dtype=dtype)
        block = initial_block(run).items()
        theta = {name: Parameter(torch.from_numpy(value).to(dtype)) for name, value in block}
        super().__init__(run, theta)
        self.best, self.best_weights = -1.0, self.weights()

    def logits(self, examples: torch.Tensor) -> torch.Tensor:
        """Logits of every answer, [n, m + 1]."""
        return block_logits(superpose(self.E, examples), self.E, self.theta, self.run.h)

    def loss(self, index: int) -> torch.Tensor:
        """The mean cross-entropy of training batch ``index``."""
        batch = torch.from_numpy(self.task.training_batches(index, 1)[0]).long()
        return cross_entropy(self.logits(batch), batch[:, -1])

    def score(self, examples: Examples) -> tuple[float, float]:
        """Accuracy over a set of examples, and the share that was answered with NULL."""
        right = null = 0
        with torch.no_grad():
            for part in torch.from_numpy(examples).long().split(AT_ONCE):
                counts = count_answers(self.logits(part), part[:, -1])
                right, null = right + counts[0], null + counts[1]
        return right / len(examples), null / len(examples)

    def check(self) -> float:
        """The validation accuracy; keeps a copy of the first weights that reach the best one."""
        accuracy, _ = self.score(self.task.validation)
        if accuracy > self.best:
            self.best, self.best_weights = accuracy, self.weights()
        return accuracy

    def outcome(self, steps: int, stop_reason: StopReason, val_score: float) -> Outcome:
        """How the run ended; its scores are those of its best weights."""
        with torch.no_grad():
            for name, p in self.theta.items():
                p.copy_(torch.from_numpy(self.best_weights[name]))
        score, null_rate = self.score(self.task.test)
        return Outcome(
            steps=steps,
            stop_reason=stop_reason,
            score=score,
            val_score=self.best,
            null_rate=null_rate,
        )
