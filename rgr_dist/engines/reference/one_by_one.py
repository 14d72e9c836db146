"""What the oracles share: one run after another, by steps of PyTorch's own AdamW."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

import torch
from torch.optim.lr_scheduler import LRScheduler

from rgr_dist.engines.api import BlockWeights, Outcome, Weights, train_apart
from rgr_dist.study.cell import Run

W = TypeVar("W", Weights, BlockWeights)


class Trainer(ABC, Generic[W]):
    """One run in training.

    Attributes:
        optimizer, schedule: of its parameters.
    """

    optimizer: torch.optim.Optimizer
    schedule: LRScheduler | None

    @abstractmethod
    def loss(self, index: int) -> torch.Tensor:
        """The loss of training step ``index``."""

    @abstractmethod
    def weights(self) -> W:
        """The parameters as they are."""

    def step(self, index: int) -> None:
        """One training step, down the autograd gradient."""
        loss = self.loss(index)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        if self.schedule is not None:
            self.schedule.step()


class OneByOne(ABC, Generic[W]):
    """An engine that trains one run after another, as a reader of the paper would write it."""

    name = "reference"

    def __init__(self, dtype: torch.dtype = torch.float32) -> None:
        self.dtype = dtype

    @abstractmethod
    def trainer(self, run: Run) -> Trainer[W]:
        """A run at its start."""

    @abstractmethod
    def train_one(self, run: Run) -> Outcome:
        """How a run ends."""

    def train(self, runs: Sequence[Run]) -> list[Outcome]:
        """Train every run until it stops, test it, and return the outcomes in order."""
        return [self.train_one(run) for run in runs]

    def train_through(self, runs: Sequence[Run], budgets: Sequence[int]) -> list[list[Outcome]]:
        """Train every run apart at each budget, and at its own limit."""
        return train_apart(self, runs, budgets)

    def weights_after(self, runs: Sequence[Run], steps: int) -> list[W]:
        """The weights after so many steps, without checks or stopping."""
        result = []
        for run in runs:
            trainer = self.trainer(run)
            for index in range(steps):
                trainer.step(index)
            result.append(trainer.weights())
        return result
