"""Messages mixed by raw scores in compiled code, and their squared error (Sec. 7.2).

Array names and layout are those of ``fused_pieces``; scores are those of ``fused_max``.

    messages, error [L, E]: of the items of the context; a message is as wide as an embedding
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from rgr_dist.engines.fused.moves import add_outer, contract, load, store, total, transposed
from rgr_dist.engines.fused.tiles import WIDTH, fma, full, where_above


@numba.njit(nogil=True)
def message_pull(scratch: Any, sizes: Any) -> Any:
    """dL/dS of the mean squared error, eq. (4), into ``pull``: 2 / n times error times message.

    There is no threshold, and 0 is returned for its pull.

    Labels are those of ``label_targets``, negative at an edge; n is the number of sources that
    have one. The error of the others is 0.
    """
    L, E, length = sizes.L, sizes.E, sizes.length
    zero, one = np.float32(0.0), np.float32(1.0)
    count = 0
    for p in range(length):  # S - y, for the time being in ``pull``
        edges = full(1, 0.0)
        for q in range(0, L, WIDTH):
            edge = where_above(zero, load(1, scratch.labels, p * L + q, 0), one, zero)
            store(scratch.pull, p * L + q, 0, load(1, scratch.scores, p * L + q, 0) - edge)
            edges = edges + edge
        if total(edges) > zero:
            count += 1
        else:
            for q in range(0, L, WIDTH):
                store(scratch.pull, p * L + q, 0, full(1, 0.0))
    for i in range(0, E, WIDTH):
        for q in range(0, L, WIDTH):
            some = load(WIDTH, scratch.messages, q * E + i, E)
            for p in range(length):
                row = contract(scratch.pull, p * L + q, some)
                if q > 0:
                    row = row + load(1, scratch.error, p * E + i, 0)
                store(scratch.error, p * E + i, 0, row)
    scale = np.float32(2.0) / np.float32(max(1, count))
    for q in range(0, L, WIDTH):
        for i in range(0, E, WIDTH):
            some_t = transposed(load(WIDTH, scratch.messages, q * E + i, E))
            for p in range(length):
                row = contract(scratch.error, p * E + i, some_t) * scale
                if i > 0:
                    row = row + load(1, scratch.pull, p * L + q, 0)
                store(scratch.pull, p * L + q, 0, row)
    return zero


@numba.njit(nogil=True, inline="always")
def squared_error(
    scores: Any, first: int, places: Any, messages: Any, sizes: Any, nodes: Any, target: int
) -> Any:
    """Squared error of one retrieved message, as a tile of one row that is still to be summed.

    Args:
        scores: that of item ``nodes[q]`` is at ``first + places[q]``.
        messages: of all items, [m * E].
        target: the item whose message is wanted.
    """
    squares = full(1, 0.0)
    for i in range(0, sizes.E, WIDTH):
        row = full(1, 0.0) - load(1, messages, target * sizes.E + i, 0)
        for q in range(sizes.length):
            message = load(1, messages, nodes[q] * sizes.E + i, 0)
            row = add_outer(row, scores, first + places[q], 0, message)
        squares = fma(row, row, squares)
    return squares


@numba.njit(nogil=True)
def squared_form(x: Any, first: int, form: Any, L: int) -> float:
    """X A x of a vector that begins at ``first``, [L], and a symmetric matrix there, [L, L]."""
    squares = full(1, 0.0)
    for k in range(0, L, WIDTH):
        row = full(1, 0.0)
        for j in range(0, L, WIDTH):
            row = row + contract(x, first + j, load(WIDTH, form, (first + j) * L + k, L))
        squares = fma(row, load(1, x, first + k, 0), squares)
    return np.float64(total(squares))
