"""Which arm is the best, and which are near it."""

from __future__ import annotations

import math

from rgr_dist.search.probe_verdict import decimal


def rank(
    cost: float, mean_score: float | None, arm: int, minimise: bool = False
) -> tuple[float, float, int]:
    """Sort key of an arm, smallest for the best: least cost, then better mean, then smallest arm.

    Args:
        mean_score: at that cost; None if not known, which ranks last.
        minimise: lower scores are better.
    """
    loss = math.inf if mean_score is None else mean_score if minimise else -mean_score
    return cost, loss, arm


def largest_kept(best_cost: int, arm: int, keep_within: float) -> int:
    """The largest value at which an arm is still near the best one; 0 if none is.

    A value is near if its cost is at most ``keep_within``, read as a decimal number, above the
    best, or if it is one step above the largest value that costs no more than the best: where a
    step is larger than the share, arms cannot be compared more finely than by a step.
    """
    share = decimal(keep_within)
    within = best_cost * (share.numerator + share.denominator) // share.denominator // arm
    no_dearer = best_cost // arm
    return max(within, no_dearer + 1 if no_dearer else 0)
