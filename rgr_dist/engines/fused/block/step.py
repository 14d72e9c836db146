"""The compiled training step of model ``transformer``: forward, backward, AdamW.

It computes what ``models.transformer`` does, in the order of ``lanes.transformer``: the embeddings
are frozen, so no gradient goes through Z, the norm of the input; and since only one position has a
query, W_K and W_V of a head are each applied to one vector instead of n: s = (W_K q) . Z, and
mixed = p Z, from which W_V makes the head's output.

A batch is taken sixteen examples at a time, so that all their activations stay in cache. These
are [features, 16]: a row is a register, norms, softmax and attention are sums of registers, and no
width has to be a multiple of anything. Matrices are flat. In names: h heads, k = d_k, D = h k,
v = d / h, d = d_model, n positions, f = d_ff, V = m + 1 answers; E is d, padded to a multiple of
16.

    W_Q, W_K [D, E], W_V [d, E], W_1 [f, E]   transposed: a row for each output
    W_O [d, E], W_2 [f, E]                    a row for each input
    Z [n, E, 16]   norm of the input;  x [E, 16] the query's own embedding
    Q [D, 16];  R [h, E, 16] = W_K q;  P [h, n, 16] attention;  mixed [h, E, 16];  heads [d, 16]
    attended, normed, last [E, 16];  hidden, active [f, 16];  logits [V, 16]

``theta`` holds the parameters one after another. A name with a d before it is a gradient.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from rgr_dist.engines.fused.adamw import update
from rgr_dist.engines.fused.block.attention import (
    mix,
    pair_sums,
    softmax_backward,
    softmax_columns,
)
from rgr_dist.engines.fused.block.columns import (
    add_row_sums,
    gelu,
    gelu_backward,
    normalise,
    normalise_backward,
)
from rgr_dist.engines.fused.product import multiply
from rgr_dist.engines.fused.simd import WIDTH, exponential, splat, transposed, where_above
from rgr_dist.engines.fused.simd_memory import FloatArray, load, store, transpose
from rgr_dist.problem.kernel_cache import cached_kernel


class Sizes(NamedTuple):
    """Sizes of a lane, as above."""

    h: int
    k: int
    v: int
    d: int
    E: int
    n: int
    f: int
    V: int


class Parts(NamedTuple):
    """The parameters as views of one flat array, in their order there."""

    W_V: FloatArray
    W_O: FloatArray
    W_1: FloatArray
    b_1: FloatArray
    W_2: FloatArray
    b_2: FloatArray
    W_Q: FloatArray
    W_K: FloatArray


class Workspace(NamedTuple):
    """What sixteen examples write and the next sixteen overwrite; float32, flat, zero at first.

    Attributes:
        rows: a position of each example, before it is transposed, [16, E].
        inverse: 1 / the standard deviation of the vector at the query, [16].
        turned: a transpose, [16, E].
    """

    rows: FloatArray
    Z: FloatArray
    x: FloatArray
    Q: FloatArray
    dQ: FloatArray
    R: FloatArray
    dR: FloatArray
    P: FloatArray
    dP: FloatArray
    mixed: FloatArray
    d_mixed: FloatArray
    heads: FloatArray
    d_heads: FloatArray
    attended: FloatArray
    d_attended: FloatArray
    normed: FloatArray
    d_normed: FloatArray
    inverse: FloatArray
    hidden: FloatArray
    active: FloatArray
    d_active: FloatArray
    last: FloatArray
    d_last: FloatArray
    logits: FloatArray
    turned: FloatArray


class Arrays(NamedTuple):
    """Everything that the kernel takes from a lane.

    Attributes:
        table: embeddings of the items, then of NULL, [V, E].
        theta, first, second, gradient: the parameters, their moments and gradient, flat.
        parts, d_parts: each parameter as a view of theta, and its gradient as a view of gradient.
    """

    table: FloatArray
    theta: FloatArray
    first: FloatArray
    second: FloatArray
    gradient: FloatArray
    parts: Parts
    d_parts: Parts
    work: Workspace
    sizes: Sizes


@cached_kernel(nogil=True)
def train_block(lane: Any, batches: Any, rates: Any, roots: Any, decays: Any) -> Any:
    """Take one training step on each batch in turn; without rates, count the answers.

    Args:
        lane: its ``Arrays``.
        batches: int32 [n, size, 2 l + 2]: query, the two items of each slot, answer.
        rates, roots: for each step, as ``adamw`` takes them, float32.
        decays: 1 - learning rate * weight decay of each step, float32.

    Returns:
        Without rates, how many answers of the one batch are right, and how many are NULL.
    """
    table, parts, d_parts, work, sizes = (
        lane.table, lane.parts, lane.d_parts, lane.work, lane.sizes,
    )  # fmt: skip
    right = nulls = 0
    size = batches.shape[1]
    for step in range(batches.shape[0]):
        lane.gradient[:] = np.float32(0.0)
        for start in range(0, size, WIDTH):
            examples = batches[step, start : min(start + WIDTH, size)]
            read(examples, table, work, sizes)
            forward(table, parts, work, sizes)
            if rates.size == 0:
                counted = count_answers(examples, work.logits, sizes.V)
                right, nulls = right + counted[0], nulls + counted[1]
            else:
                loss_backward(examples, np.float32(1.0 / size), work.logits, sizes.V)
                backward(table, parts, d_parts, work, sizes)
        if rates.size:
            update(
                lane.theta, lane.first, lane.second, lane.gradient, 0, lane.theta.size,
                rates[step], roots[step], decays[step],
            )  # fmt: skip
    return right, nulls


@numba.njit(nogil=True)
def read(examples: Any, table: Any, work: Any, sizes: Any) -> None:
    """Read at most sixteen examples: the norm of every position, and the query's own embedding."""
    n, d, E, Z, rows = sizes.n, sizes.d, sizes.E, work.Z, work.rows
    for position in range(n):
        for r in range(WIDTH):
            e = min(r, examples.shape[0] - 1)  # padding repeats the last example
            if position < n - 2:
                one = examples[e, 1 + 2 * position] * E
                other = examples[e, 2 + 2 * position] * E
                for i in range(0, E, WIDTH):
                    both = load(1, table, one + i, 0) + load(1, table, other + i, 0)
                    store(rows, r * E + i, 0, both)
            else:
                one = (sizes.V - 1 if position == n - 2 else examples[e, 0]) * E
                for i in range(0, E, WIDTH):
                    store(rows, r * E + i, 0, load(1, table, one + i, 0))
        at = position * E * WIDTH
        for i in range(0, E, WIDTH):
            store(Z, at + i * WIDTH, WIDTH, transposed(load(WIDTH, rows, i, E)))
        if position == n - 1:
            work.x[:] = Z[at : at + E * WIDTH]
        normalise(Z, at, Z, at, d, E)


@numba.njit(nogil=True)
def forward(table: Any, parts: Any, work: Any, sizes: Any) -> None:
    """Compute the logits of the examples that were read."""
    h, k, v, d, E, n, f, V = (
        sizes.h, sizes.k, sizes.v, sizes.d, sizes.E, sizes.n, sizes.f, sizes.V,
    )  # fmt: skip
    C = WIDTH
    multiply(work.Q, 0, C, parts.W_Q, 0, E, 1, work.Z, (n - 1) * E * C, C, h * k, d, C, False)
    for i in range(h):
        at, own = i * E * C, i * k
        multiply(work.R, at, C, parts.W_K, own * E, 1, E, work.Q, own * C, C, d, k, C, False)
    pair_sums(work.P, work.R, work.Z, sizes)
    softmax_columns(work.P, np.float32(k**-0.5), h, n)
    mix(work.mixed, work.P, work.Z, sizes)
    for i in range(h):
        at, own = i * E * C, i * v
        multiply(
            work.heads, own * C, C, parts.W_V, own * E, E, 1, work.mixed, at, C, v, d, C, False
        )
    work.attended[:] = work.x
    multiply(work.attended, 0, C, parts.W_O, 0, 1, E, work.heads, 0, C, d, d, C, True)
    store(work.inverse, 0, 0, normalise(work.attended, 0, work.normed, 0, d, E))
    for i in range(f):
        store(work.hidden, i * C, 0, splat(1, parts.b_1[i]))
    multiply(work.hidden, 0, C, parts.W_1, 0, E, 1, work.normed, 0, C, f, d, C, True)
    gelu(work.hidden, work.active, f)
    for i in range(d):
        store(work.last, i * C, 0, load(1, work.attended, i * C, 0) + parts.b_2[i])
    multiply(work.last, 0, C, parts.W_2, 0, 1, E, work.active, 0, C, d, f, C, True)
    multiply(work.logits, 0, C, table, 0, E, 1, work.last, 0, C, V, d, C, False)


@numba.njit(nogil=True)
def count_answers(examples: Any, logits: Any, V: int) -> Any:
    """How many examples have the largest logit at their answer, and how many at NULL."""
    largest, answer = load(1, logits, 0, 0), splat(1, 0.0)
    for u in range(1, V):
        z = load(1, logits, u * WIDTH, 0)
        answer = where_above(z, largest, np.float32(u), answer)
        largest = where_above(z, largest, z, largest)
    answers = np.empty(WIDTH, dtype=np.float32)
    store(answers, 0, 0, answer)
    right = nulls = 0
    for r in range(examples.shape[0]):
        right += answers[r] == examples[r, -1]
        nulls += answers[r] == V - 1
    return right, nulls


@numba.njit(nogil=True)
def loss_backward(examples: Any, share: Any, logits: Any, V: int) -> None:
    """Replace the logits with the gradient of the mean cross-entropy; it is 0 for padding."""
    largest = load(1, logits, 0, 0)
    for u in range(1, V):
        z = load(1, logits, u * WIDTH, 0)
        largest = where_above(z, largest, z, largest)
    total = splat(1, 0.0)
    for u in range(V):
        y = exponential(load(1, logits, u * WIDTH, 0) - largest)
        store(logits, u * WIDTH, 0, y)
        total = total + y
    weights = np.zeros(WIDTH, dtype=np.float32)
    weights[: examples.shape[0]] = share
    factor = load(1, weights, 0, 0) / total
    for u in range(V):
        store(logits, u * WIDTH, 0, load(1, logits, u * WIDTH, 0) * factor)
    for r in range(examples.shape[0]):
        logits[examples[r, -1] * WIDTH + r] -= share


@numba.njit(nogil=True)
def backward(table: Any, parts: Any, d_parts: Any, work: Any, sizes: Any) -> None:
    """Add the examples' share of the parameters' gradient, from the gradient of the logits."""
    h, k, v, d, E, n, f, V = (
        sizes.h, sizes.k, sizes.v, sizes.d, sizes.E, sizes.n, sizes.f, sizes.V,
    )  # fmt: skip
    C, turned = WIDTH, work.turned
    multiply(work.d_last, 0, C, table, 0, 1, E, work.logits, 0, C, d, V, C, False)
    add_row_sums(d_parts.b_2, work.d_last, d)
    transpose(work.d_last, E, C, turned)
    multiply(d_parts.W_2, 0, E, work.active, 0, C, 1, turned, 0, E, f, C, E, True)
    multiply(work.d_active, 0, C, parts.W_2, 0, E, 1, work.d_last, 0, C, f, d, C, False)
    gelu_backward(work.hidden, work.d_active, f)
    add_row_sums(d_parts.b_1, work.d_active, f)
    transpose(work.normed, E, C, turned)
    multiply(d_parts.W_1, 0, E, work.d_active, 0, C, 1, turned, 0, E, f, C, E, True)
    multiply(work.d_normed, 0, C, parts.W_1, 0, 1, E, work.d_active, 0, C, d, f, C, False)
    normalise_backward(work.d_normed, work.normed, work.inverse, work.d_last, work.d_attended, d)
    transpose(work.d_attended, E, C, turned)
    multiply(d_parts.W_O, 0, E, work.heads, 0, C, 1, turned, 0, E, d, C, E, True)
    multiply(work.d_heads, 0, C, parts.W_O, 0, E, 1, work.d_attended, 0, C, d, d, C, False)
    for i in range(h):
        at, own = i * E * C, i * v
        g = own * C
        transpose(work.mixed[at : at + E * C], E, C, turned)
        multiply(d_parts.W_V, own * E, E, work.d_heads, g, C, 1, turned, 0, E, v, C, E, True)
        multiply(work.d_mixed, at, C, parts.W_V, own * E, 1, E, work.d_heads, g, C, d, v, C, False)
    pair_sums(work.dP, work.d_mixed, work.Z, sizes)
    softmax_backward(work.dP, work.P, np.float32(k**-0.5), h, n)
    mix(work.dR, work.dP, work.Z, sizes)
    for i in range(h):
        at, own = i * E * C, i * k
        transpose(work.dR[at : at + E * C], E, C, turned)
        multiply(d_parts.W_K, own * E, E, work.Q, own * C, C, 1, turned, 0, E, k, C, E, True)
        multiply(work.dQ, own * C, C, parts.W_K, own * E, E, 1, work.dR, at, C, k, d, C, False)
    transpose(work.Z[(n - 1) * E * C :], E, C, turned)
    multiply(d_parts.W_Q, 0, E, work.dQ, 0, C, 1, turned, 0, E, h * k, C, E, True)
