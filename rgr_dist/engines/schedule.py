"""The learning rate of each step under a run's schedule, and the factors of AdamW's steps."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rgr_dist.study.training import Training

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8
"""AdamW's constants; the paper gives none, so these are the defaults of ``torch.optim.AdamW``."""


def learning_rates(training: Training, done: int, count: int) -> npt.NDArray[np.float64]:
    """Learning rates of the next steps.

    Step t, counted from 1, has the rate of ``training`` times min(1, t / warmup_steps) under
    ``warmup``, and times (1 + cos(pi (t - 1) / max_steps)) / 2 under ``cosine``, which would
    reach zero one step after the last.

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


def adamw_factors(training: Training, done: int, count: int) -> npt.NDArray[np.float64]:
    """The factors of AdamW's next steps, float64 [3, count]; t counts steps from 1.

    Learning rate / (1 - beta_1^t), 1 / sqrt(1 - beta_2^t), and the share of a weight after decay.

    Args:
        done: steps taken so far.
    """
    t, rates = np.arange(done + 1, done + count + 1), learning_rates(training, done, count)
    decayed = 1 - rates * (training.weight_decay or 0.0)
    return np.stack([rates / (1 - BETA_1**t), 1 / np.sqrt(1 - BETA_2**t), decayed])
