"""Losses in the compiled step: labels of a context, and the gradient of its combined scores.

Models ``max`` and ``softmax`` minimise the weighted logistic loss of App. A.1 and A.3, model
``value`` the squared error of the messages that it retrieves (Sec. 7.2). Array names and layout
are those of ``step``. A label is the pair's weight in the loss, negative where the pair is an
edge, and 0 in the padding.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from rgr_dist.engines.fused.simd import (
    WIDTH,
    exponential,
    horizontal_sum,
    splat,
    transposed,
    where_above,
    where_equal,
)
from rgr_dist.engines.fused.simd_memory import gather_rows, load, store, vec_mat

LEAST_WEIGHT = np.float32(1e-30)
"""Weight of an edge if every pair is one: practically 0, but 0 itself marks padding."""


@numba.njit(nogil=True)
def loss_backward(
    theta: Any, workspace: Any, sizes: Any, nodes: Any, messages: Any, sharpness: float
) -> Any:
    """Gradient of the combined scores, from the labels; returns its sum over the pairs.

    Args:
        messages: of all items; None for the logistic loss, and numba then compiles only that
            branch.
    """
    if messages is None:
        return logistic_backward(workspace, sizes, theta.tau[0], sharpness)
    gather_rows(messages, sizes.E, nodes, workspace.messages)
    return message_backward(workspace, sizes)


@numba.njit(nogil=True)
def logistic_backward(workspace: Any, sizes: Any, tau: float, sharpness: float) -> Any:
    """dL/dS of the weighted logistic loss (App. A.1); returns its sum, which is -dL/dtau.

    With z = alpha (S - tau) it is sigmoid(z) where the pair is not an edge, and -w sigmoid(-z) at
    an edge of weight w, each times alpha / l^2.
    """
    length, L = sizes.length, sizes.L
    scale = np.float32(sharpness / (length * length))
    zero, one = np.float32(0.0), np.float32(1.0)
    sums = splat(1, 0.0)
    for p in range(length):
        for q in range(0, L, WIDTH):
            label = load(1, workspace.labels, p * L + q, 0)
            z = (load(1, workspace.scores, p * L + q, 0) - np.float32(tau)) * np.float32(sharpness)
            z = where_above(label, zero, zero - z, z)
            y = exponential(z)  # z here is minus the sigmoid's argument
            grad = where_equal(label, zero, zero, label * scale / (y + one))
            store(workspace.grad_scores, p * L + q, 0, grad)
            sums = sums + grad
    return horizontal_sum(sums)


@numba.njit(nogil=True)
def message_backward(workspace: Any, sizes: Any) -> Any:
    """dL/dS of the mean squared error, eq. (4): 2 / n times error times message.

    Returns 0, because there is no threshold. Only the n sources that have an edge in the context
    retrieve a message; the error of the others is 0.
    """
    L, E, length = sizes.L, sizes.E, sizes.length
    zero, one = np.float32(0.0), np.float32(1.0)
    grad = workspace.grad_scores
    count = 0
    for p in range(length):  # ``grad`` holds S - y for now
        edges = splat(1, 0.0)
        for q in range(0, L, WIDTH):
            edge = where_above(zero, load(1, workspace.labels, p * L + q, 0), one, zero)
            store(grad, p * L + q, 0, load(1, workspace.scores, p * L + q, 0) - edge)
            edges = edges + edge
        if horizontal_sum(edges) > zero:
            count += 1
        else:
            for q in range(0, L, WIDTH):
                store(grad, p * L + q, 0, splat(1, 0.0))
    for i in range(0, E, WIDTH):
        for q in range(0, L, WIDTH):
            some = load(WIDTH, workspace.messages, q * E + i, E)
            for p in range(length):
                row = vec_mat(grad, p * L + q, some)
                if q > 0:
                    row = row + load(1, workspace.error, p * E + i, 0)
                store(workspace.error, p * E + i, 0, row)
    scale = np.float32(2.0) / np.float32(max(1, count))
    for q in range(0, L, WIDTH):
        for i in range(0, E, WIDTH):
            some_t = transposed(load(WIDTH, workspace.messages, q * E + i, E))
            for p in range(length):
                row = vec_mat(workspace.error, p * E + i, some_t) * scale
                if i > 0:
                    row = row + load(1, grad, p * L + q, 0)
                store(grad, p * L + q, 0, row)
    return zero


@numba.njit(nogil=True)
def label_pairs(nodes: Any, starts: Any, targets: Any, sizes: Any, workspace: Any) -> None:
    """Labels of a context.

    Args:
        starts: None for a permutation; numba then compiles only that branch.
    """
    if starts is None:
        label_permutation(nodes, targets, sizes, workspace)
    else:
        label_graph(nodes, starts, targets, sizes, workspace)


@numba.njit(nogil=True)
def label_permutation(nodes: Any, targets: Any, sizes: Any, workspace: Any) -> None:
    """Labels of a permutation: an edge weighs l - 1, as in App. A.1."""
    length, L = sizes.length, sizes.L
    for p in range(length):
        workspace.nodes[p] = nodes[p]
    for p in range(length):
        target = np.float32(targets[nodes[p]])
        for q in range(0, L, WIDTH):
            items = load(1, workspace.nodes, q, 0)
            label = where_equal(items, target, np.float32(1 - length), np.float32(1.0))
            label = where_equal(items, np.float32(-1.0), np.float32(0.0), label)
            store(workspace.labels, p * L + q, 0, label)


@numba.njit(nogil=True)
def label_graph(nodes: Any, starts: Any, targets: Any, sizes: Any, workspace: Any) -> None:
    """Labels of any graph: an edge weighs #negatives / #positives of the context (App. A.3)."""
    length, L = sizes.length, sizes.L
    zero, one = np.float32(0.0), np.float32(1.0)
    edges = splat(1, 0.0)
    for p in range(length):
        workspace.nodes[p] = nodes[p]
    for p in range(length):
        for q in range(0, L, WIDTH):
            items = load(1, workspace.nodes, q, 0)
            edge = splat(1, 0.0)
            for at in range(starts[nodes[p]], starts[nodes[p] + 1]):
                edge = where_equal(items, np.float32(targets[at]), one, edge)
            edges = edges + edge
            label = where_equal(items, np.float32(-1.0), zero, one)
            store(workspace.labels, p * L + q, 0, label - edge - edge)
    positives = horizontal_sum(edges)
    weight = (np.float32(length * length) - positives) / max(positives, one)
    weight = max(weight, LEAST_WEIGHT)
    for i in range(0, length * L, WIDTH):
        label = load(1, workspace.labels, i, 0)
        store(workspace.labels, i, 0, where_above(zero, label, label * weight, label))
