"""Cells of a known law, with scatter, outliers and censoring, for the tests of the fits."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pandas as pd

from rgr_dist.analysis.laws.interval_likelihood import Array
from rgr_dist.analysis.laws.points import points
from rgr_dist.paper import IMPLIED, capacity_scale

SIZES = tuple(IMPLIED)
LOG_SCALE = np.log([capacity_scale(*size) for size in SIZES])


def draw(
    generator: np.random.Generator,
    n: int,
    law: Array,
    sigma: float,
    outliers: float = 0.0,
    censored: bool = False,
) -> tuple[Array, Array]:
    """Log ends of n studies' intervals about a law, as a search over integer d_k would leave them.

    Args:
        law: log D_K* of each cell without scatter.
        outliers: share of the cells whose deviation is four times as large.
        censored: whether the search ends at the law's second largest D_K*.
    """
    deviation = sigma * generator.standard_normal((n, len(law)))
    deviation = np.where(generator.random(deviation.shape) < outliers, 4 * deviation, deviation)
    D_K = np.exp(law + deviation)
    h = 2.0 ** np.clip(np.round(np.log2(D_K / 8)), 0, 6)
    passes = h * np.ceil(D_K / h)
    fails = passes - h
    if censored:
        cap = math.exp(np.sort(law)[-2])
        beyond = passes > cap
        fails, passes = np.where(beyond, cap, fails), np.where(beyond, np.inf, passes)
    with np.errstate(divide="ignore"):
        return np.log(fails), np.log(passes)


@cache
def cells_of(sizes: tuple[tuple[int, int], ...]) -> pd.DataFrame:
    """The table of ``points`` before any draw."""
    best = pd.DataFrame(
        {
            "m": [m for m, _ in sizes],
            "d_model": [d_model for _, d_model in sizes],
            "degree": 1,
            "n_edges": [m for m, _ in sizes],
            "D_K": 1.0,
            "D_K_low": 1.0,
            "h_star": 1.0,
            "status": "found",
            "cell_id": "",
            "max_steps": 20_000,
            "certificate": None,
        }
    )
    return points(best, [1])


def table(lower: Array, upper: Array, sizes: tuple[tuple[int, int], ...] = SIZES) -> pd.DataFrame:
    """One draw as the table of ``points``."""
    return cells_of(sizes).assign(
        D_K_fails=np.exp(lower), D_K_passes=np.exp(upper), D_K=np.exp(np.minimum(upper, 700))
    )
