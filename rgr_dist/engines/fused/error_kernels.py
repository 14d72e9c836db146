"""The compiled loops that sum the squared errors of a lane of model ``value`` (Sec. 7.2).

Cached on disk as those of ``fused_kernels`` are, and for the same reason with a digest.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from rgr_dist.engines.fused.max import max_over_heads
from rgr_dist.engines.fused.models import score_context
from rgr_dist.engines.fused.moves import total
from rgr_dist.engines.fused.pieces import project
from rgr_dist.engines.fused.tiles import full
from rgr_dist.engines.fused.value import squared_error, squared_form

PIECES = "21a6574eb8cb41fa"
"""Digest of the files that are inlined here; a test fails until it is renewed."""


@numba.njit(nogil=True, cache=True)
def score_all_pairs(theta: Any, sizes: Any, items_t: Any, P: Any, scores: Any, winner: Any) -> None:
    """Maximum scores of every pair of items.

    Args:
        sizes: those of a context that holds all m items; ``items_t`` is [E, L], and ``P`` [C, L],
            ``scores`` and ``winner`` [L, L] are written.
    """
    project(theta.W, items_t, sizes, P)
    max_over_heads(P, P, sizes.L, sizes, scores, winner)


@numba.njit(nogil=True, cache=True)
def error_in_contexts(
    theta: Any,
    scratch: Any,
    sizes: Any,
    items: Any,
    messages: Any,
    targets: Any,
    contexts: Any,
    until: Any,
    asked: Any,
    table: Any,
    all_scores: Any,
    width: int,
) -> float:
    """Sum of the squared errors of the messages that are asked for, float64 over contexts.

    Args:
        until, asked: context i asks for the targets of its positions ``asked[until[i - 1] :
            until[i]]``; both int64.
        table: what ``project_items`` made; empty: project each context by itself.
        all_scores: what ``score_all_pairs`` made, in rows of ``width``; empty: score each context.
    """
    here = np.arange(sizes.length).astype(np.int32)
    error, done = 0.0, 0
    for index in range(contexts.shape[0]):
        nodes = contexts[index]
        if all_scores.size == 0:
            score_context(theta, scratch, sizes, items, nodes, table)
        squares = full(1, 0.0)
        for ask in range(done, until[index]):
            p = asked[ask]
            node = nodes[p]
            if all_scores.size > 0:
                scores, first, places = all_scores, node * width, nodes
            else:
                scores, first, places = scratch.scores, p * sizes.L, here
            squares = squares + squared_error(
                scores, first, places, messages, sizes, nodes, targets[node]
            )
        error += total(squares)
        done = until[index]
    return error


@numba.njit(nogil=True, cache=True)
def error_by_meetings(sizes: Any, targets: Any, all_scores: Any, form: Any) -> float:
    """Sum of the squared errors of all messages that contexts ask for, float64 over items.

    Args:
        all_scores: what ``score_all_pairs`` made; wanted messages are subtracted from it.
        form: that of ``form_of_errors``, float32 [m, L, L].
    """
    error = 0.0
    for source in range(sizes.length):
        first = source * sizes.L
        all_scores[first + targets[source]] -= np.float32(1.0)
        error += squared_form(all_scores, first, form, sizes.L)
    return error
