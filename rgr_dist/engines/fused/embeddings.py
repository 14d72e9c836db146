"""Compiled training of embeddings that are shared by the layers of R relations.

A step takes a context of each relation in turn, by the same step as with frozen embeddings, and
adds up the gradient of the rows x_i that they see. Then one pass over all items takes it through
the normalisation, x_i = E_i / |E_i|, and applies AdamW to E. Array names and layout are those of
``step``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from rgr_dist.engines.fused.adamw import adamw
from rgr_dist.engines.fused.simd import WIDTH, fma, horizontal_sum, splat
from rgr_dist.engines.fused.simd_memory import FloatArray, load, store
from rgr_dist.engines.fused.step import Arrays, Graph, Parameters, step
from rgr_dist.kernel_cache import cached_kernel

LEAST_NORM = np.float32(1e-12)
"""A row is divided by this if it is shorter: as in ``torch.nn.functional.normalize``."""


class Embeddings(NamedTuple):
    """E, its two moments and the gradient of x in a step, [m * E]; and 1 / |E_i|, [m]."""

    E: FloatArray
    first: FloatArray
    second: FloatArray
    gradient: FloatArray
    scale: FloatArray


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
    for index in range(contexts.shape[1]):
        rate, root = rates[index], roots[index]
        for r in range(contexts.shape[0]):
            theta = Parameters(
                relations.W[r], relations.first[r], relations.second[r], relations.tau[r]
            )
            graph = Graph(lane.graph.starts, targets[r])
            own = Arrays(theta, lane.workspace, lane.sizes, lane.items, lane.messages, graph)
            step(own, contexts[r, index], embeddings.gradient, sharpness, rate, root)
        update_embeddings(embeddings, lane.items, lane.sizes.E, rate, root)


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
