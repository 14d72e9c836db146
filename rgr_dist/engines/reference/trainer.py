"""What the oracles share: a run's parameters, and steps of PyTorch's own AdamW."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import torch
from torch.optim import Optimizer
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, LRScheduler

from rgr_dist.engines.api import Outcome, StopReason, Weights
from rgr_dist.study.run import Run
from rgr_dist.study.training import Training


class Trainer(ABC):
    """One run in training.

    Attributes:
        theta: parameters by name; those that do not require a gradient are frozen.
    """

    def __init__(self, run: Run, theta: Mapping[str, torch.nn.Parameter]) -> None:
        training = run.cell.training
        self.run, self.theta = run, theta
        self.optimizer = torch.optim.AdamW(
            [p for p in theta.values() if p.requires_grad],
            lr=training.learning_rate,
            weight_decay=training.weight_decay or 0.0,
        )
        self.schedule = make_schedule(self.optimizer, training)

    @abstractmethod
    def loss(self, index: int) -> torch.Tensor:
        """The loss of training step ``index``."""

    @abstractmethod
    def check(self) -> float:
        """The validation score, as ``EarlyStop`` takes it."""

    @abstractmethod
    def outcome(self, steps: int, stop_reason: StopReason, val_score: float) -> Outcome:
        """How a run that did not diverge ended, without its ``seconds``."""

    def weights(self) -> Weights:
        """A copy of the current parameters, by name."""
        return {name: p.detach().numpy().copy() for name, p in self.theta.items()}

    def is_finite(self) -> bool:
        """Whether every trained parameter is finite."""
        trained = (p for p in self.theta.values() if p.requires_grad)
        return all(bool(torch.isfinite(p).all()) for p in trained)

    def step(self, index: int) -> None:
        """One training step, down the autograd gradient."""
        loss = self.loss(index)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        if self.schedule is not None:
            self.schedule.step()


def make_schedule(optimizer: Optimizer, training: Training) -> LRScheduler | None:
    """Torch's scheduler for this schedule, to be stepped after each step; None if constant."""
    if training.schedule == "warmup":
        first, rising = 1 / training.warmup_steps, training.warmup_steps - 1
        return LinearLR(optimizer, start_factor=first, total_iters=rising)
    if training.schedule == "cosine":
        return CosineAnnealingLR(optimizer, T_max=training.max_steps)
    return None
