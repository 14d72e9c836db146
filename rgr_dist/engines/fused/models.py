"""What a lane's model makes of a context, in the compiled step: the one place that tells models
apart.

A model is how the scores of heads become one (their maximum, or their summed softmax) and what
is asked of it (to tell edges, or to mix messages). Which it is shows in what a lane has:
``attention`` only with a softmax, ``messages`` only to mix them, else None. So it is known as
the loops are compiled, and those of a model hold no code of another.
"""

from __future__ import annotations

from typing import Any

import numba

from rgr_dist.engines.fused.max import label_pairs, logistic_pull, max_over_heads, pull_heads
from rgr_dist.engines.fused.pieces import gather_rows, project, transpose, update_tau
from rgr_dist.engines.fused.softmax import pull_softmax, softmax_over_context
from rgr_dist.engines.fused.value import message_pull


@numba.njit(nogil=True, inline="always")
def project_context(theta: Any, scratch: Any, sizes: Any, items: Any, nodes: Any) -> None:
    """Queries and keys of some items, at most a context, into ``P``."""
    gather_rows(items, sizes.E, nodes, scratch.X)
    transpose(scratch.X, sizes.L, sizes.E, scratch.X_t)
    project(theta.W, scratch.X_t, sizes, scratch.P)


@numba.njit(nogil=True)
def combine_heads(P: Any, sizes: Any, attention: Any, scratch: Any) -> None:
    """Combined scores of all pairs of a context, from its queries and keys."""
    if attention is None:
        max_over_heads(P, P, sizes.L, sizes, scratch.scores, scratch.winner)
    else:
        softmax_over_context(P, sizes, attention, scratch.scores_t)
        transpose(scratch.scores_t, sizes.L, sizes.L, scratch.scores)


@numba.njit(nogil=True)
def pull_scores(
    theta: Any, scratch: Any, sizes: Any, nodes: Any, messages: Any, sharpness: float
) -> Any:
    """Pull on combined scores, from the labels, into ``pull``; returns its sum over the pairs.

    Args:
        messages: of all items.
    """
    if messages is None:
        return logistic_pull(scratch, sizes, theta.tau[0], sharpness)
    gather_rows(messages, sizes.E, nodes, scratch.messages)
    return message_pull(scratch, sizes)


@numba.njit(nogil=True)
def pull_projections(P: Any, sizes: Any, attention: Any, scratch: Any) -> None:
    """Gradient of queries and keys, from the pull on combined scores."""
    L, D = sizes.L, sizes.h * sizes.d_k
    transpose(scratch.pull, L, L, scratch.pull_t)
    if attention is None:
        pull_heads(P, 0, scratch.pull, scratch.winner, sizes, D, scratch.dP)
        transpose(scratch.winner, L, L, scratch.winner_t)
        pull_heads(P, D, scratch.pull_t, scratch.winner_t, sizes, 0, scratch.dP)
    else:
        pull_softmax(P, scratch.pull_t, attention, sizes, scratch.dP)


@numba.njit(nogil=True, inline="always")
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
    label_pairs(nodes, graph.starts, graph.targets, sizes, scratch)
    pulled = pull_scores(theta, scratch, sizes, nodes, messages, sharpness)
    pull_projections(scratch.P, sizes, scratch.attention, scratch)
    update_tau(theta.tau, -pulled, rate, root)


@numba.njit(nogil=True, inline="always")
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
    combine_heads(scratch.P, sizes, scratch.attention, scratch)
