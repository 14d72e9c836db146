"""Which arm is the best."""

from __future__ import annotations

import math


def rank(
    cost: int, mean_score: float | None, arm: int, minimise: bool = False
) -> tuple[int, float, int]:
    """The best arm has the smallest of these: least cost, then better mean, then smallest arm.

    Args:
        mean_score: at that cost; None if not known, which is the worst.
        minimise: lower scores are better.
    """
    loss = math.inf if mean_score is None else mean_score if minimise else -mean_score
    return cost, loss, arm
