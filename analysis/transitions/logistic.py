"""A logistic curve through shares of passing seeds: its middle and width, with their limits.

The share at x = log₂ D_K is 1 / (1 + exp(-(x - middle) / width)), fitted by binomial maximum
likelihood. Limits are by profile likelihood (Wilks): they take the probes for independent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtri, xlogy

from analysis.laws.interval_likelihood import Array
from search.confidence_interval import CONFIDENCE

LEAST_WIDTH, LARGEST_WIDTH = 1e-3, 20.0
"""Bounds on a transition's width, in doublings of D_K."""

REFINEMENTS = 6
"""How often the grid of a curve is drawn closer, five times each."""

CUT = float(chdtri(1, 1 - CONFIDENCE))
"""Deviance above the least at which a 95 % limit lies."""


@dataclass(frozen=True)
class Curve:
    """A logistic curve in log₂ D_K, and the deviance of the shares from it."""

    middle: float
    width: float
    deviance: float


def fit(x: Array, good: Array, bad: Array) -> Curve:
    """The curve of least deviance, on a grid that is drawn closer about its best point.

    Where one probe alone has both, below it all fail and above it all pass, the narrower a curve
    the better: it is of the least width.

    Args:
        x: log₂ D_K of each probe.
        good, bad: how many of its seeds pass and fail.
    """
    last_fail, first_pass = x[bad > 0].max(), x[good > 0].min()
    if last_fail == first_pass:
        there = x == first_pass
        odds = float(good[there].sum() / bad[there].sum())
        return Curve(float(first_pass) - LEAST_WIDTH * math.log(odds), LEAST_WIDTH, 0.0)
    middles = np.linspace(x.min() - 0.5, x.max() + 0.5, 61)
    log_widths = np.linspace(math.log(LEAST_WIDTH), math.log(LARGEST_WIDTH), 41)
    for _ in range(1 + REFINEMENTS):
        grid = np.meshgrid(middles, log_widths, indexing="ij")
        deviance = _deviance(x, good, bad, *grid)
        i, j = np.unravel_index(int(deviance.argmin()), deviance.shape)
        middle, log_width, least = middles[i], log_widths[j], deviance[i, j]
        reach = 2 * (middles[1] - middles[0]), 2 * (log_widths[1] - log_widths[0])
        middles = np.linspace(middle - reach[0], middle + reach[0], 21)
        log_widths = np.linspace(log_width - reach[1], log_width + reach[1], 21)
    width = float(np.clip(math.exp(log_width), LEAST_WIDTH, LARGEST_WIDTH))
    return Curve(float(middle), width, float(least))


def middle_limits(
    x: Array, good: Array, bad: Array, curve: Curve
) -> tuple[float | None, float | None]:
    """95 % profile-likelihood limits of the middle, on a grid of 1/100 of the span of x.

    A limit that lies beyond the probes, where they say nothing, is None.
    """
    log_widths = np.linspace(math.log(LEAST_WIDTH), math.log(LARGEST_WIDTH), 120)
    ends = min(x.min(), curve.middle), max(x.max(), curve.middle)
    middles = np.unique(np.append(np.linspace(*ends, 101), curve.middle))
    grid = np.broadcast_to(middles[:, None], (len(middles), 120))
    lowest = _deviance(x, good, bad, grid, np.broadcast_to(log_widths, grid.shape)).min(axis=1)
    inside = (lowest <= curve.deviance + CUT) | (middles == curve.middle)
    low, high = (float(end) for end in middles[np.flatnonzero(inside)[[0, -1]]])
    return None if inside[0] else low, None if inside[-1] else high


SPREAD = math.log(16)
"""How far about the best width its profile is drawn, in either direction, on the log scale."""


def width_profile(x: Array, good: Array, bad: Array, curve: Curve) -> tuple[Array, Array]:
    """Log width, and the least deviance at it over every middle.

    Returns:
        Both of shape (65,): from a sixteenth to sixteen times the best width.
    """
    steps = np.linspace(-SPREAD, SPREAD, 65)
    log_widths = math.log(curve.width) + steps
    widths = np.exp(np.clip(log_widths, None, math.log(LARGEST_WIDTH)))
    reach = 3 * (widths + curve.width) + np.ptp(x) / 20
    middles = curve.middle + np.linspace(-1, 1, 81)[:, None] * reach
    for _ in range(3):  # a narrow curve takes a fine grid of middles
        grid = np.broadcast_to(log_widths, middles.shape)
        deviance = _deviance(x, good, bad, middles, grid)
        best = middles[deviance.argmin(axis=0), np.arange(len(log_widths))]
        middles = best + np.linspace(-1, 1, 21)[:, None] * (middles[1] - middles[0])
    return log_widths, deviance.min(axis=0)


def width_limits(
    x: Array, good: Array, bad: Array, curve: Curve
) -> tuple[float | None, float | None]:
    """95 % profile-likelihood limits of the width, in doublings; None where none is seen."""
    log_widths, deviance = width_profile(x, good, bad, curve)
    while deviance[-1] <= deviance.min() + CUT and log_widths[-1] < math.log(LARGEST_WIDTH):
        wider = Curve(curve.middle, math.exp(log_widths[-1]), curve.deviance)
        more = width_profile(x, good, bad, wider)
        log_widths, deviance = (
            np.append(part, own[len(own) // 2 + 1 :])
            for part, own in zip((log_widths, deviance), more, strict=True)
        )
    above = deviance - deviance.min() - CUT
    best = int(deviance.argmin())
    below = np.flatnonzero(above[:best] > 0)
    beyond = np.flatnonzero(above[best:] > 0)
    low = _crossing(log_widths, above, int(below[-1])) if len(below) else None
    high = _crossing(log_widths, above, best + int(beyond[0]) - 1) if len(beyond) else None
    return low, high


def _crossing(log_widths: Array, above: Array, at: int) -> float:
    """The width at which the profile crosses the cut between two points of its grid."""
    share = above[at] / (above[at] - above[at + 1])
    return math.exp(log_widths[at] + share * (log_widths[at + 1] - log_widths[at]))


def _deviance(x: Array, good: Array, bad: Array, middle: Any, log_width: Any) -> Array:
    """Twice what a curve's log-likelihood lacks of that of the observed shares."""
    total = good + bad
    seen = (xlogy(good, good / total) + xlogy(bad, bad / total)).sum()
    width = np.exp(np.clip(log_width, math.log(LEAST_WIDTH), math.log(LARGEST_WIDTH)))
    z = (x - np.expand_dims(middle, -1)) / np.expand_dims(width, -1)
    log_share = np.minimum(z, 0) - np.log1p(np.exp(-np.abs(z)))  # z less is that of 1 - share
    return np.asarray(2 * (seen - log_share @ total + z @ bad), dtype=np.float64)
