"""The oracle: autograd and ``torch.optim.AdamW``, one step after another, never optimised."""

from __future__ import annotations

import math

import torch
from torch.nn import Parameter
from torch.optim import Optimizer
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, LRScheduler

from rgr_dist.engines.api import Lane, LaneEngine, Outcome, Weights
from rgr_dist.engines.checks import StopReason
from rgr_dist.engines.make_task import make_task
from rgr_dist.engines.schedule import BETA_1, BETA_2, EPSILON
from rgr_dist.study.run import Run
from rgr_dist.study.training import Training


class AutogradLane(Lane):
    """A run in torch.

    Args:
        anew: whether to run the file of its layer again.

    Attributes:
        theta: the parameters by name.
    """

    def __init__(
        self, run: Run, device: torch.device, dtype: torch.dtype, anew: bool = False
    ) -> None:
        training = run.cell.training
        self.run, self.steps, self.task = run, 0, make_task(run, device, dtype, anew)
        self.theta: dict[str, torch.Tensor] = {
            name: p if isinstance(p, Parameter) else Parameter(p)
            for name, p in self.task.theta.items()
        }
        self.optimizer = torch.optim.AdamW(
            self.theta.values(),
            lr=training.learning_rate,
            betas=(BETA_1, BETA_2),
            eps=EPSILON,
            weight_decay=training.weight_decay or 0.0,
        )
        self.schedule = make_schedule(self.optimizer, training)

    def advance(self, steps: int) -> None:
        """Take ``steps`` training steps down the autograd gradient."""
        end = self.steps + steps
        while self.steps < end:
            count = min(self.task.block, end - self.steps)
            for batch in zip(*self.task.batches(self.steps, count), strict=True):
                loss = self.task.loss(self.theta, self.task.data, batch)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                if self.schedule is not None:
                    self.schedule.step()
            self.steps += count

    def check(self, above: float | None) -> float | None:
        """The validation score; NaN if a parameter is not finite."""
        if not all(bool(torch.isfinite(p).all()) for p in self.theta.values()):
            return math.nan
        return self.task.check(self.theta, above)

    def outcome(self, stop_reason: StopReason, val_score: float | None) -> Outcome:
        """How the run ended, with its test score."""
        return self.task.outcome(
            self.theta, steps=self.steps, stop_reason=stop_reason, val_score=val_score
        )

    def weights(self) -> Weights:
        """A copy of the parameters, by name."""
        return {name: p.detach().cpu().numpy().copy() for name, p in self.theta.items()}


class ReferenceEngine(LaneEngine):
    """The paper's loop in plain PyTorch."""

    name = "reference"

    def __init__(self, dtype: torch.dtype = torch.float32) -> None:
        self.dtype = dtype

    def lane(self, run: Run) -> AutogradLane:
        """A lane on the CPU."""
        return AutogradLane(run, torch.device("cpu"), self.dtype)


def make_schedule(optimizer: Optimizer, training: Training) -> LRScheduler | None:
    """Torch's scheduler for this schedule, to be stepped after each step; None if constant."""
    if training.schedule == "warmup":
        first, rising = 1 / training.warmup_steps, training.warmup_steps - 1
        return LinearLR(optimizer, start_factor=first, total_iters=rising)
    if training.schedule == "cosine":
        return CosineAnnealingLR(optimizer, T_max=training.max_steps)
    return None
