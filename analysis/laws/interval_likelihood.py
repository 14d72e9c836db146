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
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr

Array = npt.NDArray[np.float64]

LEAST_SIGMA = 5e-3
"""Smallest σ considered. Where a line goes through every interval the likelihood grows to 1 as σ
falls; half a percent of D_K is below the resolution of a threshold."""

CAP = 1 / LEAST_SIGMA

STEPS, HALVINGS, TOLERANCE = 100, 30, 1e-10


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
    lead, *data = in_rows(lower, upper, design, weights)
    low, high, x, _ = data
    rows, _, p = x.shape
    if not (low < high).all():
        raise ValueError("an interval is empty: its lower end is not below its upper end")
    state = _start(*data)
    value, between = _log_likelihood(state, *data)
    gradient, hessian = _derivatives(between, *data)
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
            own = [part[at] for part in data]
            reached, between = _log_likelihood(trial, *own)
            better = reached > value[at]
            if better.any():  # where rounding hides the growth, few of the halvings are
                up = at[better]
                state[up], value[up] = trial[better], reached[better]
                gradient[up], hessian[up] = (part[better] for part in _derivatives(between, *own))
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


def in_rows(
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


Between = tuple[Array, Array, Array]
"""The ends of the intervals in units of σ about the line, and the log-probabilities between."""


def _log_likelihood(
    state: Array, low: Array, high: Array, x: Array, weight: Array
) -> tuple[Array, Between]:
    """The log-likelihood at (γ, θ), and what its derivatives follow from."""
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
    return (weight * log_p).sum(axis=1), (a, b, log_p)


def _derivatives(
    between: Between, low: Array, high: Array, x: Array, weight: Array
) -> tuple[Array, Array]:
    """Gradient and Hessian of the log-likelihood in (γ, θ)."""
    p = x.shape[2]
    a, b, log_p = between

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
    return gradient, hessian


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
