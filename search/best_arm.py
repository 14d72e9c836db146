"""Which arm is the best, and which are near it."""

from __future__ import annotations

import math

from rgr_dist.search.probe_verdict import decimal


def rank(
    cost: float, mean_score: float | None, arm: int, minimise: bool = False
) -> tuple[float, float, int]:
    """The best arm has the smallest of these: least cost, then better mean, then smallest arm.

    Args:
        mean_score: at that cost; None if not known, which is the worst.
        minimise: lower scores are better.
    """
    loss = math.inf if mean_score is None else mean_score if minimise else -mean_score
    return cost, loss, arm


def largest_kept(best_cost: int, arm: int, keep_within: float) -> int:
    """The largest value at which an arm is still near the best one; 0 if none is.

    Near is a cost of at most ``keep_within`` above the best, taken as a decimal number, or one
    step of the arm's value above the largest that is no dearer than the best: where a step is more
    than the share, no comparison is finer than a step.
    """
    share = decimal(keep_within)
    within = best_cost * (share.numerator + share.denominator) // share.denominator // arm
    no_dearer = best_cost // arm
    return max(within, no_dearer + 1 if no_dearer else 0)
