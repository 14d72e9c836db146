"""Attention of one query over the positions of its context, for sixteen examples.

Arrays and sizes are those of ``step``: X [h, E, 16], Z [n, E, 16], P [h, n, 16].
"""

from __future__ import annotations

from typing import Any

import numba

from rgr_dist.engines.fused.simd import (
    ROWS,
    WIDTH,
    exponential,
    fma,
    keep_apart,
    splat,
    where_above,
)
from rgr_dist.engines.fused.simd_memory import load, store


@numba.njit(nogil=True)
def pair_sums(out: Any, X: Any, Z: Any, sizes: Any) -> None:
    """``out`` [h, n]: the sum over the features of X [h] times Z [n]."""
    h, n = sizes.h, sizes.n
    if h % ROWS == 0:
        _sums(out, X, h, n * WIDTH, Z, n, WIDTH, sizes)
    else:
        _sums(out, Z, n, WIDTH, X, h, n * WIDTH, sizes)


@numba.njit(nogil=True)
def _sums(out: Any, X: Any, xs: int, out_x: int, Y: Any, ys: int, out_y: int, sizes: Any) -> None:
    """``out`` [x, y]: the sum over the features of X [x] times Y [y], several x at a time.

    Each sum takes the features one after another, so that it does not depend on ``ROWS``.

    Args:
        out_x, out_y: steps in ``out`` to the next x and y.
    """
    keep_apart()
    d, vector = sizes.d, sizes.E * WIDTH
    whole = xs - xs % ROWS
    for y in range(ys):
        for x in range(0, whole, ROWS):
            sums = splat(ROWS, 0.0)
            for i in range(0, d * WIDTH, WIDTH):
                row = load(1, Y, y * vector + i, 0)
                sums = fma(load(ROWS, X, x * vector + i, vector), row, sums)
            store(out, x * out_x + y * out_y, out_x, sums)
        for x in range(whole, xs):
            total = splat(1, 0.0)
            for i in range(0, d * WIDTH, WIDTH):
                total = fma(load(1, X, x * vector + i, 0), load(1, Y, y * vector + i, 0), total)
            store(out, x * out_x + y * out_y, 0, total)


@numba.njit(nogil=True)
def mix(out: Any, P: Any, Z: Any, sizes: Any) -> None:
    """``out`` [h, E]: the sum over the positions of P [h, n] times Z [n]."""
    keep_apart()
    h, n, vector = sizes.h, sizes.n, sizes.E * WIDTH
    for head in range(h):
        for i in range(0, vector, ROWS * WIDTH):
            sums = splat(ROWS, 0.0)
            for position in range(n):
                weight = load(1, P, (head * n + position) * WIDTH, 0)
                sums = fma(load(ROWS, Z, position * vector + i, WIDTH), weight, sums)
            store(out, head * vector + i, WIDTH, sums)


@numba.njit(nogil=True)
def softmax_columns(P: Any, scale: Any, h: int, n: int) -> None:
    """Replace each head's scores with the softmax, over the positions, of the scaled scores."""
    for first in range(0, h * n * WIDTH, n * WIDTH):
        end = first + n * WIDTH
        largest = load(1, P, first, 0)
        for at in range(first + WIDTH, end, WIDTH):
            s = load(1, P, at, 0)
            largest = where_above(s, largest, s, largest)
        total = splat(1, 0.0)
        for at in range(first, end, WIDTH):
            y = exponential((load(1, P, at, 0) - largest) * scale)
            store(P, at, 0, y)
            total = total + y
        factor = splat(1, 1.0) / total
        for at in range(first, end, WIDTH):
            store(P, at, 0, load(1, P, at, 0) * factor)


@numba.njit(nogil=True)
def softmax_backward(dP: Any, P: Any, scale: Any, h: int, n: int) -> None:
    """Replace the gradient of the attention with that of the scores before they were scaled."""
    for first in range(0, h * n * WIDTH, n * WIDTH):
        end = first + n * WIDTH
        mean = splat(1, 0.0)
        for at in range(first, end, WIDTH):
            mean = fma(load(1, P, at, 0), load(1, dP, at, 0), mean)
        for at in range(first, end, WIDTH):
            store(dP, at, 0, load(1, P, at, 0) * (load(1, dP, at, 0) - mean) * scale)
