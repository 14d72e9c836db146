"""The confidence interval of a mean over seeds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

CONFIDENCE = 0.95
"""Coverage of every interval (App. A.2)."""


def mean(scores: Iterable[float]) -> float:
    """The mean of some scores, also where their sum is more than a float can hold."""
    known = tuple(scores)
    try:
        return math.fsum(known) / len(known)
    except OverflowError:
        return float(sum(map(Fraction, known)) / len(known))


def t_interval(scores: Sequence[float]) -> tuple[float, float] | None:
    """95 % t-interval of the mean (App. A.2): mean ± t(0.975, n - 1) s / √n, not clipped.

    Returns:
        (low, high); of zero width if all scores are equal; both infinite if a score is; without
        ends if the scores lie further apart than a float can say; None if there are fewer than two
        scores.
    """
    n = len(scores)
    if n < 2:
        return None
    if min(scores) == max(scores):
        return scores[0], scores[0]
    middle = mean(scores)
    if math.isinf(middle):
        return middle, middle
    try:
        error = math.sqrt(math.fsum((score - middle) ** 2 for score in scores) / (n - 1) / n)
    except OverflowError:
        return -math.inf, math.inf
    half = t_quantile(n - 1) * error
    return middle - half, middle + half


def t_quantile(degrees: float) -> float:
    """The two-sided quantile of Student's t at ``CONFIDENCE``."""
    from scipy.special import stdtrit  # takes 0.25 s, and not every command has intervals

    return float(stdtrit(degrees, (1 + CONFIDENCE) / 2))
