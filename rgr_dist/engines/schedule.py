"""The learning rate of each step, by the schedule of a run."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rgr_dist.study.training import Training


def learning_rates(training: Training, done: int, count: int) -> npt.NDArray[np.float64]:
    """Learning rates of the next steps.

    Step t, counted from 1, has the rate of ``training`` times min(1, t / warmup_steps) under
    ``warmup``, and times (1 + cos(pi (t - 1) / max_steps)) / 2 under ``cosine``, which would be
    zero after the last step.

    Args:
        done: steps taken so far.

    Returns:
        float64 [count].
    """
    before = np.arange(done, done + count, dtype=np.float64)
    share = np.ones(count)
    if training.schedule == "warmup":
        share = np.minimum(1.0, (before + 1) / training.warmup_steps)
    elif training.schedule == "cosine":
        share = (1 + np.cos(np.pi * np.minimum(1.0, before / training.max_steps))) / 2
    return training.learning_rate * share
