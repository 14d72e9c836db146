"""Max-over-heads in the compiled step: scores, labels, loss, and the gradient of the winners.

Array names and layout are those of ``fused_pieces``. Another model brings a score piece
with its backward, or another loss.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from rgr_dist.engines.fused.moves import add_outer, contract, load, store, total
from rgr_dist.engines.fused.pieces import ROWS, exponential
from rgr_dist.engines.fused.tiles import (
    WIDTH,
    full,
    where_above,
    where_above_or_nan,
    where_equal,
)


@numba.njit(nogil=True)
def max_over_heads(P: Any, others: Any, M: int, sizes: Any, scores: Any, winner: Any) -> None:
    """S_max(p, q) = max over heads of <q_p, k_q>, and the first head that reaches it.

    Args:
        P: has the queries.
        others: [C, M], has the keys: P itself in training.
        scores, winner: [L, M]; results.
    """
    L, D = sizes.L, sizes.h * sizes.d_k
    for q in range(0, M, WIDTH):
        for p in range(0, sizes.length, ROWS):
            best, best_head = full(ROWS, -np.inf), full(ROWS, 0.0)
            for head in range(sizes.h):
                sums = full(ROWS, 0.0)
                for c in range(head * sizes.d_k, (head + 1) * sizes.d_k):
                    sums = add_outer(sums, P, c * L + p, 1, load(1, others, (D + c) * M + q, 0))
                best_head = where_above_or_nan(sums, best, np.float32(head), best_head)
                best = where_above_or_nan(sums, best, sums, best)
            store(scores, p * M + q, M, best)
            store(winner, p * M + q, M, best_head)


@numba.njit(nogil=True)
def label_targets(nodes: Any, targets: Any, sizes: Any, scratch: Any) -> None:
    """Labels of a permutation graph: 1 - l at the target of each source, else 1; 0 in the padding.

    A label is the pair's weight in the loss, negative where the pair is an edge.
    """
    length, L = sizes.length, sizes.L
    for p in range(length):
        scratch.nodes[p] = nodes[p]
    for p in range(length):
        target = np.float32(targets[nodes[p]])
        for q in range(0, L, WIDTH):
            items = load(1, scratch.nodes, q, 0)
            label = where_equal(items, target, np.float32(1 - length), np.float32(1.0))
            label = where_equal(items, np.float32(-1.0), np.float32(0.0), label)
            store(scratch.labels, p * L + q, 0, label)


LEAST_WEIGHT = np.float32(1e-30)


@numba.njit(nogil=True)
def label_edges(nodes: Any, starts: Any, targets: Any, sizes: Any, scratch: Any) -> None:
    """Labels of any graph; an edge weighs #negatives / #positives of the context (App. A.3).

    Where every pair is an edge, that is as good as nothing, ``LEAST_WEIGHT``, but not 0, which is
    the padding's.
    """
    length, L = sizes.length, sizes.L
    zero, one = np.float32(0.0), np.float32(1.0)
    edges = full(1, 0.0)
    for p in range(length):
        scratch.nodes[p] = nodes[p]
    for p in range(length):
        for q in range(0, L, WIDTH):
            items = load(1, scratch.nodes, q, 0)
            edge = full(1, 0.0)
            for at in range(starts[nodes[p]], starts[nodes[p] + 1]):
                edge = where_equal(items, np.float32(targets[at]), one, edge)
            edges = edges + edge
            label = where_equal(items, np.float32(-1.0), zero, one)
            store(scratch.labels, p * L + q, 0, label - edge - edge)
    positives = total(edges)
    weight = (np.float32(length * length) - positives) / max(positives, one)
    weight = max(weight, LEAST_WEIGHT)
    for i in range(0, length * L, WIDTH):
        label = load(1, scratch.labels, i, 0)
        store(scratch.labels, i, 0, where_above(zero, label, label * weight, label))


@numba.njit(nogil=True)
def label_pairs(nodes: Any, starts: Any, targets: Any, sizes: Any, scratch: Any) -> None:
    """Labels of a context: a pair's weight in the loss, negative where it is an edge."""
    if starts is None:  # known as this is compiled, which leaves only one of the two
        label_targets(nodes, targets, sizes, scratch)
    else:
        label_edges(nodes, starts, targets, sizes, scratch)


@numba.njit(nogil=True)
def logistic_pull(scratch: Any, sizes: Any, tau: float, sharpness: float) -> Any:
    """dL/dS of the weighted logistic loss (App. A.1) into ``pull``; returns its sum.

    With z = alpha (S - tau), a pair that is no edge pulls sigmoid(z), an edge -w sigmoid(-z),
    each times alpha / l^2.
    """
    length, L = sizes.length, sizes.L
    scale = np.float32(sharpness / (length * length))
    zero, one = np.float32(0.0), np.float32(1.0)
    sums = full(1, 0.0)
    for p in range(length):
        for q in range(0, L, WIDTH):
            label = load(1, scratch.labels, p * L + q, 0)
            z = (load(1, scratch.scores, p * L + q, 0) - np.float32(tau)) * np.float32(sharpness)
            z = where_above(label, zero, zero - z, z)
            y = exponential(z)  # here -z of the sigmoid's argument
            pull = where_equal(label, zero, zero, label * scale / (y + one))
            store(scratch.pull, p * L + q, 0, pull)
            sums = sums + pull
    return total(sums)


@numba.njit(nogil=True)
def pull_heads(P: Any, source: int, pull: Any, winner: Any, sizes: Any, out: int, dP: Any) -> None:
    """Gradient of the queries or keys: row out + c sums row source + c over the pulls it won.

    dK[c, q] = sum over p of Q[c, p] pull[p, q] where c's head won (p, q); with ``pull`` and
    ``winner`` transposed it is dQ.
    """
    L = sizes.L
    zero = np.float32(0.0)
    for q in range(0, L, WIDTH):
        for p in range(0, L, WIDTH):
            for head in range(sizes.h):
                won = where_equal(
                    load(WIDTH, winner, p * L + q, L),
                    np.float32(head),
                    load(WIDTH, pull, p * L + q, L),
                    zero,
                )
                for c in range(head * sizes.d_k, (head + 1) * sizes.d_k):
                    row = contract(P, (source + c) * L + p, won)
                    at = (out + c) * L + q
                    if p > 0:
                        row = row + load(1, dP, at, 0)
                    store(dP, at, 0, row)
