"""Layer norm, GELU and row sums for the vectors of sixteen examples.

Arrays are [features, 16]; features from d to E are zero.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from rgr_dist.engines.fused.simd import (
    WIDTH,
    exponential,
    fma,
    horizontal_sum,
    splat,
    sqrt,
    sum_of_rows,
    where_above,
)
from rgr_dist.engines.fused.simd_memory import load, store

EPSILON = 1e-5
"""Added to the variance in a layer norm, as in ``models.transformer``."""
ERF = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
ERF_P = 0.3275911
"""erf to within 1.5e-7: Abramowitz and Stegun, 7.1.26."""
ROOT_HALF, ROOT_TWO_PI = 0.7071067811865476, 2.5066282746310002


@numba.njit(nogil=True)
def normalise(X: Any, at: int, out: Any, to: int, d: int, E: int) -> Any:
    """Layer norm of one vector of each example; returns 1 / their standard deviations.

    Args:
        at, to: where the vectors begin in X and in ``out``.
    """
    fours = splat(4, 0.0)
    for i in range(at, at + E * WIDTH, 4 * WIDTH):
        fours = fours + load(4, X, i, WIDTH)
    mean = sum_of_rows(fours) * np.float32(1.0 / d)
    even, odd = splat(1, 0.0), splat(1, 0.0)
    for i in range(at, at + d * WIDTH, WIDTH):
        one = load(1, X, i, 0) - mean
        even, odd = odd, fma(one, one, even)  # in turns, so that neither waits for the other
    variance = (even + odd) * np.float32(1.0 / d)
    inverse = splat(1, 1.0) / sqrt(variance + np.float32(EPSILON))
    for i in range(0, d * WIDTH, WIDTH):
        store(out, to + i, 0, (load(1, X, at + i, 0) - mean) * inverse)
    return inverse


@numba.njit(nogil=True)
def normalise_backward(
    d_normed: Any, normed: Any, inverse: Any, also: Any, out: Any, d: int
) -> None:
    """Write the gradient of the norm's input, from that of its output, plus ``also`` to ``out``."""
    mean, product = splat(1, 0.0), splat(1, 0.0)
    for i in range(0, d * WIDTH, WIDTH):
        g = load(1, d_normed, i, 0)
        mean = mean + g
        product = fma(g, load(1, normed, i, 0), product)
    mean, product = mean * np.float32(1.0 / d), product * np.float32(1.0 / d)
    scale = load(1, inverse, 0, 0)
    for i in range(0, d * WIDTH, WIDTH):
        g = load(1, d_normed, i, 0) - mean - load(1, normed, i, 0) * product
        store(out, i, 0, fma(g, scale, load(1, also, i, 0)))


@numba.njit(nogil=True, inline="always")
def _normal(x: Any) -> Any:
    """The normal distribution function of a tile of one row, and its density times sqrt(2 pi)."""
    u = x * np.float32(ROOT_HALF)
    u = where_above(u, np.float32(0.0), u, splat(1, 0.0) - u)
    density = exponential(splat(1, 0.0) - u * u)
    t = splat(1, 1.0) / fma(u, np.float32(ERF_P), splat(1, 1.0))
    y = fma(splat(1, ERF[4]), t, np.float32(ERF[3]))
    y = fma(y, t, np.float32(ERF[2]))
    y = fma(y, t, np.float32(ERF[1]))
    y = fma(y, t, np.float32(ERF[0])) * t * density * np.float32(0.5)
    return where_above(x, np.float32(0.0), splat(1, 1.0) - y, y), density


@numba.njit(nogil=True)
def gelu(X: Any, out: Any, features: int) -> None:
    """x times the normal distribution function at x."""
    for i in range(0, features * WIDTH, WIDTH):
        x = load(1, X, i, 0)
        store(out, i, 0, x * _normal(x)[0])


@numba.njit(nogil=True)
def gelu_backward(X: Any, d_out: Any, features: int) -> None:
    """Replace the gradient of GELU's output with that of its input."""
    for i in range(0, features * WIDTH, WIDTH):
        x = load(1, X, i, 0)
        below, density = _normal(x)
        slope = fma(x * density, np.float32(1.0 / ROOT_TWO_PI), below)
        store(d_out, i, 0, load(1, d_out, i, 0) * slope)


@numba.njit(nogil=True)
def add_row_sums(out: Any, X: Any, features: int) -> None:
    """Add the sum of each feature over the examples to ``out``."""
    for i in range(features):
        out[i] += horizontal_sum(load(1, X, i * WIDTH, 0))
