"""The loop of model ``facts`` in plain PyTorch, one run at a time: the oracle, never optimised.

Token by token: AdamW on the autograd gradient of the mean cross-entropy of a batch of triples, a
check every ``check_every`` steps on all of them, stop once each is right.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from rgr_dist.engines.api import BlockWeights, Outcome, StopReason
from rgr_dist.engines.facts_outcome import facts_outcome
from rgr_dist.engines.reference.one_by_one import OneByOne, Trainer
from rgr_dist.engines.reference.schedule import make_schedule
from rgr_dist.models.facts import right_by_argmax, right_by_softmax, token_logits
from rgr_dist.problem.facts_task import FactsTask, initial_facts, trained_names
from rgr_dist.study.cell import Run


class FactsTrainer(Trainer[BlockWeights]):
    """One run: its task, parameters and optimiser."""

    def __init__(self, run: Run, dtype: torch.dtype) -> None:
        self.run = run
        self.task = FactsTask.of(run.cell, run.seed)
        trained = trained_names(run.cell)
        self.theta = {
            name: torch.nn.Parameter(torch.from_numpy(value).to(dtype), name in trained)
            for name, value in initial_facts(run).items()
        }
        training = run.cell.training
        self.optimizer = torch.optim.AdamW(
            [self.theta[name] for name in trained],
            lr=training.learning_rate,
            weight_decay=training.weight_decay or 0.0,
        )
        self.schedule = make_schedule(self.optimizer, training)

    def logits(self, triples: torch.Tensor) -> torch.Tensor:
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

    def weights(self) -> BlockWeights:
        """The parameters as they are."""
        return {name: p.detach().numpy().copy() for name, p in self.theta.items()}


class FactsReference(OneByOne[BlockWeights]):
    """Trains every run until each triple is right."""

    def trainer(self, run: Run) -> FactsTrainer:
        """A run at its start."""
        return FactsTrainer(run, self.dtype)

    def train_one(self, run: Run) -> Outcome:
        """Train a run until each triple is right."""
        started = time.perf_counter()
        trainer, training = self.trainer(run), run.cell.training
        stop_reason: StopReason = "max_steps"
        steps = 0
        while steps < training.max_steps:
            trainer.step(steps)
            steps += 1
            if steps % training.check_every and steps < training.max_steps:
                continue
            if not all(np.isfinite(value).all() for value in trainer.weights().values()):
                seconds = time.perf_counter() - started
                return Outcome(None, None, None, steps, "diverged", seconds)
            if trainer.accuracies()[run.cell.facts.score] == 1:
                stop_reason = "converged"
                break
        weights, accuracies = trainer.weights(), trainer.accuracies()
        outcome = facts_outcome(trainer.task, run, weights, accuracies, steps, stop_reason)
        return replace(outcome, seconds=time.perf_counter() - started)
