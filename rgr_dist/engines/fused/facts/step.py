"""The compiled training step of model ``facts``, from the factors of its logits.

In the notation of ``models.facts``, the logits of a triple's pair are E_q + sum_i A^i_kq V^i_k +
(1 - A^i_kq) V^i_q. Here E = X_Q U, and V^i covers the tokens: keys first, then queries. V^i
and A^i are computed once per step, so that a triple costs h sums of rows and no matrix product.

Arrays are laid out so that inner loops run over sixteen contiguous floats; the padding is
zero and stays zero. Matrices are flat. In names: h heads, c = d_head,qk, v = d_head,vo; K, Q, V and
d are padded to multiples of 16, and T = K + Q tokens.

    X     [d, T]     embeddings, transposed
    W     [D, d]     W_K, W_V and W_Q transposed: from rows 0, h c and h (c + v) on
    W_O   [h v, d],  U [d, V]
    P     [D, T]     W X: keys, values and queries; for queries, only columns from K on
    C     [h v, V]   W_O U
    A     [h, Q, K]  attention on the key
    L_V   [h, T, V]  V^i of every token; L_E [Q, V] is E

``theta`` holds X, W, W_O and U one after another. A name with a d before it is a gradient.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from rgr_dist.engines.fused.adamw import update
from rgr_dist.engines.fused.product import multiply
from rgr_dist.engines.fused.simd import (
    WIDTH,
    exponential,
    fma,
    horizontal_max,
    horizontal_sum,
    splat,
    where_above,
    where_equal,
)
from rgr_dist.engines.fused.simd_memory import FloatArray, load, store, transpose
from rgr_dist.kernel_cache import cached_kernel

LOWEST = np.float32(-3e38)
"""Below every logit; where a search for the largest begins."""


class Sizes(NamedTuple):
    """Sizes of a lane.

    Attributes:
        h, c, v: heads, and their key and value widths.
        K, Q, V, d: padded numbers of keys, queries and values, and padded d_model.
        T: tokens, K + Q.
        queries: |Q|.
        values: |V|.
        residual: whether E is X_Q U, or 0.
        first, last: where the trained part of ``theta`` begins and ends.
    """

    h: int
    c: int
    v: int
    K: int
    Q: int
    V: int
    d: int
    T: int
    queries: int
    values: int
    residual: bool
    first: int
    last: int


class Parts(NamedTuple):
    """The parameters as views of one flat array."""

    X: FloatArray
    W: FloatArray
    W_O: FloatArray
    U: FloatArray


class Workspace(NamedTuple):
    """What a step writes and the next overwrites; float32, flat, zero at first.

    Attributes:
        X_t: [T, d]; U_t: [V, d].
        L_t: the transpose of a part of dL_V, [V, T], or of dL_E, [V, Q].
        row: logits of a triple, then their gradient, [V].
        number: the number of each value, 0 to V - 1, [V].
        is_value: 1 at a value, 0 in the padding, [V].
    """

    X_t: FloatArray
    U_t: FloatArray
    P: FloatArray
    dP: FloatArray
    C: FloatArray
    dC: FloatArray
    A: FloatArray
    dA: FloatArray
    L_V: FloatArray
    dL_V: FloatArray
    L_E: FloatArray
    dL_E: FloatArray
    L_t: FloatArray
    row: FloatArray
    number: FloatArray
    is_value: FloatArray


class Arrays(NamedTuple):
    """Everything that the kernel takes from a lane.

    Attributes:
        theta, first, second, gradient: the parameters, their moments and gradient, flat.
        parts, d_parts: each parameter as a view of theta, and its gradient as a view of gradient.
    """

    theta: FloatArray
    first: FloatArray
    second: FloatArray
    gradient: FloatArray
    parts: Parts
    d_parts: Parts
    work: Workspace
    sizes: Sizes


@cached_kernel(nogil=True)
def train_facts(
    lane: Any,
    triples: Any,
    begins: Any,
    ends: Any,
    rates: Any,
    roots: Any,
    decays: Any,
    tau: float,
) -> Any:
    """Take one training step on each batch in turn; without batches, do a check.

    Args:
        lane: its ``Arrays``.
        triples: int32 [n, 3]; batch i is ``triples[begins[i] : ends[i]]``.
        rates, roots: for each step, as ``adamw`` takes them, float32.
        decays: 1 - learning rate * weight decay of each step, float32.

    Returns:
        Without batches, how many triples are right by argmax and by softmax≥tau. One kernel does
        both steps and checks, since compiling it takes longer than a brief training.
    """
    work, sizes, steps = lane.work, lane.sizes, begins.size
    for index in range(max(1, steps)):
        forward(lane.parts, work, sizes)
        if steps == 0:
            return count_right(work, sizes, triples, tau)
        batch_backward(triples, begins[index], ends[index], work, sizes)
        backward(lane.parts, lane.d_parts, work, sizes)
        update(
            lane.theta, lane.first, lane.second, lane.gradient, sizes.first, sizes.last,
            rates[index], roots[index], decays[index],
        )  # fmt: skip
    return 0, 0


@numba.njit(nogil=True, inline="always")
def count_right(work: Any, sizes: Any, triples: Any, tau: float) -> Any:
    """How many triples are right by argmax, and how many by softmax≥tau."""
    A, L_V, L_E, row, mask = work.A, work.L_V, work.L_E, work.row, work.is_value
    by_argmax = by_softmax = 0
    zero, one = np.float32(0.0), np.float32(1.0)
    for at in range(triples.shape[0]):
        largest = pair_logits(triples[at, 0], triples[at, 1], sizes, A, L_V, L_E, row, mask)
        right = row[triples[at, 2]]
        total, below = splat(1, 0.0), splat(1, 0.0)
        for u in range(0, sizes.V, WIDTH):
            is_value, z = load(1, mask, u, 0), load(1, row, u, 0)
            total = total + exponential(z - largest) * is_value
            below = below + where_above(splat(1, right), z, one, zero) * is_value
        by_argmax += horizontal_sum(below) == np.float32(sizes.values - 1)
        chance = horizontal_sum(exponential(splat(1, right - largest))) / np.float32(WIDTH)
        by_softmax += chance / horizontal_sum(total) >= np.float32(tau)
    return by_argmax, by_softmax


@numba.njit(nogil=True, inline="always")
def forward(parts: Any, work: Any, sizes: Any) -> None:
    """Compute the factors of the logits."""
    h, c, v, K, Q, V, d, T = (
        sizes.h, sizes.c, sizes.v, sizes.K, sizes.Q, sizes.V, sizes.d, sizes.T,
    )  # fmt: skip
    shared, queries = h * (c + v), h * (c + v)
    multiply(work.P, 0, T, parts.W, 0, d, 1, parts.X, 0, T, shared, d, T, False)
    multiply(
        work.P, queries * T + K, T, parts.W, queries * d, d, 1, parts.X, K, T, h * c, d, Q, False
    )
    multiply(work.C, 0, V, parts.W_O, 0, d, 1, parts.U, 0, V, h * v, d, V, False)
    if sizes.residual:
        multiply(work.L_E, 0, V, parts.X, K, 1, T, parts.U, 0, V, sizes.queries, d, V, False)
    scale = np.float32(1.0 / np.sqrt(c))
    for i in range(h):
        rows = (h * c + i * v) * T
        multiply(work.L_V, i * T * V, V, work.P, rows, 1, T, work.C, i * v * V, V, T, v, V, False)
        for q in range(sizes.queries):
            attend(work, sizes, i, q, scale)


@numba.njit(nogil=True, inline="always")
def attend(work: Any, sizes: Any, i: int, q: int, scale: Any) -> None:
    """Compute A^i_kq = sigmoid(s_k - s_q) for all keys."""
    h, c, v, K, T = sizes.h, sizes.c, sizes.v, sizes.K, sizes.T
    query, key = (h * (c + v) + i * c) * T + K + q, i * c * T
    own = np.float32(0.0)
    for j in range(c):
        own += work.P[query + j * T] * work.P[key + j * T + K + q]
    for k in range(0, K, WIDTH):
        s = splat(1, -own)
        for j in range(c):
            s = fma(load(1, work.P, key + j * T + k, 0), work.P[query + j * T], s)
        y = exponential(s * -scale)
        store(work.A, (i * sizes.Q + q) * K + k, 0, splat(1, 1.0) / (y + np.float32(1.0)))


@numba.njit(nogil=True, inline="always")
def pair_logits(k: int, q: int, sizes: Any, A: Any, L_V: Any, L_E: Any, row: Any, mask: Any) -> Any:
    """Write the logits of a pair to ``row``; returns the largest."""
    V = sizes.V
    most = splat(1, LOWEST)
    for u in range(0, V, WIDTH):
        z = load(1, L_E, q * V + u, 0)
        for i in range(sizes.h):
            a = A[(i * sizes.Q + q) * sizes.K + k]
            z = fma(load(1, L_V, (i * sizes.T + k) * V + u, 0), a, z)
            z = fma(load(1, L_V, (i * sizes.T + sizes.K + q) * V + u, 0), np.float32(1.0) - a, z)
        store(row, u, 0, z)
        z = where_above(load(1, mask, u, 0), np.float32(0.0), z, LOWEST)
        most = where_above(z, most, z, most)
    return horizontal_max(most)


@numba.njit(nogil=True, inline="always")
def batch_backward(triples: Any, begin: int, end: int, work: Any, sizes: Any) -> None:
    """Compute the gradient of the logits' factors, from the mean cross-entropy of a batch."""
    A, L_V, L_E, row, mask = work.A, work.L_V, work.L_E, work.row, work.is_value
    dA, dL_V, dL_E, number = work.dA, work.dL_V, work.dL_E, work.number
    dA[:] = dL_V[:] = dL_E[:] = np.float32(0.0)
    V, one = sizes.V, np.float32(1.0)
    share = one / np.float32(end - begin)
    for at in range(begin, end):
        k, q = triples[at, 0], triples[at, 1]
        largest = pair_logits(k, q, sizes, A, L_V, L_E, row, mask)
        total = splat(1, 0.0)
        for u in range(0, V, WIDTH):
            y = exponential(load(1, row, u, 0) - largest) * load(1, mask, u, 0)
            store(row, u, 0, y)
            total = total + y
        factor = share / horizontal_sum(total)
        value = np.float32(triples[at, 2])
        for u in range(0, V, WIDTH):
            g = load(1, row, u, 0) * factor
            store(row, u, 0, where_equal(load(1, number, u, 0), value, g - share, g))
        for i in range(sizes.h):
            a = A[(i * sizes.Q + q) * sizes.K + k]
            key, query = (i * sizes.T + k) * V, (i * sizes.T + sizes.K + q) * V
            d_a = splat(1, 0.0)
            for u in range(0, V, WIDTH):
                g = load(1, row, u, 0)
                d_a = fma(g, load(1, L_V, key + u, 0) - load(1, L_V, query + u, 0), d_a)
                store(dL_V, key + u, 0, fma(g, a, load(1, dL_V, key + u, 0)))
                store(dL_V, query + u, 0, fma(g, one - a, load(1, dL_V, query + u, 0)))
            dA[(i * sizes.Q + q) * sizes.K + k] = horizontal_sum(d_a)
        if sizes.residual:
            for u in range(0, V, WIDTH):
                sum_ = load(1, dL_E, q * V + u, 0) + load(1, row, u, 0)
                store(dL_E, q * V + u, 0, sum_)


@numba.njit(nogil=True, inline="always")
def backward(parts: Any, d_parts: Any, work: Any, sizes: Any) -> None:
    """Compute the gradient of the parameters from that of the factors."""
    h, c, v, K, Q, V, d, T = (
        sizes.h, sizes.c, sizes.v, sizes.K, sizes.Q, sizes.V, sizes.d, sizes.T,
    )  # fmt: skip
    D, shared = h * (2 * c + v), h * (c + v)
    scale = np.float32(1.0 / np.sqrt(c))
    for i in range(h):
        rows, part = (h * c + i * v) * T, i * v * V
        multiply(work.dC, part, V, work.P, rows, T, 1, work.dL_V, i * T * V, V, v, T, V, False)
        transpose(work.dL_V[i * T * V : (i + 1) * T * V], T, V, work.L_t)
        multiply(work.dP, rows, T, work.C, part, V, 1, work.L_t, 0, T, v, V, T, False)
        attend_backward(work, sizes, i, scale)
    transpose(parts.X, d, T, work.X_t)
    transpose(parts.U, d, V, work.U_t)
    multiply(d_parts.W_O, 0, d, work.dC, 0, V, 1, work.U_t, 0, d, h * v, V, d, False)
    multiply(d_parts.U, 0, V, parts.W_O, 0, 1, d, work.dC, 0, V, d, h * v, V, False)
    multiply(d_parts.W, 0, d, work.dP, 0, T, 1, work.X_t, 0, d, shared, T, d, False)
    multiply(
        d_parts.W, shared * d, d, work.dP, shared * T + K, T, 1, work.X_t, K * d, d,
        h * c, Q, d, False,
    )  # fmt: skip
    if sizes.first == 0:
        multiply(d_parts.X, 0, T, parts.W, 0, 1, d, work.dP, 0, T, d, D, T, False)
    if sizes.residual:
        multiply(d_parts.U, 0, V, parts.X, K, T, 1, work.dL_E, 0, V, d, sizes.queries, V, True)
        if sizes.first == 0:
            transpose(work.dL_E, Q, V, work.L_t)
            multiply(d_parts.X, K, T, parts.U, 0, V, 1, work.L_t, 0, Q, d, V, Q, True)


@numba.njit(nogil=True, inline="always")
def attend_backward(work: Any, sizes: Any, i: int, scale: Any) -> None:
    """Compute gradients of a head's keys and queries from those of its attention."""
    h, c, v, K, T = sizes.h, sizes.c, sizes.v, sizes.K, sizes.T
    query, key = (h * (c + v) + i * c) * T, i * c * T
    one = np.float32(1.0)
    for j in range(c):
        for t in range(0, T, WIDTH):
            store(work.dP, key + j * T + t, 0, splat(1, 0.0))
    for q in range(sizes.queries):
        at = (i * sizes.Q + q) * K
        own = splat(1, 0.0)
        for k in range(0, K, WIDTH):
            a = load(1, work.A, at + k, 0)
            d_s = load(1, work.dA, at + k, 0) * scale * a * (splat(1, one) - a)
            store(work.dA, at + k, 0, d_s)
            own = own + d_s
        d_own = -horizontal_sum(own)
        for j in range(c):
            x = work.P[query + j * T + K + q]
            d_x = splat(1, 0.0)
            for k in range(0, K, WIDTH):
                d_s = load(1, work.dA, at + k, 0)
                d_x = fma(d_s, load(1, work.P, key + j * T + k, 0), d_x)
                to = key + j * T + k
                store(work.dP, to, 0, fma(d_s, x, load(1, work.dP, to, 0)))
            own_key = key + j * T + K + q
            work.dP[own_key] = d_own * x
            work.dP[query + j * T + K + q] = horizontal_sum(d_x) + d_own * work.P[own_key]
