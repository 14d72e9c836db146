"""The confidence interval behind every table: of a mean over seeds (App. A.2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import stats

CONFIDENCE = 0.95
"""Coverage of every interval in the analysis (App. A.2)."""


def t_interval(scores: Sequence[float]) -> tuple[float, float] | None:
    """95 % t-interval of the mean (App. A.2): mean ± t(0.975, n - 1) s / √n, not clipped to [0, 1].

    Returns:
        (low, high); of zero width where all scores are equal; None for fewer than two scores.
    """
    values = np.asarray(scores, dtype=np.float64)
    n = len(values)
    if n < 2:
        return None
    mean = float(values.mean())
    if not np.isfinite(mean):
        return mean, mean
    if np.ptp(values) == 0:
        return float(values[0]), float(values[0])
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1) * values.std(ddof=1) / np.sqrt(n))
    return mean - half, mean + half
