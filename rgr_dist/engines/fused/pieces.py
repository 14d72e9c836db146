"""Pieces of the compiled step that every model shares: gather, project, AdamW.

Everything of a lane is laid out so that the inner loops run over sixteen contiguous floats
and need no tails; what is padded is zero and stays zero. Matrices are flat. In names: l
items of a context, d = d_model, D = h * d_k key columns. L, E and C are padded sizes: L of
l and E of d to a multiple of 16, C of the 2 D columns of [W_Q | W_K] to one of ROWS.

    W       [C, E]   [W_Q | W_K] transposed, one row per column; so are its moments
    items   [m, E]   embeddings
    X       [L, E]   embeddings of the context; X_t [E, L] is its transpose
    P       [C, L]   queries (rows 0 … D - 1) and keys (rows D … 2 D - 1); dP its gradient
    scores, winner, labels, pull [L, L]: rows are sources p, columns are targets q
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from llvmlite.binding import get_host_cpu_features

from rgr_dist.engines.fused.moves import add_outer, load, store, transposed
from rgr_dist.engines.fused.tiles import WIDTH, clamp, fma, full, nearest, power_of_two, sqrt

ROWS = 8 if get_host_cpu_features().get("avx512f") else 4
"""Rows of a tile of sums: as many as the registers hold. No number depends on it."""

FloatArray = npt.NDArray[np.float32]

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8

LARGEST_LOGIT = 87.0
"""exp of it and of its negative are ordinary float32 numbers."""

LOG2_E = 1.44269504088896341
LN_2_HIGH, LN_2_LOW = 0.693359375, -2.12194440e-4
EXP_5, EXP_4, EXP_3 = 1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3
EXP_2, EXP_1, EXP_0 = 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1


class Sizes(NamedTuple):
    """Sizes of a lane.

    Attributes:
        length: l.
        L, E, C: padded sizes of l, d_model and the columns.
        T: C padded further to a multiple of 16, for transposes of P.
    """

    h: int
    d_k: int
    length: int
    L: int
    E: int
    C: int
    T: int


class Graph(NamedTuple):
    """The out-neighbours of each item.

    Attributes:
        starts: int32, as in ``Neighbours``; None for a permutation, whose positives weigh l - 1.
        targets: int32; of a permutation, the target of each item.
    """

    starts: npt.NDArray[np.int32] | None
    targets: npt.NDArray[np.int32]


class Scratch(NamedTuple):
    """What a step writes and the next overwrites; float32, flat, zero at first.

    Attributes:
        nodes: the items of the context, as floats [L]; -1 in the padding.
        P: [T, L], of which rows from C on stay zero; P_t [L, T] is its transpose.
        attention, scores_t: of ``fused_softmax``; None in other models.
        messages, error: of ``fused_value``; None in other models.
    """

    nodes: FloatArray
    X: FloatArray
    X_t: FloatArray
    P: FloatArray
    P_t: FloatArray
    dP: FloatArray
    scores: FloatArray
    winner: FloatArray
    winner_t: FloatArray
    labels: FloatArray
    pull: FloatArray
    pull_t: FloatArray
    attention: FloatArray | None
    scores_t: FloatArray | None
    messages: FloatArray | None
    error: FloatArray | None


class Parameters(NamedTuple):
    """W and its two moments, [C * E], and tau with its two, [3]."""

    W: FloatArray
    first: FloatArray
    second: FloatArray
    tau: FloatArray


@numba.njit(nogil=True, inline="always")
def exponential(z: Any) -> Any:
    """exp of a tile of one row, its logits clamped to ``LARGEST_LOGIT`` on either side."""
    z = clamp(z, np.float32(-LARGEST_LOGIT), np.float32(LARGEST_LOGIT))
    # z = n ln 2 + f (Cephes expf)
    n = nearest(z * np.float32(LOG2_E))
    f = fma(n, np.float32(-LN_2_LOW), fma(n, np.float32(-LN_2_HIGH), z))
    y = fma(full(1, EXP_5), f, np.float32(EXP_4))
    y = fma(y, f, np.float32(EXP_3))
    y = fma(y, f, np.float32(EXP_2))
    y = fma(y, f, np.float32(EXP_1))
    y = fma(y, f, np.float32(EXP_0))
    return fma(y, f * f, f + np.float32(1.0)) * power_of_two(n)


@numba.njit(nogil=True)
def gather_rows(table: Any, width: int, nodes: Any, out: Any) -> None:
    """Row p of ``out`` is row ``nodes[p]`` of a table of that (padded) width."""
    for p in range(nodes.size):
        for i in range(0, width, WIDTH):
            store(out, p * width + i, 0, load(1, table, nodes[p] * width + i, 0))


@numba.njit(nogil=True)
def transpose(a: Any, rows: int, columns: int, out: Any) -> None:
    """``out`` [columns, rows] of ``a`` [rows, columns], both multiples of 16."""
    for i in range(0, rows, WIDTH):
        for j in range(0, columns, WIDTH):
            store(out, j * rows + i, rows, transposed(load(WIDTH, a, i * columns + j, columns)))


@numba.njit(nogil=True)
def project(W: Any, X_t: Any, sizes: Any, P: Any) -> None:
    """P = W X_t: queries and keys of the context in one product."""
    E, L = sizes.E, sizes.L
    for c in range(0, sizes.C, ROWS):
        for q in range(0, L, WIDTH):
            sums = full(ROWS, 0.0)
            for i in range(E):
                sums = add_outer(sums, W, c * E + i, E, load(1, X_t, i * L + q, 0))
            store(P, c * L + q, L, sums)


@numba.njit(nogil=True)
def update(theta: Any, scratch: Any, sizes: Any, rate: float, root: float) -> None:
    """Gradient of W, both moments and AdamW without decay, in one pass over W.

    Args:
        rate: learning rate / (1 - beta_1^t).
        root: 1 / sqrt(1 - beta_2^t).
    """
    E, L = sizes.E, sizes.L
    for c in range(0, sizes.C, ROWS):
        for i in range(0, E, WIDTH):
            g = full(ROWS, 0.0)
            for p in range(sizes.length):
                g = add_outer(g, scratch.dP, c * L + p, L, load(1, scratch.X, p * E + i, 0))
            at = c * E + i
            m = load(ROWS, theta.first, at, E)
            m = fma(g - m, np.float32(1 - BETA_1), m)
            store(theta.first, at, E, m)
            v = load(ROWS, theta.second, at, E) * np.float32(BETA_2)
            v = fma(g * g, np.float32(1 - BETA_2), v)
            store(theta.second, at, E, v)
            step = m * np.float32(rate) / fma(sqrt(v), np.float32(root), np.float32(EPSILON))
            store(theta.W, at, E, load(ROWS, theta.W, at, E) - step)


@numba.njit(nogil=True)
def update_tau(tau: Any, gradient: float, rate: float, root: float) -> None:
    """AdamW on the threshold alone."""
    tau[1] += np.float32(1 - BETA_1) * (gradient - tau[1])
    tau[2] = np.float32(BETA_2) * tau[2] + np.float32(1 - BETA_2) * gradient * gradient
    tau[0] -= np.float32(rate) * tau[1] / (np.sqrt(tau[2]) * np.float32(root) + np.float32(EPSILON))
