"""The paper's loop in plain PyTorch, one run at a time: the oracle, never optimised.

App. A.1 line by line: a step for each context or batch, a check every ``check_every`` steps, the
end after ``patience`` checks in a row above ``stop_score``, then the test. What a study may add,
``training.give_up_below``, ends a run as it does in every engine.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch

from rgr_dist.engines.api import Engine, Outcome, StopReason, Weights, trained_apart
from rgr_dist.engines.early_stopping import EarlyStop
from rgr_dist.engines.reference.edges import EdgeTrainer
from rgr_dist.engines.reference.facts import FactsTrainer
from rgr_dist.engines.reference.matching import BlockTrainer
from rgr_dist.engines.reference.own_layer import OwnTrainer
from rgr_dist.engines.reference.trainer import Trainer
from rgr_dist.study.run import Run

TRAINERS: Mapping[str, type[EdgeTrainer | FactsTrainer | BlockTrainer | OwnTrainer]] = {
    "edges": EdgeTrainer,
    "facts": FactsTrainer,
    "matching": BlockTrainer,
    "own layer": OwnTrainer,
}
"""Trainers by the task of the run's model."""


class ReferenceEngine(Engine):
    """Trains one run after another, as a reader of the paper would do it."""

    name = "reference"

    def __init__(self, dtype: torch.dtype = torch.float32) -> None:
        self.dtype = dtype

    def train_through(self, runs: Sequence[Run], budgets: Sequence[int]) -> list[list[Outcome]]:
        """Train every run separately at each budget and at its own limit."""
        return [
            trained_apart([*(self._train(run.with_limit(n)) for n in budgets), self._train(run)])
            for run in runs
        ]

    def weights_after(self, runs: Sequence[Run], steps: int) -> list[Weights]:
        """The weights after ``steps`` steps, without checks or early stopping."""
        trainers = [self._trainer(run) for run in runs]
        for trainer in trainers:
            for index in range(steps):
                trainer.step(index)
        return [trainer.weights() for trainer in trainers]

    def _trainer(self, run: Run) -> Trainer:
        return TRAINERS[run.cell.record.task](run, self.dtype)

    def _train(self, run: Run) -> Outcome:
        """Train a run until it stops early or at its limit, and test it."""
        started = time.perf_counter()
        trainer, training, stop = self._trainer(run), run.cell.training, EarlyStop(run.cell)
        stop_reason: StopReason = "max_steps"
        for steps in range(1, training.max_steps + 1):
            trainer.step(steps - 1)
            if steps % training.check_every and steps < training.max_steps:
                continue
            val_score = trainer.check() if trainer.is_finite() else math.inf
            if not math.isfinite(val_score):
                stop_reason = "diverged"
                break
            if stop.after(val_score):
                stop_reason = "converged"
                break
            if steps < training.max_steps and stop.is_hopeless(training.max_steps):
                stop_reason = "given_up"
                break
        if stop_reason == "diverged":
            outcome = Outcome(steps=steps, stop_reason=stop_reason)
        else:
            outcome = trainer.outcome(steps, stop_reason, val_score)
        return replace(outcome, seconds=time.perf_counter() - started)
