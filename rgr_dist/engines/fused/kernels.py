"""The compiled loops of a lane: train on contexts, project every item, count edges.

Only these are cached on disk. Numba's cache watches the file that a cached function stands
in, and not the files of the pieces it inlines: ``PIECES`` brings their change into this file.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from rgr_dist.engines.fused.max import label_pairs, max_over_heads
from rgr_dist.engines.fused.models import combine_heads, project_context, pull_pairs, score_context
from rgr_dist.engines.fused.moves import load, total
from rgr_dist.engines.fused.pieces import project, transpose, update
from rgr_dist.engines.fused.tiles import WIDTH, full, where_above, where_equal

PIECES = "21a6574eb8cb41fa"
"""Digest of the files that are inlined here; a test fails until it is renewed."""


@numba.njit(nogil=True, cache=True)
def train_steps(
    theta: Any,
    scratch: Any,
    sizes: Any,
    items: Any,
    messages: Any,
    graph: Any,
    contexts: Any,
    sharpness: float,
    rates: Any,
    roots: Any,
) -> None:
    """One training step on each context in turn.

    Args:
        items: embeddings, float32 [m * E].
        messages: float32 [m * E], or None.
        graph: the out-neighbours of each item.
        contexts: int32 [n, l].
        rates, roots: step sizes and bias corrections of AdamW, float32 [n].
    """
    for index in range(contexts.shape[0]):
        nodes, rate, root = contexts[index], rates[index], roots[index]
        project_context(theta, scratch, sizes, items, nodes)
        combine_heads(scratch.P, sizes, scratch.attention, scratch)
        pull_pairs(theta, scratch, sizes, nodes, graph, messages, sharpness, rate, root)
        update(theta, scratch, sizes, rate, root)


@numba.njit(nogil=True, cache=True)
def project_items(theta: Any, scratch: Any, sizes: Any, items: Any, table: Any) -> None:
    """Queries and keys of all items into ``table`` [m, T], m padded to a multiple of L."""
    L, E, T = sizes.L, sizes.E, sizes.T
    for first in range(0, items.size // E, L):
        transpose(items[first * E : (first + L) * E], L, E, scratch.X_t)
        project(theta.W, scratch.X_t, sizes, scratch.P)
        transpose(scratch.P, T, L, table[first * T : (first + L) * T])


@numba.njit(nogil=True)
def is_hopeless(tally: Any, hits: int, calls: int, wrong: int, bound: Any) -> Any:
    """Add to a tally of true positives, predicted edges and errors; can F1 still be above a value?

    With E errors so far and A edges in all it is at most 2 A / (2 A + E), since
    F1 = 2 TP / (2 TP + FP + FN) and TP <= A.

    Args:
        tally: int64 [3].
        bound: A, and the value as a float64; below zero if F1 is wanted whatever it is.
    """
    tally[0] += hits
    tally[1] += calls
    tally[2] += wrong
    actual, above = bound
    return tally[2] > 0 and 2 * actual / (2 * actual + tally[2]) <= above


@numba.njit(nogil=True, cache=True)
def count_in_contexts(
    theta: Any,
    scratch: Any,
    sizes: Any,
    items: Any,
    graph: Any,
    contexts: Any,
    table: Any,
    order: Any,
    errors: Any,
    tally: Any,
    bound: Any,
) -> Any:
    """Count edges over contexts, in this order; False as soon as F1 cannot be above a value.

    Args:
        table: what ``project_items`` made; empty: project each context by itself.
        order: int64 [some], which of the contexts.
        errors: int64 [n], the wrong pairs of each context; a result.
        tally, bound: see ``is_hopeless``; the tally is added to.
    """
    length, L = sizes.length, sizes.L
    zero, one = np.float32(0.0), np.float32(1.0)
    for index in order:
        nodes = contexts[index]
        score_context(theta, scratch, sizes, items, nodes, table)
        label_pairs(nodes, graph.starts, graph.targets, sizes, scratch)
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
        if is_hopeless(tally, tp, called, errors[index], bound):
            return False
    return True


@numba.njit(nogil=True, cache=True)
def count_pairs(contexts: Any, M: int, times: Any) -> None:
    """Add to ``times`` [m, M] how many contexts hold each ordered pair of items."""
    for index in range(contexts.shape[0]):
        for source in contexts[index]:
            for target in contexts[index]:
                times[source * M + target] += np.float32(1.0)


@numba.njit(nogil=True, cache=True)
def count_in_pairs(
    theta: Any,
    scratch: Any,
    sizes: Any,
    items: Any,
    all_sizes: Any,
    items_t: Any,
    P: Any,
    sources: Any,
    scores: Any,
    winner: Any,
    times: Any,
    errors: Any,
    tally: Any,
    bound: Any,
) -> Any:
    """Count edges from how often each pair occurs; False as soon as F1 cannot be above a value.

    Args:
        sources: int64 [some], the items whose pairs with every item are counted, in this order.
        all_sizes: those of a context that holds all m items, M for L; ``items_t`` is [E, M].
        P: [C, M], ``scores`` and ``winner`` [L, M]: scratch.
        times: float32 [m, M], how often a pair occurs; negative where it is an edge.
        errors: int64 [m], the wrong pairs of each source; a result.
        tally, bound: see ``is_hopeless``; the tally is added to.
    """
    M = all_sizes.L
    zero = np.float32(0.0)
    project(theta.W, items_t, all_sizes, P)
    for first in range(0, sources.size, sizes.length):
        some = sources[first : first + sizes.length]
        project_context(theta, scratch, sizes, items, some)
        max_over_heads(scratch.P, P, M, sizes, scores, winner)
        for p in range(some.size):
            hits, missed, false = full(1, 0.0), full(1, 0.0), full(1, 0.0)
            for q in range(0, M, WIDTH):
                count = load(1, times, some[p] * M + q, 0)
                call = where_above(load(1, scores, p * M + q, 0), theta.tau[0], count, zero)
                hits = hits + where_above(zero, call, zero - call, zero)
                false = false + where_above(call, zero, call, zero)
                missed = missed + where_above(zero, count, call - count, zero)
            tp, fp = int(total(hits)), int(total(false))
            errors[some[p]] = fp + int(total(missed))
            if is_hopeless(tally, tp, tp + fp, errors[some[p]], bound):
                return False
    return True
