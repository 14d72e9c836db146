"""The schedules of the learning rate as torch has them: what ``engines.schedule`` is held to."""

from __future__ import annotations

from torch.optim import Optimizer
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, LRScheduler

from rgr_dist.study.training import Training


def make_schedule(optimizer: Optimizer, training: Training) -> LRScheduler | None:
    """The schedule, to be stepped after each step of the optimiser; None if it is constant."""
    if training.schedule == "warmup":
        first, rising = 1 / training.warmup_steps, training.warmup_steps - 1
        return LinearLR(optimizer, start_factor=first, total_iters=rising)
    if training.schedule == "cosine":
        return CosineAnnealingLR(optimizer, T_max=training.max_steps)
    return None
