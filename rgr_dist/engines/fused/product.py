"""Products of small matrices in compiled code, from tiles of sums that stay in registers."""

from __future__ import annotations

from typing import Any

import numba

from rgr_dist.engines.fused.simd import ROWS, WIDTH, keep_apart, splat
from rgr_dist.engines.fused.simd_memory import load, outer_fma, store


@numba.njit(nogil=True)
def multiply(
    out: Any, at: int, width: int,
    a: Any, a_at: int, a_row: int, a_column: int,
    b: Any, b_at: int, b_width: int,
    rows: int, inner: int, columns: int, add: bool,
) -> None:  # fmt: skip
    """``out`` = A B, or ``out`` += A B, where each of the three is part of a flat matrix.

    Args:
        at, width: first entry of the result and the length of its rows.
        a_at, a_row, a_column: first entry of A, and the steps to its next row and column; swapped
            steps read A as a transpose.
        b_at, b_width: first entry of B and the length of its rows.
        rows, inner, columns: the result's rows, the terms of each sum, and the result's columns,
            a multiple of 16.
        add: whether to add to what ``out`` holds.
    """
    keep_apart()
    whole = rows - rows % ROWS
    for c in range(0, columns, WIDTH):
        for r in range(0, whole, ROWS):
            sums = load(ROWS, out, at + r * width + c, width) if add else splat(ROWS, 0.0)
            for i in range(inner):
                row = load(1, b, b_at + i * b_width + c, 0)
                sums = outer_fma(sums, a, a_at + r * a_row + i * a_column, a_row, row)
            store(out, at + r * width + c, width, sums)
        for r in range(whole, rows):
            sum_ = load(1, out, at + r * width + c, 0) if add else splat(1, 0.0)
            for i in range(inner):
                row = load(1, b, b_at + i * b_width + c, 0)
                sum_ = outer_fma(sum_, a, a_at + r * a_row + i * a_column, a_row, row)
            store(out, at + r * width + c, 0, sum_)
