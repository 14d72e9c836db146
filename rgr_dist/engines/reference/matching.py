"""The transformer's loop in plain PyTorch, one run at a time: the oracle, never optimised.

Sec. 7.3: AdamW on the cross-entropy of a batch drawn on the fly, a fixed number of steps, the
best validation accuracy, and the test accuracy of the same weights.
"""

from __future__ import annotations

import time

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from rgr_dist.engines.api import BlockWeights, Outcome
from rgr_dist.engines.reference.one_by_one import OneByOne, Trainer
from rgr_dist.engines.reference.schedule import make_schedule
from rgr_dist.models.transformer import block_logits, count_answers, superpose
from rgr_dist.problem.matching_task import Examples, MatchingTask, initial_block
from rgr_dist.study.cell import Run

AT_ONCE = 250
"""Examples scored at once; a bound on memory, not part of the result."""


class BlockTrainer(Trainer[BlockWeights]):
    """One run: its task, parameters and optimiser."""

    def __init__(self, run: Run, dtype: torch.dtype) -> None:
        self.run = run
        self.task = MatchingTask.of(run.cell, run.seed)
        self.E = torch.tensor(self.task.table, dtype=dtype)
        self.theta = {
            name: torch.nn.Parameter(torch.from_numpy(value).to(dtype))
            for name, value in initial_block(run).items()
        }
        training = run.cell.training
        self.optimizer = torch.optim.AdamW(
            self.theta.values(),
            lr=training.learning_rate,
            weight_decay=training.weight_decay or 0.0,
        )
        self.schedule = make_schedule(self.optimizer, training)

    def logits(self, examples: torch.Tensor) -> torch.Tensor:
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

    def weights(self) -> BlockWeights:
        """The parameters as they are."""
        return {name: p.detach().numpy().copy() for name, p in self.theta.items()}

    def take(self, weights: BlockWeights) -> None:
        with torch.no_grad():
            for name, p in self.theta.items():
                p.copy_(torch.from_numpy(weights[name]))


class TransformerReference(OneByOne[BlockWeights]):
    """Trains every run to the end and tests its best weights."""

    def trainer(self, run: Run) -> BlockTrainer:
        """A run at its start."""
        return BlockTrainer(run, self.dtype)

    def train_one(self, run: Run) -> Outcome:
        """Train a run to the end; its score is that of its best weights."""
        started = time.perf_counter()
        trainer, training = self.trainer(run), run.cell.training
        best, best_weights = -1.0, trainer.weights()
        for steps in range(1, training.max_steps + 1):
            trainer.step(steps - 1)
            if steps % training.check_every and steps < training.max_steps:
                continue
            if not all(np.isfinite(value).all() for value in trainer.weights().values()):
                seconds = time.perf_counter() - started
                return Outcome(None, None, None, steps, "diverged", seconds)
            accuracy, _ = trainer.score(trainer.task.validation)
            if accuracy > best:
                best, best_weights = accuracy, trainer.weights()
        trainer.take(best_weights)
        score, null_rate = trainer.score(trainer.task.test)
        return Outcome(
            score=score,
            val_score=best,
            tau=None,
            steps=training.max_steps,
            stop_reason="max_steps",
            seconds=time.perf_counter() - started,
            null_rate=null_rate,
        )
