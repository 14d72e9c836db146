"""Is a published law compatible with our cells? It is tested as printed, rounding included.

The question is not whether the paper's slope lies in our interval: both are estimates, and the
paper's is known only to the digits printed. The hypothesis is that some value that rounds to the
printed one holds for our cells, with the scatter that our cells have.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

import numpy as np
import pandas as pd
from scipy.special import fdtrc, stdtr

from rgr_dist.analysis.laws.interval_likelihood import Array, fit
from rgr_dist.analysis.laws.points import log_ends
from rgr_dist.paper import PublishedLaw
from rgr_dist.search.confidence_interval import CONFIDENCE

LEAST_CELLS = 3
"""Fewest cells on which a published law is tested."""

Scale = Literal["linear", "log"]


@dataclass(frozen=True, kw_only=True)
class PublishedTest:
    """One test of a published law.

    Attributes:
        name: our law of the same name.
        scale: ``linear``: by the paper's own estimator, an F test of its numbers given a line of
            that form; ``log``: whether D_K* is that multiple of the predictor at all, against any
            power of it, by the interval likelihood.
        published: the law as printed, in words.
        slope, slope_low, slope_high: as printed, and the ends of the range that rounds to it.
        intercept: as printed; 0 through the origin.
        n: the number of our cells.
        ours, exponent: our slope by the paper's estimator (linear), our free exponent (log).
        statistic: F, at (restrictions, n - unknowns) degrees of freedom.
        p_value: None where there are too few cells to test.
        p_value_with_theirs: the same with the sampling error of the published slope, from its R²
            and number of cells; None where these are not printed, for a line with an intercept,
            and on the log scale.
        compatible: whether p > 0.05; None where there is no p.
    """

    name: str
    scale: Scale
    published: str
    source: str
    slope: float
    slope_low: float
    slope_high: float
    intercept: float
    n: int
    ours: float | None = None
    exponent: float | None = None
    statistic: float | None = None
    p_value: float | None = None
    p_value_with_theirs: float | None = None
    compatible: bool | None = None


def equation(law: PublishedLaw) -> str:
    """A published line as printed, ``1.65 x − 6.64``."""
    sign = "−" if law.intercept < 0 else "+"
    return f"{law.slope:g} x" + (f" {sign} {abs(law.intercept):g}" if law.intercept else "")


def p_words(value: float) -> str:
    """``p = 0.026``; ``p < 0.0001`` below that."""
    return "p < 0.0001" if value < 1e-4 else f"p = {value:.2g}"


def rounding(value: float) -> tuple[float, float]:
    """The ends of the range that rounds to a printed number: 1.19 stands for 1.185 to 1.195."""
    exponent = Decimal(repr(value)).as_tuple().exponent
    assert isinstance(exponent, int)
    half = 0.5 * 10.0**exponent
    return value - half, value + half


def line_test(name: str, law: PublishedLaw, x: Array, y: Array) -> PublishedTest:
    """The published line, tested against least squares of the same form, with or without intercept.

    Args:
        x, y: predictor and response of our cells.
    """
    through_origin = law.intercept == 0
    result = _unknown(name, law, "linear", len(x))
    unknowns = 1 if through_origin else 2
    if len(x) < LEAST_CELLS or np.ptp(x) == 0:
        return result
    design = x[:, None] if through_origin else np.column_stack([x, np.ones_like(x)])
    beta: Array = np.asarray(np.linalg.lstsq(design, y, rcond=None)[0], dtype=np.float64)
    degrees = len(x) - unknowns
    variance = float(((y - design @ beta) ** 2).sum()) / degrees
    ends = [rounding(law.slope)] + ([] if through_origin else [rounding(law.intercept)])
    normal: Array = np.asarray(design.T @ design, dtype=np.float64)
    low, high = zip(*ends, strict=True)
    nearest = _nearest(normal, beta, np.array(low), np.array(high))
    square = float((nearest - beta) @ normal @ (nearest - beta))
    if square <= 1e-20 * float((y**2).sum()):
        statistic = 0.0
    else:
        statistic = square / unknowns / variance if variance > 0 else math.inf
    p = float(fdtrc(unknowns, degrees, statistic))
    return dataclasses.replace(
        result,
        ours=float(beta[0]),
        statistic=statistic if math.isfinite(statistic) else None,
        p_value=p,
        p_value_with_theirs=_with_theirs(law, nearest, beta, variance, normal, degrees)
        if through_origin
        else None,
        compatible=p > 1 - CONFIDENCE,
    )


def _nearest(normal: Array, beta: Array, low: Array, high: Array) -> Array:
    """The point of a box with the least (point - β)ᵀ normal (point - β), of one or two unknowns."""
    if ((low <= beta) & (beta <= high)).all():
        return beta
    if len(beta) == 1:
        return np.clip(beta, low, high)
    points = []
    for i, j in ((0, 1), (1, 0)):  # else it lies on an edge: at its least there, or at a corner
        for end in (low[i], high[i]):
            point = beta.copy()
            point[i] = end
            least = beta[j] - normal[j, i] / normal[j, j] * (end - beta[i])
            point[j] = np.clip(least, low[j], high[j])
            points.append(point)
    return min(points, key=lambda point: float((point - beta) @ normal @ (point - beta)))


def _with_theirs(
    law: PublishedLaw, nearest: Array, beta: Array, variance: float, normal: Array, degrees: int
) -> float | None:
    """p of Welch's t for the two slopes, with t² = (n - 1) R² / (1 - R²) for the published one."""
    if law.r2 is None or law.n is None:
        return None
    theirs = law.slope**2 * (1 - law.r2) / law.r2 / (law.n - 1)
    own = variance / float(normal[0, 0])
    if own + theirs == 0:
        return None
    together = (own + theirs) ** 2 / (own**2 / degrees + theirs**2 / (law.n - 1))
    statistic = abs(float(beta[0] - nearest[0])) / math.sqrt(own + theirs)
    return float(2 * stdtr(together, -statistic))


def proportional_test(name: str, law: PublishedLaw, cells: pd.DataFrame) -> PublishedTest:
    """Test D_K* = slope · predictor for our cells against any power law of the predictor.

    Args:
        cells: the table of ``rgr_dist.analysis.laws.points.points``.
    """
    result = _unknown(name, law, "log", len(cells))
    lower, upper = log_ends(cells["D_K_fails"], cells["D_K_passes"])
    bounded = np.isfinite(lower) & np.isfinite(upper)
    x = np.log(cells["scale"].to_numpy(dtype=np.float64))
    n = int(bounded.sum())
    if law.intercept != 0 or n < LEAST_CELLS or np.ptp(x[bounded]) < 1e-12:
        return result
    free = fit(lower, upper, np.column_stack([np.ones_like(x), x]))
    best = fit(lower - x, upper - x, np.ones((len(x), 1))).coefficients[0]
    # The likelihood has one maximum: the best slope that rounds to the printed one is nearest it.
    offset = x + np.clip(best, *np.log(rounding(law.slope)))
    held = fit(lower - offset, upper - offset, np.empty((len(x), 0)))
    fall = 2 * float(free.log_likelihood - held.log_likelihood)
    statistic = math.expm1(max(fall, 0.0) / n) * (n - 2) / 2
    p = float(fdtrc(2, n - 2, statistic))
    return dataclasses.replace(
        result,
        exponent=float(free.coefficients[1]),
        statistic=statistic,
        p_value=p,
        compatible=p > 1 - CONFIDENCE,
    )


def _unknown(name: str, law: PublishedLaw, scale: Scale, n: int) -> PublishedTest:
    low, high = rounding(law.slope)
    return PublishedTest(
        name=name,
        scale=scale,
        published=equation(law),
        source=law.source,
        slope=law.slope,
        slope_low=low,
        slope_high=high,
        intercept=law.intercept,
        n=n,
    )
