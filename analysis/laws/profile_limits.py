"""Limits of a coefficient from its profile likelihood: where the likelihood has fallen too far.

The coefficient is held at a value, the others are fitted anew, and the value moves away from the
best one until the fall of the likelihood reaches the cut-off. ``bootstrap_limits`` gives limits
that depend on other assumptions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import fdtri

from rgr_dist.analysis.laws.interval_likelihood import Array, fit, in_rows
from rgr_dist.search.confidence_interval import CONFIDENCE

DOUBLINGS, CLOSINGS = 40, 20

LARGEST_LOG = math.log(np.finfo(np.float64).max)


def profile_interval(
    lower: Any, upper: Any, design: Any, index: Any, floor: float | None = None
) -> tuple[Array, Array]:
    """95 % profile-likelihood limits of coefficients; infinite where the data set none.

    The cut-off is n log(1 + t²/ν), with t the quantile of Student's t at ν = n - p degrees of
    freedom: for exact values this gives precisely the t-interval of least squares, whereas the
    usual χ² cut-off is too narrow for a dozen cells. n counts the values with two finite ends.

    Args:
        index: which column of the design, shape (...).
        floor: the log-likelihood at the limits, where the design is part of a larger model; set by
            the cut-off if not given. A fit below it has an interval of zero width.
    """
    lead, low, high, x, _ = in_rows(lower, upper, design, 1.0, np.shape(index))
    rows, _, p = x.shape
    whole = fit(low, high, x)
    own = np.broadcast_to(index, lead).reshape(rows, 1)
    others = np.arange(p - 1) + (np.arange(p - 1) >= own)
    column = np.take_along_axis(x, own[:, None], axis=2)[:, :, 0]
    rest = np.take_along_axis(x, others[:, None], axis=2)
    best = np.take_along_axis(whole.coefficients, own, axis=1)[:, 0]
    falls = cut_off(low, high, p)
    root = np.sqrt(falls if floor is None else 2 * np.maximum(whole.log_likelihood - floor, 0.0))
    spread = np.sqrt((column**2).mean(axis=1))
    first = 2 * np.maximum(whole.sigma, 0.01) / np.maximum(spread, 1e-12)
    # Both ends at once: the data twice over, one half for each way.
    low, high, column, rest, root, best, most = (
        np.concatenate([part, part])
        for part in (low, high, column, rest, root, best, whole.log_likelihood)
    )

    def excess(value: Array, at: npt.NDArray[np.int64]) -> Array:
        """Root of twice the fall, less that at the limits: nearly linear in the coefficient."""
        moved = value[:, None] * column[at]
        held = fit(low[at] - moved, high[at] - moved, rest[at]).log_likelihood
        return np.asarray(np.sqrt(2 * np.maximum(most[at] - held, 0.0)) - root[at])

    ends = _edge(excess, best, -root, np.concatenate([-first, first]))
    return ends[:rows].reshape(lead), ends[rows:].reshape(lead)


def cut_off(low: Array, high: Array, p: int) -> Array:
    """How far twice the log-likelihood may fall within 95 % confidence, shape (...).

    Args:
        p: number of unknowns in the full model apart from σ; one of them is held fixed.
    """
    n = np.maximum((np.isfinite(low) & np.isfinite(high)).sum(axis=-1), p + 1)
    quantile = fdtri(1, n - p, CONFIDENCE)
    return np.asarray(n * np.log1p(quantile / (n - p)), dtype=np.float64)


def known(limit: float) -> float | None:
    """A limit that ``profile_interval`` gives, or None where the data set none."""
    return limit if math.isfinite(limit) else None


def known_factor(limit: float) -> float | None:
    """The limit on c from that on log c; where the data set none, 0 below and None above."""
    return math.exp(limit) if limit < LARGEST_LOG else None


def _edge(
    excess: Callable[[Array, npt.NDArray[np.int64]], Array],
    best: Array,
    at_best: Array,
    first: Array,
) -> Array:
    """Where ``excess`` rises through 0, from ``best`` on in the direction of ``first``.

    The step doubles until the end is passed, then regula falsi with Illinois's halving closes in.

    Args:
        excess: takes values and the indices of the rows they are for.
    """
    good, at_good, step = best.copy(), at_best.copy(), first.copy()
    bad, at_bad = best + step, np.full(len(best), -np.inf)
    left = np.arange(len(best))
    for _ in range(DOUBLINGS):
        at_bad[left] = excess(bad[left], left)
        left = left[at_bad[left] < 0]
        if not len(left):
            break
        good[left], at_good[left] = bad[left], at_bad[left]
        step[left] *= 2
        bad[left] = best[left] + step[left]
    end = np.sign(first) * np.inf
    left = np.flatnonzero(at_bad >= 0)
    last = np.zeros(len(best))
    for _ in range(CLOSINGS):
        if not len(left):
            break
        low, high = at_good[left], at_bad[left]  # halved by Illinois's rule
        share = low / np.where(low == high, -1.0, low - high)
        middle = good[left] + np.clip(share, 0.0, 1.0) * (bad[left] - good[left])
        value = excess(middle, left)
        inside = value < 0
        good[left], bad[left] = (
            np.where(inside, middle, good[left]),
            np.where(inside, bad[left], middle),
        )
        at_bad[left] = np.where(inside, high / np.where(last[left] < 0, 2, 1), value)
        at_good[left] = np.where(inside, value, low / np.where(last[left] > 0, 2, 1))
        last[left] = np.where(inside, -1.0, 1.0)
        end[left] = middle
        left = left[np.abs(value) >= 1e-5]
    return end
