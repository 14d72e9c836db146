"""The compiled loops that score a lane: count edges, or sum the errors of retrieved messages."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from rgr_dist.engines.api import f1_cannot_exceed
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
from rgr_dist.engines.fused.simd_memory import gather_rows, load, outer_fma, transpose, vec_mat
from rgr_dist.engines.fused.step import project, project_context
from rgr_dist.kernel_cache import cached_kernel

_cannot_exceed = numba.njit(nogil=True, inline="always")(f1_cannot_exceed)


@cached_kernel(nogil=True)
def project_items(theta: Any, workspace: Any, sizes: Any, items: Any, table: Any) -> None:
    """Queries and keys of all items into ``table`` [m, T], m padded to a multiple of L."""
    L, E, T = sizes.L, sizes.E, sizes.T
    for first in range(0, items.size // E, L):
        transpose(items[first * E : (first + L) * E], L, E, workspace.X_t)
        project(theta.W, workspace.X_t, sizes, workspace.P)
        transpose(workspace.P, T, L, table[first * T : (first + L) * T])


@numba.njit(nogil=True, inline="always")
def score_context(
    theta: Any, workspace: Any, sizes: Any, items: Any, nodes: Any, table: Any
) -> None:
    """Combined scores of a context.

    Args:
        table: what ``project_items`` made; empty: project the context by itself.
    """
    if table.size > 0:
        gather_rows(table, sizes.T, nodes, workspace.P_t)
        transpose(workspace.P_t, sizes.L, sizes.T, workspace.P)
    else:
        project_context(theta, workspace, sizes, items, nodes)
    heads_forward(workspace.P, sizes, workspace.attention, workspace)


@numba.njit(nogil=True)
def is_settled(counts: Any, tp: int, predicted: int, errors: int, bound: Any) -> Any:
    """Add to the counts; is it now certain that F1 does not exceed a value?

    Args:
        counts: int64 [3], true positives, predicted edges and errors so far.
        bound: actual edges in all, and the value as a float64; a negative value never settles it.
    """
    counts[0] += tp
    counts[1] += predicted
    counts[2] += errors
    actual, above = bound
    return _cannot_exceed(actual, counts[2], above)


@cached_kernel(nogil=True)
def count_in_contexts(
    theta: Any,
    workspace: Any,
    sizes: Any,
    items: Any,
    graph: Any,
    contexts: Any,
    table: Any,
    order: Any,
    errors: Any,
    counts: Any,
    bound: Any,
) -> Any:
    """Count edges over contexts, in this order; False as soon as F1 cannot exceed a value.

    Args:
        table: what ``project_items`` made; empty: project each context by itself.
        order: int64 [some], which of the contexts.
        errors: int64 [n], the wrong pairs of each context; a result.
        counts, bound: see ``is_settled``; the counts are added to.
    """
    length, L = sizes.length, sizes.L
    zero, one = np.float32(0.0), np.float32(1.0)
    for index in order:
        nodes = contexts[index]
        score_context(theta, workspace, sizes, items, nodes, table)
        label_pairs(nodes, graph.starts, graph.targets, sizes, workspace)
        tp_sums, predicted_sums, edge_sums = splat(1, 0.0), splat(1, 0.0), splat(1, 0.0)
        for p in range(length):
            for q in range(0, L, WIDTH):
                label = load(1, workspace.labels, p * L + q, 0)
                score = load(1, workspace.scores, p * L + q, 0)
                is_predicted = where_above(score, theta.tau[0], one, zero)
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
    theta: Any,
    workspace: Any,
    sizes: Any,
    items: Any,
    all_sizes: Any,
    items_t: Any,
    P: Any,
    sources: Any,
    scores: Any,
    argmax_head: Any,
    times: Any,
    errors: Any,
    counts: Any,
    bound: Any,
) -> Any:
    """Count edges from how often each pair occurs; False as soon as F1 cannot exceed a value.

    Args:
        sources: int64 [some], the items whose pairs with every item are counted, in this order.
        all_sizes: those of a context that holds all m items, M for L; ``items_t`` is [E, M].
        P: [C, M], ``scores`` and ``argmax_head`` [L, M]: overwritten.
        times: float32 [m, M], how often a pair occurs; negative where it is an edge.
        errors: int64 [m], the wrong pairs of each source; a result.
        counts, bound: see ``is_settled``; the counts are added to.
    """
    M = all_sizes.L
    zero = np.float32(0.0)
    project(theta.W, items_t, all_sizes, P)
    for first in range(0, sources.size, sizes.length):
        some = sources[first : first + sizes.length]
        project_context(theta, workspace, sizes, items, some)
        max_forward(workspace.P, P, M, sizes, scores, argmax_head)
        for p in range(some.size):
            tp_sums, fp_sums, fn_sums = splat(1, 0.0), splat(1, 0.0), splat(1, 0.0)
            for q in range(0, M, WIDTH):
                count = load(1, times, some[p] * M + q, 0)
                score = load(1, scores, p * M + q, 0)
                predicted = where_above(score, theta.tau[0], count, zero)
                tp_sums = tp_sums + where_above(zero, predicted, zero - predicted, zero)
                fp_sums = fp_sums + where_above(predicted, zero, predicted, zero)
                fn_sums = fn_sums + where_above(zero, count, predicted - count, zero)
            tp, fp = int(horizontal_sum(tp_sums)), int(horizontal_sum(fp_sums))
            errors[some[p]] = fp + int(horizontal_sum(fn_sums))
            if is_settled(counts, tp, tp + fp, errors[some[p]], bound):
                return False
    return True


@cached_kernel(nogil=True)
def error_in_contexts(
    theta: Any,
    workspace: Any,
    sizes: Any,
    items: Any,
    messages: Any,
    targets: Any,
    contexts: Any,
    until: Any,
    positions: Any,
    table: Any,
) -> float:
    """Sum of the squared errors of all retrieved messages, in float64 over contexts.

    Args:
        messages: of all items, [m * E].
        until, positions: the ``Retrievals`` in the contexts.
        table: what ``project_items`` made.
    """
    error, done = 0.0, 0
    for index in range(contexts.shape[0]):
        nodes = contexts[index]
        score_context(theta, workspace, sizes, items, nodes, table)
        squares = splat(1, 0.0)
        for retrieval in range(done, until[index]):
            p = positions[retrieval]
            wanted = targets[nodes[p]]
            squares = squares + squared_error(workspace.scores, p, messages, sizes, nodes, wanted)
        error += horizontal_sum(squares)
        done = until[index]
    return error


@numba.njit(nogil=True, inline="always")
def squared_error(scores: Any, p: int, messages: Any, sizes: Any, nodes: Any, wanted: int) -> Any:
    """Squared error of the message that position p retrieves: sixteen sums, still to be added."""
    squares = splat(1, 0.0)
    for i in range(0, sizes.E, WIDTH):
        row = splat(1, 0.0) - load(1, messages, wanted * sizes.E + i, 0)
        for q in range(sizes.length):
            message = load(1, messages, nodes[q] * sizes.E + i, 0)
            row = outer_fma(row, scores, p * sizes.L + q, 0, message)
        squares = fma(row, row, squares)
    return squares


@cached_kernel(nogil=True)
def error_by_cooccurrence(
    theta: Any,
    sizes: Any,
    items_t: Any,
    P: Any,
    scores: Any,
    argmax_head: Any,
    targets: Any,
    forms: Any,
) -> float:
    """Sum of the squared errors of all retrieved messages, in float64 over items.

    Args:
        sizes: those of a context that holds all m items.
        items_t: [E, L].
        P: [C, L], ``scores`` and ``argmax_head`` [L, L]: overwritten.
        forms: see ``error_forms``, float32 [m, L, L].
    """
    project(theta.W, items_t, sizes, P)
    max_forward(P, P, sizes.L, sizes, scores, argmax_head)
    error = 0.0
    for source in range(sizes.length):
        first = source * sizes.L
        scores[first + targets[source]] -= np.float32(1.0)
        error += quadratic_form(scores, first, forms, sizes.L)
    return error


@numba.njit(nogil=True)
def quadratic_form(x: Any, first: int, form: Any, L: int) -> float:
    """The product x A x of a vector that begins at ``first``, [L], and a symmetric matrix.

    The matrix [L, L] begins at ``first`` times L.
    """
    squares = splat(1, 0.0)
    for k in range(0, L, WIDTH):
        row = splat(1, 0.0)
        for j in range(0, L, WIDTH):
            row = row + vec_mat(x, first + j, load(WIDTH, form, (first + j) * L + k, L))
        squares = fma(row, load(1, x, first + k, 0), squares)
    return np.float64(horizontal_sum(squares))
