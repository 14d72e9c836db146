"""The compiled training step: project a context, score it, backpropagate the loss, apply AdamW.

The arrays of a lane are laid out so that the inner loops run over sixteen contiguous floats and
need no tails; the padding is zero and stays zero. Matrices are flat. In names: l items of a
context, d = d_model, D = h * d_k key columns. L, E and C are padded sizes: L of l and E of d to a
multiple of 16, C of the 2 D columns of [W_Q | W_K] to a multiple of ROWS.

    W       [C, E]   [W_Q | W_K] transposed, one row per column; so are its moments
    items   [m, E]   embeddings
    X       [L, E]   embeddings of the context; X_t [E, L] is its transpose
    P       [C, L]   queries (rows 0 … D - 1) and keys (rows D … 2 D - 1); dP is its gradient
    scores, argmax_head, labels, grad_scores [L, L]: rows are sources p, columns are targets q

The optimiser is in ``adamw``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from rgr_dist.engines.fused.adamw import adamw, update_tau
from rgr_dist.engines.fused.heads import heads_backward, heads_forward
from rgr_dist.engines.fused.losses import label_pairs, loss_backward
from rgr_dist.engines.fused.simd import ROWS, WIDTH, splat
from rgr_dist.engines.fused.simd_memory import (
    FloatArray,
    gather_rows,
    load,
    outer_fma,
    store,
    transpose,
)
from rgr_dist.problem.kernel_cache import cached_kernel


class Sizes(NamedTuple):
    """Sizes of a lane.

    Attributes:
        length: l.
        L, E, C: padded sizes of l, d_model and the columns.
        T: C padded further to a multiple of 16, for transposes of P.
    """

    h: int
    d_k: int
    length: int
    L: int
    E: int
    C: int
    T: int


class Graph(NamedTuple):
    """The out-neighbours of each item.

    Attributes:
        starts: int32, as in ``Neighbours``; None for a permutation, whose edges weigh l - 1.
        targets: int32; for a permutation, the target of each item.
    """

    starts: npt.NDArray[np.int32] | None
    targets: npt.NDArray[np.int32]


class Workspace(NamedTuple):
    """What a step writes and the next overwrites; float32, flat, zero at first.

    Attributes:
        nodes: the items of the context, as floats [L]; -1 in the padding.
        P: [T, L], of which rows from C on stay zero; P_t [L, T] is its transpose.
        attention, scores_t: see ``heads``; None unless heads are softmaxes.
        messages, error: [L, E], messages of the context's items, and the error of those that are
            retrieved; None unless the loss is that of messages.
    """

    nodes: FloatArray
    X: FloatArray
    X_t: FloatArray
    P: FloatArray
    P_t: FloatArray
    dP: FloatArray
    scores: FloatArray
    argmax_head: FloatArray
    argmax_head_t: FloatArray
    labels: FloatArray
    grad_scores: FloatArray
    grad_scores_t: FloatArray
    attention: FloatArray | None
    scores_t: FloatArray | None
    messages: FloatArray | None
    error: FloatArray | None


class Parameters(NamedTuple):
    """W and its two moments, [C * E], and tau with its two, [3]."""

    W: FloatArray
    first: FloatArray
    second: FloatArray
    tau: FloatArray


class Arrays(NamedTuple):
    """Everything that the kernels take from a lane.

    Attributes:
        items: embeddings of all items, float32 [m * E], m padded to a multiple of L.
        messages: of all items, float32 [m * E]; None unless the loss is that of messages.
    """

    theta: Parameters
    workspace: Workspace
    sizes: Sizes
    items: FloatArray
    messages: FloatArray | None
    graph: Graph


@cached_kernel(nogil=True)
def train_steps(lane: Any, contexts: Any, sharpness: float, rates: Any, roots: Any) -> None:
    """One training step on each context in turn.

    Args:
        lane: its ``Arrays``.
        contexts: int32 [n, l].
        rates, roots: for each step, as ``adamw`` takes them, float32 [n].
    """
    theta, workspace, sizes, graph = lane.theta, lane.workspace, lane.sizes, lane.graph
    for index in range(contexts.shape[0]):
        nodes, rate, root = contexts[index], rates[index], roots[index]
        project_context(lane, nodes)
        heads_forward(workspace.P, sizes, workspace.attention, workspace)
        label_pairs(nodes, graph.starts, graph.targets, sizes, workspace)
        total = loss_backward(theta, workspace, sizes, nodes, lane.messages, sharpness)
        heads_backward(workspace.P, sizes, workspace.attention, workspace)
        update_tau(theta.tau, -total, rate, root)
        update_W(theta, workspace, sizes, rate, root)


@numba.njit(nogil=True, inline="always")
def project_context(lane: Any, nodes: Any) -> None:
    """Write the queries and keys of some items, at most a context of them, to ``P``."""
    workspace, sizes = lane.workspace, lane.sizes
    gather_rows(lane.items, sizes.E, nodes, workspace.X)
    transpose(workspace.X, sizes.L, sizes.E, workspace.X_t)
    project(lane.theta.W, workspace.X_t, sizes, workspace.P)


@numba.njit(nogil=True)
def project(W: Any, X_t: Any, sizes: Any, P: Any) -> None:
    """P = W X_t: queries and keys of the context in one product."""
    E, L = sizes.E, sizes.L
    for c in range(0, sizes.C, ROWS):
        for q in range(0, L, WIDTH):
            sums = splat(ROWS, 0.0)
            for i in range(E):
                sums = outer_fma(sums, W, c * E + i, E, load(1, X_t, i * L + q, 0))
            store(P, c * L + q, L, sums)


@numba.njit(nogil=True)
def update_W(theta: Any, workspace: Any, sizes: Any, rate: float, root: float) -> None:
    """Compute the gradient of W, both moments and a step of AdamW, in one pass over W.

    Args:
        rate, root: of the step, as in ``adamw``.
    """
    E, L = sizes.E, sizes.L
    for c in range(0, sizes.C, ROWS):
        for i in range(0, E, WIDTH):
            g = splat(ROWS, 0.0)
            for p in range(sizes.length):
                g = outer_fma(g, workspace.dP, c * L + p, L, load(1, workspace.X, p * E + i, 0))
            at = c * E + i
            first, second = load(ROWS, theta.first, at, E), load(ROWS, theta.second, at, E)
            first, second, step = adamw(g, first, second, rate, root)
            store(theta.first, at, E, first)
            store(theta.second, at, E, second)
            store(theta.W, at, E, load(ROWS, theta.W, at, E) - step)
