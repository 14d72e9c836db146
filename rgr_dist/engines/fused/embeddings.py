"""Compiled training of embeddings that are shared by the layers of R relations.

A step takes a context of each relation in turn, as with frozen embeddings, and adds up the gradient
of the rows x_i that they see. Then one pass over all items takes it through the normalisation,
x_i = E_i / |E_i|, and applies AdamW to E. Array names and layout are those of ``step``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from rgr_dist.engines.fused.adamw import adamw, update_tau
from rgr_dist.engines.fused.heads import heads_backward, heads_forward
from rgr_dist.engines.fused.losses import label_pairs, loss_backward
from rgr_dist.engines.fused.product import multiply
from rgr_dist.engines.fused.simd import WIDTH, fma, horizontal_sum, splat
from rgr_dist.engines.fused.simd_memory import FloatArray, gather_rows, load, store, transpose
from rgr_dist.engines.fused.step import Parameters, project, update_W
from rgr_dist.problem.kernel_cache import cached_kernel

LEAST_NORM = np.float32(1e-12)
"""A row is divided by this if it is shorter: as in ``torch.nn.functional.normalize``."""


class Embeddings(NamedTuple):
    """E, its two moments and the gradient of x in a step, each [m * E]; and what goes with them.

    Attributes:
        scale: 1 / |E_i|, [m].
        of_context: the gradient of a context, [L, E], overwritten.
    """

    E: FloatArray
    first: FloatArray
    second: FloatArray
    gradient: FloatArray
    scale: FloatArray
    of_context: FloatArray


@cached_kernel(nogil=True)
def train_shared(
    lane: Any, relations: Any, targets: Any, embeddings: Any, contexts: Any,
    sharpness: float, rates: Any, roots: Any,
) -> None:  # fmt: skip
    """Training steps, each on a context of every relation in turn.

    Args:
        lane: the ``Arrays`` of any of the relations, whose items change with E.
        relations: their ``Parameters``, of which row r belongs to relation r.
        targets: of their graphs, int32 [R, m']; all have the same number of targets of an item.
        contexts: int32 [R, n, l].
        rates, roots: for each step, as ``adamw`` takes them, float32 [n].
    """
    workspace, sizes, starts = lane.workspace, lane.sizes, lane.graph.starts
    items, messages, W = lane.items, lane.messages, relations.W
    for index in range(contexts.shape[1]):
        rate, root = rates[index], roots[index]
        for r in range(contexts.shape[0]):
            nodes = contexts[r, index]
            theta = Parameters(W[r], relations.first[r], relations.second[r], relations.tau[r])
            gather_rows(items, sizes.E, nodes, workspace.X)
            transpose(workspace.X, sizes.L, sizes.E, workspace.X_t)
            project(theta.W, workspace.X_t, sizes, workspace.P)
            heads_forward(workspace.P, sizes, workspace.attention, workspace)
            label_pairs(nodes, starts, targets[r], sizes, workspace)
            total = loss_backward(theta, workspace, sizes, nodes, messages, sharpness)
            heads_backward(workspace.P, sizes, workspace.attention, workspace)
            update_tau(theta.tau, -total, rate, root)
            add_gradient(embeddings, nodes, theta.W, workspace.dP, sizes)
            update_W(theta, workspace, sizes, rate, root)
        update_embeddings(embeddings, items, sizes.E, rate, root)


@numba.njit(nogil=True)
def add_gradient(embeddings: Any, nodes: Any, W: Any, dP: Any, sizes: Any) -> None:
    """Add dX = dP^T W of a context to the rows of its items."""
    L, E, length, C = sizes.L, sizes.E, sizes.length, sizes.C
    gradient, of_context = embeddings.gradient, embeddings.of_context
    multiply(of_context, 0, E, dP, 0, 1, L, W, 0, E, length, C, E, False)
    for p in range(length):
        for i in range(0, E, WIDTH):
            at = nodes[p] * E + i
            store(gradient, at, 0, load(1, gradient, at, 0) + load(1, of_context, p * E + i, 0))


@numba.njit(nogil=True)
def update_embeddings(embeddings: Any, items: Any, E: int, rate: float, root: float) -> None:
    """A step of AdamW on every row of E, down (g - x <x, g>) / |E_i|; then x anew, and g = 0."""
    gradient, first, second = embeddings.gradient, embeddings.first, embeddings.second
    zero = splat(1, 0.0)
    for item in range(embeddings.scale.size):
        begin, end, scale = item * E, (item + 1) * E, embeddings.scale[item]
        products = zero
        for at in range(begin, end, WIDTH):
            products = fma(load(1, gradient, at, 0), load(1, items, at, 0), products)
        along, squares = horizontal_sum(products), zero
        for at in range(begin, end, WIDTH):
            g = (load(1, gradient, at, 0) - load(1, items, at, 0) * along) * scale
            m, v, move = adamw(g, load(1, first, at, 0), load(1, second, at, 0), rate, root)
            row = load(1, embeddings.E, at, 0) - move
            store(first, at, 0, m)
            store(second, at, 0, v)
            store(embeddings.E, at, 0, row)
            store(gradient, at, 0, zero)
            squares = fma(row, row, squares)
        scale = np.float32(1.0) / max(np.sqrt(horizontal_sum(squares)), LEAST_NORM)
        embeddings.scale[item] = scale
        for at in range(begin, end, WIDTH):
            store(items, at, 0, load(1, embeddings.E, at, 0) * scale)
