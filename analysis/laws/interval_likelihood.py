"""Regression on values known only to lie between two ends.

A threshold is not a point: it lies between the key width that fails and the one that passes, and
has no upper end where nothing passed. With y = X β + σ ε and ε standard normal, an interval (l, u]
has the likelihood Φ((u - Xβ)/σ) - Φ((l - Xβ)/σ), or its limit at an open end. In γ = β/σ and
θ = 1/σ its logarithm is concave (Burridge, J. R. Stat. Soc. B 43, 1981, 41-45), so Newton's method
finds the one maximum from anywhere. ``survreg`` of R's survival and the parametric fitters of
lifelines maximise the same likelihood.

Everything takes leading dimensions: a thousand resampled fits are one call.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import fdtri, log_ndtr

from rgr_dist.search.confidence_interval import CONFIDENCE

Array = npt.NDArray[np.float64]

LEAST_SIGMA = 5e-3
"""Smallest σ considered. Where a line goes through every interval the likelihood grows to 1 as σ
falls; half a percent of D_K is below the resolution of a threshold."""

CAP = 1 / LEAST_SIGMA

STEPS, HALVINGS, TOLERANCE = 100, 30, 1e-10
DOUBLINGS, CLOSINGS = 40, 20

LARGEST_LOG = math.log(np.finfo(np.float64).max)


@dataclass(frozen=True)
class IntervalFit:
    """Maximum-likelihood fits; the leading dimensions are those of the data.

    Attributes:
        coefficients: β, shape (..., p).
        sigma: standard deviation about the line, shape (...), not corrected for degrees of freedom.
        log_likelihood: at the maximum, shape (...).
    """

    coefficients: Array
    sigma: Array
    log_likelihood: Array


def fit(lower: Any, upper: Any, design: Any, weights: Any = 1.0) -> IntervalFit:
    """The maximum of the likelihood.

    Args:
        lower, upper: ends of the intervals, shape (..., n); infinite where open.
        design: X, shape (..., n, p), of full column rank where the weights are not zero.
        weights: how often each value counts, shape (..., n); 0 leaves it out.

    Raises:
        ValueError: an interval is empty.
    """
    lead, *data = _in_rows(lower, upper, design, weights)
    low, high, x, _ = data
    rows, _, p = x.shape
    if not (low < high).all():
        raise ValueError("an interval is empty: its lower end is not below its upper end")
    state = _start(*data)
    value, gradient, hessian = _derivatives(state, *data)
    going = np.arange(rows)  # fits that still climb; finished ones are left alone
    for _ in range(STEPS):
        now, slope = state[going], gradient[going]
        capped = (now[:, p] >= CAP * (1 - 1e-9)) & (slope[:, p] > 0)
        step = _newton_step(slope, hessian[going], capped)
        climbs = (step * slope).sum(axis=-1) >= TOLERANCE
        going, now, step = going[climbs], now[climbs], step[climbs]
        share, left = _full_share(now, step), np.ones(len(going), dtype=bool)
        for _ in range(HALVINGS):  # of the steps after which the likelihood has not grown
            if not left.any():
                break
            at, trial = going[left], now[left] + share[left, None] * step[left]
            reached, *others = _derivatives(trial, *(part[at] for part in data))
            better = reached > value[at]
            up = at[better]
            state[up], value[up] = trial[better], reached[better]
            gradient[up], hessian[up] = (part[better] for part in others)
            left[left] = ~better
            share[left] /= 2
        going = going[~left]
        if not len(going):
            break
    theta = state[:, p]
    return IntervalFit(
        (state[:, :p] / theta[:, None]).reshape(*lead, p),
        (1 / theta).reshape(lead),
        value.reshape(lead),
    )


def profile_interval(
    lower: Any, upper: Any, design: Any, index: Any, weights: Any = 1.0, floor: float | None = None
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
    lead, low, high, x, weight = _in_rows(lower, upper, design, weights, np.shape(index))
    rows, _, p = x.shape
    whole = fit(low, high, x, weight)
    own = np.broadcast_to(index, lead).reshape(rows, 1)
    others = np.arange(p - 1) + (np.arange(p - 1) >= own)
    column = np.take_along_axis(x, own[:, None], axis=2)[:, :, 0]
    rest = np.take_along_axis(x, others[:, None], axis=2)
    best = np.take_along_axis(whole.coefficients, own, axis=1)[:, 0]
    falls = cut_off(low, high, weight, p)
    root = np.sqrt(falls if floor is None else 2 * np.maximum(whole.log_likelihood - floor, 0.0))
    spread = np.sqrt((column**2 * weight).sum(axis=1) / np.maximum(weight.sum(axis=1), 1))
    first = 2 * np.maximum(whole.sigma, 0.01) / np.maximum(spread, 1e-12)
    # Both ends at once: the data twice over, one half for each way.
    low, high, weight, column, rest, root, best, most = (
        np.concatenate([part, part])
        for part in (low, high, weight, column, rest, root, best, whole.log_likelihood)
    )

    def excess(value: Array, at: npt.NDArray[np.int64]) -> Array:
        """Root of twice the fall, less that at the limits: nearly linear in the coefficient."""
        moved = value[:, None] * column[at]
        held = fit(low[at] - moved, high[at] - moved, rest[at], weight[at]).log_likelihood
        return np.asarray(np.sqrt(2 * np.maximum(most[at] - held, 0.0)) - root[at])

    ends = _edge(excess, best, -root, np.concatenate([-first, first]))
    return ends[:rows].reshape(lead), ends[rows:].reshape(lead)


def _in_rows(
    lower: Any, upper: Any, design: Any, weights: Any, lead: tuple[int, ...] = ()
) -> tuple[tuple[int, ...], Array, Array, Array, Array]:
    """The leading dimensions, and the ends, design and weights with these flattened into one."""
    low, high, x, weight = (
        np.asarray(a, dtype=np.float64) for a in (lower, upper, design, weights)
    )
    shape = np.broadcast_shapes((*lead, 1), low.shape, high.shape, weight.shape, x.shape[:-1])
    rows, n, p = math.prod(shape[:-1]), shape[-1], x.shape[-1]
    low, high, weight = (np.broadcast_to(a, shape).reshape(rows, n) for a in (low, high, weight))
    x = np.broadcast_to(x, (*shape, p)).reshape(rows, n, p)
    return shape[:-1], low, high, x, weight


def known(limit: float) -> float | None:
    """A limit that ``profile_interval`` gives, or None where the data set none."""
    return limit if math.isfinite(limit) else None


def known_factor(limit: float) -> float | None:
    """The limit on c from that on log c; where the data set none, 0 below and None above."""
    return math.exp(limit) if limit < LARGEST_LOG else None


def cut_off(low: Array, high: Array, weight: Array, p: int) -> Array:
    """How far twice the log-likelihood may fall within 95 % confidence, shape (...).

    Args:
        p: number of unknowns in the full model apart from σ; one of them is held fixed.
    """
    informative = (weight * (np.isfinite(low) & np.isfinite(high))).sum(axis=-1)
    n = np.maximum(informative, p + 1)
    quantile = fdtri(1, n - p, CONFIDENCE)
    return np.asarray(n * np.log1p(quantile / (n - p)), dtype=np.float64)


def middles(lower: Any, upper: Any) -> Array:
    """The middle of each interval; its finite end where the other is open."""
    low, high = np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        middle = (low + high) / 2
    inner = np.where(np.isfinite(high), middle, low)
    return np.asarray(np.where(np.isfinite(low), inner, high), dtype=np.float64)


def _start(low: Array, high: Array, x: Array, weight: Array) -> Array:
    """Least squares through the middles, as (γ, θ)."""
    y = middles(low, high)
    weighted = x * weight[:, :, None]
    normal = np.einsum("bnp,bnq->bpq", weighted, x)
    ridge = 1e-12 * np.trace(normal, axis1=1, axis2=2)[:, None, None] * np.eye(x.shape[2])
    beta = np.linalg.solve(normal + ridge, np.einsum("bnp,bn->bp", weighted, y)[..., None])[..., 0]
    residual = y - np.einsum("bnp,bp->bn", x, beta)
    count = np.maximum(weight.sum(axis=1), 1)
    sigma = np.sqrt((weight * residual**2).sum(axis=1) / count)
    finite = np.isfinite(low) & np.isfinite(high)
    width = np.where(finite, high, 0.0) - np.where(finite, low, 0.0)
    sigma = np.maximum(sigma, np.maximum((width * weight).sum(axis=1) / count / 4, LEAST_SIGMA))
    return np.concatenate([beta / sigma[:, None], (1 / sigma)[:, None]], axis=1)


def _derivatives(
    state: Array, low: Array, high: Array, x: Array, weight: Array
) -> tuple[Array, Array, Array]:
    """Log-likelihood, gradient and Hessian in (γ, θ)."""
    p = x.shape[2]
    centre = np.einsum("bnp,bp->bn", x, state[:, :p])
    with np.errstate(invalid="ignore"):
        a, b = state[:, p, None] * low - centre, state[:, p, None] * high - centre
        flip = a + b > 0  # the upper tail as the mirrored lower one, which keeps its digits
    small, large = np.where(flip, -b, a), np.where(flip, -a, b)
    log_large, log_small = log_ndtr(large), log_ndtr(small)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_p = log_large + np.log1p(-np.exp(np.minimum(log_small - log_large, 0.0)))
    log_p = np.maximum(log_p, -1e300)

    def ratio(end: Array) -> Array:
        """φ(end) / P, at most e^300, whose square is finite: an interval of no weight adds 0."""
        log_density = -0.5 * np.where(np.isfinite(end), end, 0.0) ** 2 - 0.5 * math.log(2 * math.pi)
        return np.where(np.isfinite(end), np.exp(np.minimum(log_density - log_p, 300.0)), 0.0)

    A, B = ratio(a), ratio(b)
    a, b = (np.where(np.isfinite(end), end, 0.0) for end in (a, b))
    low, high = (np.where(np.isfinite(end), end, 0.0) for end in (low, high))
    slope, slope_theta = A - B, high * B - low * A
    curve = a * A - b * B - slope**2
    cross = b * high * B - a * low * A - slope * slope_theta
    curve_theta = a * low**2 * A - b * high**2 * B - slope_theta**2
    gradient = np.concatenate(
        [
            np.einsum("bn,bnp->bp", weight * slope, x),
            (weight * slope_theta).sum(axis=1, keepdims=True),
        ],
        axis=1,
    )
    hessian = np.empty((len(x), p + 1, p + 1))
    hessian[:, :p, :p] = np.einsum("bn,bnp,bnq->bpq", weight * curve, x, x)
    hessian[:, p, :p] = hessian[:, :p, p] = np.einsum("bn,bnp->bp", weight * cross, x)
    hessian[:, p, p] = (weight * curve_theta).sum(axis=1)
    return (weight * log_p).sum(axis=1), gradient, hessian


def _newton_step(gradient: Array, hessian: Array, capped: npt.NDArray[np.bool_]) -> Array:
    """An ascending step; with θ held where it is at its cap."""
    size = gradient.shape[1]
    gradient, curvature = gradient.copy(), -hessian
    gradient[capped, -1] = 0.0
    curvature[capped, -1, :] = curvature[capped, :, -1] = 0.0
    curvature[capped, -1, -1] = 1.0
    scale = np.sqrt(np.maximum(np.einsum("bpp->bp", curvature), 1e-12))
    scaled = curvature / scale[:, :, None] / scale[:, None, :] + 1e-10 * np.eye(size)
    step = np.linalg.solve(scaled, (gradient / scale)[..., None])[..., 0] / scale
    downhill = (step * gradient).sum(axis=1) < 0
    return np.asarray(np.where(downhill[:, None], gradient / scale**2, step), dtype=np.float64)


def _full_share(state: Array, step: Array) -> Array:
    """The share of each step that may be taken: θ changes at most fourfold, and up to its cap."""
    theta, change = state[:, -1], step[:, -1]
    room = np.where(change > 0, np.minimum(3 * theta, CAP - theta), 0.75 * theta)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.minimum(1.0, np.where(change == 0, 1.0, room / np.abs(change)))


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
