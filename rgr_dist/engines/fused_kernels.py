"""The compiled loops of a lane: train on contexts, project every item, count edges.

Only these are cached on disk. Numba's cache watches the file that a cached function stands
in, and not the files of the pieces it inlines: ``PIECES`` brings their change into this file.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from rgr_dist.engines.fused_max import label_targets, logistic_pull, max_over_heads, pull_heads
from rgr_dist.engines.fused_moves import load, total
from rgr_dist.engines.fused_pieces import gather_rows, project, transpose, update, update_tau
from rgr_dist.engines.fused_tiles import WIDTH, full, where_above, where_equal

PIECES = "f3979288962d6c1e"
"""Digest of the files that are inlined here; a test fails until it is renewed."""


@numba.njit(nogil=True, cache=True)
def train_steps(
    theta: Any,
    scratch: Any,
    sizes: Any,
    items: Any,
    targets: Any,
    contexts: Any,
    sharpness: float,
    rates: Any,
    roots: Any,
) -> None:
    """One training step on each context in turn.

    Args:
        items: embeddings, float32 [m * E].
        targets: int32 [m].
        contexts: int32 [n, l].
        rates, roots: step sizes and bias corrections of AdamW, float32 [n].
    """
    D = sizes.h * sizes.d_k
    L = sizes.L
    for index in range(contexts.shape[0]):
        nodes = contexts[index]
        gather_rows(items, sizes.E, nodes, scratch.X)
        transpose(scratch.X, L, sizes.E, scratch.X_t)
        project(theta.W, scratch.X_t, sizes, scratch.P)
        max_over_heads(scratch.P, sizes, scratch.scores, scratch.winner)
        label_targets(nodes, targets, sizes, scratch)
        pulled = logistic_pull(scratch, sizes, theta.tau[0], sharpness)
        pull_heads(scratch.P, 0, scratch.pull, scratch.winner, sizes, D, scratch.dP)
        transpose(scratch.pull, L, L, scratch.pull_t)
        transpose(scratch.winner, L, L, scratch.winner_t)
        pull_heads(scratch.P, D, scratch.pull_t, scratch.winner_t, sizes, 0, scratch.dP)
        update(theta, scratch, sizes, rates[index], roots[index])
        update_tau(theta.tau, -pulled, rates[index], roots[index])


@numba.njit(nogil=True, cache=True)
def project_items(theta: Any, scratch: Any, sizes: Any, items: Any, table: Any) -> None:
    """Queries and keys of all items into ``table`` [m, T], m padded to a multiple of L."""
    L, E, T = sizes.L, sizes.E, sizes.T
    for first in range(0, items.size // E, L):
        transpose(items[first * E : (first + L) * E], L, E, scratch.X_t)
        project(theta.W, scratch.X_t, sizes, scratch.P)
        transpose(scratch.P, T, L, table[first * T : (first + L) * T])


@numba.njit(nogil=True, cache=True)
def count_in_contexts(
    theta: Any,
    scratch: Any,
    sizes: Any,
    items: Any,
    targets: Any,
    contexts: Any,
    table: Any,
    errors: Any,
) -> Any:
    """True positives and predicted edges over contexts, at the decision rule S > tau.

    Args:
        table: what ``project_items`` made; empty: project each context by itself.
        errors: int64 [n], the wrong pairs of each context; a result.
    """
    length, L = sizes.length, sizes.L
    zero, one = np.float32(0.0), np.float32(1.0)
    true_positives, predicted = 0, 0
    for index in range(contexts.shape[0]):
        nodes = contexts[index]
        if table.size > 0:
            gather_rows(table, sizes.T, nodes, scratch.P_t)
            transpose(scratch.P_t, L, sizes.T, scratch.P)
        else:
            gather_rows(items, sizes.E, nodes, scratch.X)
            transpose(scratch.X, L, sizes.E, scratch.X_t)
            project(theta.W, scratch.X_t, sizes, scratch.P)
        max_over_heads(scratch.P, sizes, scratch.scores, scratch.winner)
        label_targets(nodes, targets, sizes, scratch)
        hits, calls, edges = full(1, 0.0), full(1, 0.0), full(1, 0.0)
        for p in range(length):
            for q in range(0, L, WIDTH):
                label = load(1, scratch.labels, p * L + q, 0)
                call = where_above(load(1, scratch.scores, p * L + q, 0), theta.tau[0], one, zero)
                call = where_equal(label, zero, zero, call)
                edge = where_above(zero, label, one, zero)
                hits, calls, edges = hits + call * edge, calls + call, edges + edge
        tp, called, actual = int(total(hits)), int(total(calls)), int(total(edges))
        errors[index] = called + actual - 2 * tp
        true_positives += tp
        predicted += called
    return true_positives, predicted


@numba.njit(nogil=True, cache=True)
def count_in_pairs(
    theta: Any, sizes: Any, items_t: Any, P: Any, scores: Any, winner: Any, times: Any
) -> Any:
    """True positives and predicted edges over contexts, from how often each pair of items occurs.

    Args:
        sizes: those of a context that holds all m items; ``items_t`` [E, L], ``P``, ``scores``
            and ``winner`` (all three scratch) are of these sizes.
        times: float32 [L * L], how often a pair occurs; negative where it is an edge.
    """
    L = sizes.L
    zero = np.float32(0.0)
    true_positives, predicted = 0, 0
    project(theta.W, items_t, sizes, P)
    max_over_heads(P, sizes, scores, winner)
    for p in range(sizes.length):
        hits, misses = full(1, 0.0), full(1, 0.0)
        for q in range(0, L, WIDTH):
            count = load(1, times, p * L + q, 0)
            count = where_above(load(1, scores, p * L + q, 0), theta.tau[0], count, zero)
            hits = hits + where_above(zero, count, zero - count, zero)
            misses = misses + where_above(count, zero, count, zero)
        true_positives += int(total(hits))
        predicted += int(total(hits)) + int(total(misses))
    return true_positives, predicted
