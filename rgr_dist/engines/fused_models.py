"""What a lane's model makes of a context, in the compiled step: the one place that tells models
apart.

A model is how the scores of heads become one (their maximum, or their summed softmax) and what
is asked of it (to tell edges, or to mix messages).
"""

from __future__ import annotations

from typing import Any

import numba

from rgr_dist.engines.fused_max import label_pairs, logistic_pull, max_over_heads, pull_heads
from rgr_dist.engines.fused_pieces import (
    SOFTMAX,
    VALUE,
    gather_rows,
    project,
    transpose,
    update_tau,
)
from rgr_dist.engines.fused_softmax import pull_softmax, softmax_over_context
from rgr_dist.engines.fused_value import message_pull


@numba.njit(nogil=True)
def project_context(theta: Any, scratch: Any, sizes: Any, items: Any, nodes: Any) -> None:
    """Queries and keys of some items, at most a context, into ``P``."""
    gather_rows(items, sizes.E, nodes, scratch.X)
    transpose(scratch.X, sizes.L, sizes.E, scratch.X_t)
    project(theta.W, scratch.X_t, sizes, scratch.P)


@numba.njit(nogil=True)
def score_pairs(scratch: Any, sizes: Any) -> None:
    """Combined scores of all pairs of a context, from its queries and keys."""
    if sizes.model == SOFTMAX:
        softmax_over_context(scratch.P, sizes, scratch.attention, scratch.scores_t)
        transpose(scratch.scores_t, sizes.L, sizes.L, scratch.scores)
    else:
        max_over_heads(scratch.P, scratch.P, sizes.L, sizes, scratch.scores, scratch.winner)


@numba.njit(nogil=True)
def score_context(theta: Any, scratch: Any, sizes: Any, items: Any, nodes: Any, table: Any) -> None:
    """Combined scores of a context.

    Args:
        table: queries and keys of all items, [m, T]; empty: project the context by itself.
    """
    if table.size > 0:
        gather_rows(table, sizes.T, nodes, scratch.P_t)
        transpose(scratch.P_t, sizes.L, sizes.T, scratch.P)
    else:
        project_context(theta, scratch, sizes, items, nodes)
    score_pairs(scratch, sizes)


@numba.njit(nogil=True)
def pull_pairs(
    theta: Any,
    scratch: Any,
    sizes: Any,
    nodes: Any,
    graph: Any,
    messages: Any,
    sharpness: float,
    rate: float,
    root: float,
) -> None:
    """Gradient of queries and keys, from the combined scores; and a step of the threshold."""
    L, D = sizes.L, sizes.h * sizes.d_k
    label_pairs(nodes, graph.starts, graph.targets, sizes, scratch)
    if sizes.model == VALUE:
        gather_rows(messages, sizes.E, nodes, scratch.messages)
        message_pull(scratch, sizes)
    else:
        pulled = logistic_pull(scratch, sizes, theta.tau[0], sharpness)
        update_tau(theta.tau, -pulled, rate, root)
    transpose(scratch.pull, L, L, scratch.pull_t)
    if sizes.model == SOFTMAX:
        pull_softmax(scratch.P, scratch.pull_t, scratch.attention, sizes, scratch.dP)
    else:
        pull_heads(scratch.P, 0, scratch.pull, scratch.winner, sizes, D, scratch.dP)
        transpose(scratch.winner, L, L, scratch.winner_t)
        pull_heads(scratch.P, D, scratch.pull_t, scratch.winner_t, sizes, 0, scratch.dP)
