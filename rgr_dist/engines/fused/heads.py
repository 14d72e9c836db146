"""Combines the scores of all heads into one in the compiled step, forward and backward.

The result is their maximum (Sec. 6) or the sum of their softmaxes over the context (Sec. 7.1 and
8). Array names and layout are those of ``step``. In a softmax, sources run along the rows of a tile
and targets down its columns, so that it works on whole registers:

    attention [h, L, L], scores_t [L, L]: rows are targets q, columns are sources p

Rows of targets that are not in the context stay zero.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from rgr_dist.engines.fused.simd import (
    ROWS,
    WIDTH,
    exponential,
    fma,
    splat,
    transposed,
    where_above,
    where_above_or_nan,
    where_equal,
)
from rgr_dist.engines.fused.simd_memory import load, outer_fma, store, transpose, vec_mat


@numba.njit(nogil=True)
def heads_forward(P: Any, sizes: Any, attention: Any, workspace: Any) -> None:
    """Combined scores of all pairs of a context, from its queries and keys.

    Args:
        attention: None for the maximum; numba then compiles only that branch.
    """
    if attention is None:
        max_forward(P, P, sizes.L, sizes, workspace.scores, workspace.argmax_head)
    else:
        softmax_forward(P, sizes, attention, workspace.scores_t)
        transpose(workspace.scores_t, sizes.L, sizes.L, workspace.scores)


@numba.njit(nogil=True)
def heads_backward(P: Any, sizes: Any, attention: Any, workspace: Any) -> None:
    """Gradient of queries and keys, from the gradient of the combined scores."""
    L, D = sizes.L, sizes.h * sizes.d_k
    grad, grad_t, dP = workspace.grad_scores, workspace.grad_scores_t, workspace.dP
    transpose(grad, L, L, grad_t)
    if attention is None:
        max_backward(P, 0, grad, workspace.argmax_head, sizes, D, dP)
        transpose(workspace.argmax_head, L, L, workspace.argmax_head_t)
        max_backward(P, D, grad_t, workspace.argmax_head_t, sizes, 0, dP)
    else:
        softmax_backward(P, grad_t, attention, sizes, dP)


@numba.njit(nogil=True)
def max_forward(P: Any, keys: Any, M: int, sizes: Any, scores: Any, argmax_head: Any) -> None:
    """S_max(p, q) = max over heads of <q_p, k_q>, and the first head that reaches it.

    Args:
        P: holds the queries.
        keys: [C, M], holds the keys: P itself in training.
        scores, argmax_head: [L, M]; results.
    """
    L, D = sizes.L, sizes.h * sizes.d_k
    for q in range(0, M, WIDTH):
        for p in range(0, sizes.length, ROWS):
            best, best_head = splat(ROWS, -np.inf), splat(ROWS, 0.0)
            for head in range(sizes.h):
                sums = splat(ROWS, 0.0)
                for c in range(head * sizes.d_k, (head + 1) * sizes.d_k):
                    sums = outer_fma(sums, P, c * L + p, 1, load(1, keys, (D + c) * M + q, 0))
                best_head = where_above_or_nan(sums, best, np.float32(head), best_head)
                best = where_above_or_nan(sums, best, sums, best)
            store(scores, p * M + q, M, best)
            store(argmax_head, p * M + q, M, best_head)


@numba.njit(nogil=True)
def max_backward(
    P: Any, source: int, grad: Any, argmax_head: Any, sizes: Any, out: int, dP: Any
) -> None:
    """Gradient of the queries or of the keys; only the head with the largest score has one.

    Row out + c of dP gets dK[c, q] = sum of Q[c, p] grad[p, q] over those p where c belongs to the
    head with the largest score; row source + c of P is Q[c]. With ``grad`` and ``argmax_head``
    transposed, and queries and keys swapped, it gets dQ.
    """
    L = sizes.L
    zero = np.float32(0.0)
    for q in range(0, L, WIDTH):
        for p in range(0, L, WIDTH):
            for head in range(sizes.h):
                own = where_equal(
                    load(WIDTH, argmax_head, p * L + q, L),
                    np.float32(head),
                    load(WIDTH, grad, p * L + q, L),
                    zero,
                )
                for c in range(head * sizes.d_k, (head + 1) * sizes.d_k):
                    row = vec_mat(P, (source + c) * L + p, own)
                    at = (out + c) * L + q
                    if p > 0:
                        row = row + load(1, dP, at, 0)
                    store(dP, at, 0, row)


@numba.njit(nogil=True)
def softmax_forward(P: Any, sizes: Any, attention: Any, scores_t: Any) -> None:
    """Attention of each head, the softmax of <q_p, k_q> / sqrt(d_k), and its sum over heads.

    The largest logit of a source is subtracted first; a logit that lies more than
    ``LARGEST_LOGIT`` below it counts as if it lay exactly that far below. A NaN need not be found
    as the largest logit: its own exponential makes every share of its source NaN.
    """
    L, D, length = sizes.L, sizes.h * sizes.d_k, sizes.length
    scale = np.float32(1 / np.sqrt(sizes.d_k))
    for p in range(0, L, WIDTH):
        for head in range(sizes.h):
            first = head * L * L + p
            for q in range(0, length, ROWS):
                sums = splat(ROWS, 0.0)
                for c in range(head * sizes.d_k, (head + 1) * sizes.d_k):
                    sums = outer_fma(sums, P, (D + c) * L + q, 1, load(1, P, c * L + p, 0))
                store(attention, first + q * L, L, sums)
            top = splat(1, -np.inf)
            for q in range(length):
                logit = load(1, attention, first + q * L, 0)
                top = where_above(logit, top, logit, top)
            whole = splat(1, 0.0)
            for q in range(length):
                share = exponential((load(1, attention, first + q * L, 0) - top) * scale)
                store(attention, first + q * L, 0, share)
                whole = whole + share
            whole = splat(1, 1.0) / whole
            for q in range(length):
                share = load(1, attention, first + q * L, 0) * whole
                store(attention, first + q * L, 0, share)
                if head > 0:
                    share = share + load(1, scores_t, q * L + p, 0)
                store(scores_t, q * L + p, 0, share)


@numba.njit(nogil=True)
def softmax_backward(P: Any, grad_t: Any, attention: Any, sizes: Any, dP: Any) -> None:
    """Gradient of queries and keys: dS = A (G - sum over q of A G) / sqrt(d_k) per head.

    G is the gradient of the combined scores. dQ[c, p] sums K[c, q] dS[p, q] over q, and dK[c, q]
    sums Q[c, p] dS[p, q] over p.
    """
    L, D = sizes.L, sizes.h * sizes.d_k
    scale = np.float32(1 / np.sqrt(sizes.d_k))
    for head in range(sizes.h):
        for p in range(0, L, WIDTH):
            mean = splat(1, 0.0)
            for q in range(sizes.length):
                share = load(1, attention, (head * L + q) * L + p, 0)
                mean = fma(share, load(1, grad_t, q * L + p, 0), mean)
            for q in range(0, L, WIDTH):
                share = load(WIDTH, attention, (head * L + q) * L + p, L)
                dS_t = share * (load(WIDTH, grad_t, q * L + p, L) - mean) * scale
                for c in range(head * sizes.d_k, (head + 1) * sizes.d_k):
                    row = vec_mat(P, (D + c) * L + q, dS_t)
                    if q > 0:
                        row = row + load(1, dP, c * L + p, 0)
                    store(dP, c * L + p, 0, row)
                dS = transposed(dS_t)
                for c in range(head * sizes.d_k, (head + 1) * sizes.d_k):
                    row = vec_mat(P, c * L + p, dS)
                    if p > 0:
                        row = row + load(1, dP, (D + c) * L + q, 0)
                    store(dP, (D + c) * L + q, 0, row)
