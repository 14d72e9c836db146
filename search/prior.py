"""Where a threshold is expected: a law fitted to those already found.

A prior moves the first probes, never a result: whatever it says, a bracket ends with the same
pass and fail beside each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rgr_dist.search.confidence_interval import t_quantile

LEAST_SPREAD, LARGEST_SPREAD = 1.15, 2.0
"""Bounds on how far the first steps go: less would creep, more would leap over a doubling."""


def fit_ratio(scales: Sequence[float], found: Sequence[float]) -> tuple[float, float]:
    """The geometric mean of found / scale, and the factor to the end of its prediction interval.

    Args:
        scales: what the law takes each threshold to be proportional to; at least two.
        found: the thresholds.

    Returns:
        The ratio, and the spread of one more observation at 95 %, within its bounds.

    Raises:
        ValueError: fewer than two.
    """
    if len(found) < 2:
        raise ValueError("a spread takes at least two thresholds")
    logs = [math.log(y / x) for x, y in zip(scales, found, strict=True)]
    n = len(logs)
    mean = math.fsum(logs) / n
    variance = math.fsum((value - mean) ** 2 for value in logs) / (n - 1)
    half = t_quantile(n - 1) * math.sqrt(variance * (1 + 1 / n))
    return math.exp(mean), min(max(math.exp(min(half, 1.0)), LEAST_SPREAD), LARGEST_SPREAD)


def fit_power(x: Sequence[float], y: Sequence[float]) -> tuple[float, float] | None:
    """Exponent and factor of y = factor * x ** exponent, least squares of the logarithms.

    Returns:
        None where fewer than three points, or a single x, leave the exponent open.
    """
    if len(x) < 3 or min(x) == max(x):
        return None
    log_x, log_y = (np.array([math.log(value) for value in axis]) for axis in (x, y))
    (square, product), _ = np.cov(log_x, log_y, bias=True)
    slope = float(product / square)
    return slope, math.exp(float(log_y.mean()) - slope * float(log_x.mean()))
