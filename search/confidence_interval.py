"""The confidence interval of a mean over seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.special import stdtrit  # scipy.stats takes half a second to import

CONFIDENCE = 0.95
"""Coverage of every interval (App. A.2)."""


def t_interval(scores: Sequence[float]) -> tuple[float, float] | None:
    """95 % t-interval of the mean (App. A.2): mean ± t(0.975, n - 1) s / √n, not clipped.

    Returns:
        (low, high); of zero width where all scores are equal; both infinite where one is; None
        where there are fewer than two.
    """
    n = len(scores)
    if n < 2:
        return None
    if min(scores) == max(scores):
        return scores[0], scores[0]
    mean = math.fsum(scores) / n
    if math.isinf(mean):
        return mean, mean
    error = math.sqrt(math.fsum((score - mean) ** 2 for score in scores) / (n - 1) / n)
    low, high = (stdtrit(n - 1, (1 + side * CONFIDENCE) / 2) for side in (-1, 1))
    return float(low * error + mean), float(high * error + mean)
