"""How a run of model ``facts`` learns, token by token and by autograd: the oracle.

AdamW on the autograd gradient of the mean cross-entropy of a batch of triples, scored on all
triples.
"""

from __future__ import annotations

import torch
from torch.nn import Parameter
from torch.nn.functional import cross_entropy

from rgr_dist.engines.api import Outcome, StopReason
from rgr_dist.engines.facts_outcome import facts_outcome
from rgr_dist.engines.reference.trainer import Trainer
from rgr_dist.models.facts import right_by_argmax, right_by_softmax, token_logits
from rgr_dist.problem.facts_task import FactsTask, initial_facts, trained_names
from rgr_dist.study.run import Run


class FactsTrainer(Trainer):
    """One run: its triples and parameters."""

    def __init__(self, run: Run, dtype: torch.dtype) -> None:
        self.task, trained = FactsTask.of(run.cell, run.seed), trained_names(run.cell)
        theta = {
            name: Parameter(torch.from_numpy(value).to(dtype), name in trained)
            for name, value in initial_facts(run).items()
        }
        super().__init__(run, theta)

    def logits(self, triples: torch.Tensor) -> torch.Tensor:
        """Logits of every value for the pairs of the given triples, [n, |V|]."""
        residual = self.run.cell.facts.residual
        return token_logits(triples[:, 0], triples[:, 1], self.theta, self.run.h, residual)

    def loss(self, index: int) -> torch.Tensor:
        """The mean cross-entropy of training batch ``index``."""
        batch = torch.from_numpy(self.task.batch(index)).long()
        return cross_entropy(self.logits(batch), batch[:, 2])

    def accuracies(self) -> dict[str, float]:
        """The shares of the triples that are right by argmax and by softmax≥τ."""
        triples = torch.from_numpy(self.task.triples).long()
        with torch.no_grad():
            logits, tau = self.logits(triples), self.run.cell.facts.tau
            argmax = int(right_by_argmax(logits, triples[:, 2]).sum())
            softmax = int(right_by_softmax(logits, triples[:, 2], tau).sum())
        return {"argmax": argmax / len(triples), "softmax": softmax / len(triples)}

    def check(self) -> float:
        """The accuracy by which the run is judged."""
        return self.accuracies()[self.run.cell.facts.score]

    def outcome(self, steps: int, stop_reason: StopReason, val_score: float) -> Outcome:
        """How the run ended, with what its layer knows."""
        weights, accuracies = self.weights(), self.accuracies()
        return facts_outcome(self.task, self.run, weights, accuracies, steps, stop_reason)
