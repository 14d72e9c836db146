"""The compiled loops that score a lane: count edges, or sum the errors of retrieved messages.

A ``lane`` is its ``Arrays``. Counts are int64 [3]: true positives, predicted edges and errors so
far. A ``bound`` on F1 is the total number of actual edges and the value that F1 must exceed, a
float64; a negative value never ends a count early.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from rgr_dist.engines.fused.heads import heads_forward, max_forward
from rgr_dist.engines.fused.losses import label_pairs
from rgr_dist.engines.fused.simd import (
    WIDTH,
    fma,
    horizontal_sum,
    splat,
    where_above,
    where_equal,
)
from rgr_dist.engines.fused.simd_memory import (
    FloatArray,
    gather_rows,
    load,
    outer_fma,
    transpose,
)
from rgr_dist.engines.fused.step import Sizes, project, project_context
from rgr_dist.models.f1 import f1_cannot_exceed
from rgr_dist.problem.kernel_cache import cached_kernel

_cannot_exceed = numba.njit(nogil=True, inline="always")(f1_cannot_exceed)


class AllItems(NamedTuple):
    """What is needed to score some sources with all m items, as if these were one context.

    Attributes:
        sizes: of that context: m is its length, and M its padded length L.
        X_t: embeddings, [E, M].
        P: queries and keys, [C, M], overwritten.
        scores, argmax_head: for as many sources as there is room, [sources, M], overwritten.
    """

    sizes: Sizes
    X_t: FloatArray
    P: FloatArray
    scores: FloatArray
    argmax_head: FloatArray


@cached_kernel(nogil=True)
def project_items(lane: Any, table: Any) -> None:
    """Write queries and keys of all items to ``table`` [m, T], with m padded to a multiple of L."""
    workspace, (L, E, T) = lane.workspace, (lane.sizes.L, lane.sizes.E, lane.sizes.T)
    for first in range(0, lane.items.size // E, L):
        transpose(lane.items[first * E : (first + L) * E], L, E, workspace.X_t)
        project(lane.theta.W, workspace.X_t, lane.sizes, workspace.P)
        transpose(workspace.P, T, L, table[first * T : (first + L) * T])


@numba.njit(nogil=True, inline="always")
def score_context(lane: Any, nodes: Any, table: Any) -> None:
    """Compute the combined scores of a context.

    Args:
        table: what ``project_items`` made; if empty, the context is projected by itself.
    """
    workspace, sizes = lane.workspace, lane.sizes
    if table.size > 0:
        gather_rows(table, sizes.T, nodes, workspace.P_t)
        transpose(workspace.P_t, sizes.L, sizes.T, workspace.P)
    else:
        project_context(lane, nodes)
    heads_forward(workspace.P, sizes, workspace.attention, workspace)


@numba.njit(nogil=True)
def is_settled(counts: Any, tp: int, predicted: int, errors: int, bound: Any) -> Any:
    """Add to the counts; returns whether F1 certainly cannot exceed the bound's value now."""
    counts[0] += tp
    counts[1] += predicted
    counts[2] += errors
    actual, above = bound
    return _cannot_exceed(actual, counts[2], above)


@cached_kernel(nogil=True)
def count_in_contexts(
    lane: Any, contexts: Any, table: Any, order: Any, errors: Any, counts: Any, bound: Any
) -> Any:
    """Count edges over contexts; returns False as soon as F1 cannot exceed the bound's value.

    Args:
        table: as ``score_context`` takes it.
        order: int64 [some], the contexts to count, in this order.
        errors: int64 [n], the wrong pairs of each context; a result.
        counts, bound: the counts are added to.
    """
    workspace, sizes, tau = lane.workspace, lane.sizes, lane.theta.tau
    length, L = sizes.length, sizes.L
    zero, one = np.float32(0.0), np.float32(1.0)
    for index in order:
        nodes = contexts[index]
        score_context(lane, nodes, table)
        label_pairs(nodes, lane.graph.starts, lane.graph.targets, sizes, workspace)
        tp_sums, predicted_sums, edge_sums = splat(1, 0.0), splat(1, 0.0), splat(1, 0.0)
        for p in range(length):
            for q in range(0, L, WIDTH):
                label = load(1, workspace.labels, p * L + q, 0)
                score = load(1, workspace.scores, p * L + q, 0)
                is_predicted = where_above(score, tau[0], one, zero)
                is_predicted = where_equal(label, zero, zero, is_predicted)
                is_edge = where_above(zero, label, one, zero)
                tp_sums = tp_sums + is_predicted * is_edge
                predicted_sums = predicted_sums + is_predicted
                edge_sums = edge_sums + is_edge
        tp, predicted = int(horizontal_sum(tp_sums)), int(horizontal_sum(predicted_sums))
        errors[index] = predicted + int(horizontal_sum(edge_sums)) - 2 * tp
        if is_settled(counts, tp, predicted, errors[index], bound):
            return False
    return True


@cached_kernel(nogil=True)
def count_pairs(contexts: Any, M: int, times: Any) -> None:
    """Add to ``times`` [m, M] how many contexts hold each ordered pair of items."""
    for index in range(contexts.shape[0]):
        for source in contexts[index]:
            for target in contexts[index]:
                times[source * M + target] += np.float32(1.0)


@cached_kernel(nogil=True)
def count_in_pairs(
    lane: Any, every: Any, times: Any, sources: Any, errors: Any, counts: Any, bound: Any
) -> Any:
    """Count edges over pairs of items; returns False as soon as F1 cannot exceed the bound's value.

    Args:
        every: the ``AllItems``.
        times: float32 [m, M], how often a pair occurs; negative where it is an edge.
        sources: int64 [some], the items whose pairs with every item are counted, in this order.
        errors: int64 [m], the wrong pairs of each source; a result.
        counts, bound: the counts are added to.
    """
    length, M, tau = lane.sizes.length, every.sizes.L, lane.theta.tau
    zero = np.float32(0.0)
    project(lane.theta.W, every.X_t, every.sizes, every.P)
    for first in range(0, sources.size, length):
        some = sources[first : first + length]
        project_context(lane, some)
        max_forward(lane.workspace.P, every.P, M, lane.sizes, every.scores, every.argmax_head)
        for p in range(some.size):
            tp_sums, fp_sums, fn_sums = splat(1, 0.0), splat(1, 0.0), splat(1, 0.0)
            for q in range(0, M, WIDTH):
                count = load(1, times, some[p] * M + q, 0)
                score = load(1, every.scores, p * M + q, 0)
                predicted = where_above(score, tau[0], count, zero)
                tp_sums = tp_sums + where_above(zero, predicted, zero - predicted, zero)
                fp_sums = fp_sums + where_above(predicted, zero, predicted, zero)
                fn_sums = fn_sums + where_above(zero, count, predicted - count, zero)
            tp, fp = int(horizontal_sum(tp_sums)), int(horizontal_sum(fp_sums))
            errors[some[p]] = fp + int(horizontal_sum(fn_sums))
            if is_settled(counts, tp, tp + fp, errors[some[p]], bound):
                return False
    return True


@cached_kernel(nogil=True)
def error_in_contexts(lane: Any, targets: Any, contexts: Any, table: Any) -> float:
    """Sum of the squared errors of all retrieved messages, added over contexts in float64.

    Args:
        table: what ``project_items`` made.
    """
    present = np.zeros(targets.size, dtype=np.bool_)
    error = 0.0
    for index in range(contexts.shape[0]):
        nodes = contexts[index]
        score_context(lane, nodes, table)
        for node in nodes:
            present[node] = True
        squares = splat(1, 0.0)
        for p in range(nodes.size):
            target = targets[nodes[p]]
            if present[target]:
                squares = squares + squared_error(lane, p, nodes, target)
        for node in nodes:
            present[node] = False
        error += horizontal_sum(squares)
    return error


@numba.njit(nogil=True, inline="always")
def squared_error(lane: Any, p: int, nodes: Any, wanted: int) -> Any:
    """Squared error of the message that position p retrieves: sixteen sums yet to be added up."""
    sizes, messages = lane.sizes, lane.messages
    squares = splat(1, 0.0)
    for i in range(0, sizes.E, WIDTH):
        row = splat(1, 0.0) - load(1, messages, wanted * sizes.E + i, 0)
        for q in range(sizes.length):
            message = load(1, messages, nodes[q] * sizes.E + i, 0)
            row = outer_fma(row, lane.workspace.scores, p * sizes.L + q, 0, message)
        squares = fma(row, row, squares)
    return squares
