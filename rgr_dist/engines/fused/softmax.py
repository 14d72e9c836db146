"""Softmax over the context, summed over heads, in the compiled step (Sec. 7.1 and 8).

Array names and layout are those of ``fused_pieces``. Sources run along a row of a tile and
targets from row to row, as in ``_t`` arrays, so that a softmax works on whole registers:

    attention [h, L, L], scores_t [L, L]: rows are targets q, columns are sources p

Rows of targets that are not in the context stay zero. No fast-math: what is not finite stays so.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from rgr_dist.engines.fused.moves import add_outer, contract, load, store, transposed
from rgr_dist.engines.fused.pieces import ROWS, exponential
from rgr_dist.engines.fused.tiles import WIDTH, fma, full, where_above


@numba.njit(nogil=True)
def softmax_over_context(P: Any, sizes: Any, attention: Any, scores_t: Any) -> None:
    """Attention of each head, the softmax of <q_p, k_q> / sqrt(d_k), and its sum over heads.

    The largest logit of a source is subtracted first; what lies more than ``LARGEST_LOGIT``
    below it gets the share of that. A logit that is no number need not be the largest: its own
    share makes all of its source so.
    """
    L, D, length = sizes.L, sizes.h * sizes.d_k, sizes.length
    scale = np.float32(1 / np.sqrt(sizes.d_k))
    for p in range(0, L, WIDTH):
        for head in range(sizes.h):
            first = head * L * L + p
            for q in range(0, length, ROWS):
                sums = full(ROWS, 0.0)
                for c in range(head * sizes.d_k, (head + 1) * sizes.d_k):
                    sums = add_outer(sums, P, (D + c) * L + q, 1, load(1, P, c * L + p, 0))
                store(attention, first + q * L, L, sums)
            top = full(1, -np.inf)
            for q in range(length):
                logit = load(1, attention, first + q * L, 0)
                top = where_above(logit, top, logit, top)
            whole = full(1, 0.0)
            for q in range(length):
                share = exponential((load(1, attention, first + q * L, 0) - top) * scale)
                store(attention, first + q * L, 0, share)
                whole = whole + share
            whole = full(1, 1.0) / whole
            for q in range(length):
                share = load(1, attention, first + q * L, 0) * whole
                store(attention, first + q * L, 0, share)
                if head > 0:
                    share = share + load(1, scores_t, q * L + p, 0)
                store(scores_t, q * L + p, 0, share)


@numba.njit(nogil=True)
def pull_softmax(P: Any, pull_t: Any, attention: Any, sizes: Any, dP: Any) -> None:
    """Gradient of queries and keys: dS = A (pull - sum over q of A pull) / sqrt(d_k) by head.

    dQ[c, p] sums K[c, q] dS[p, q] over q, and dK[c, q] sums Q[c, p] dS[p, q] over p.
    """
    L, D = sizes.L, sizes.h * sizes.d_k
    scale = np.float32(1 / np.sqrt(sizes.d_k))
    for head in range(sizes.h):
        for p in range(0, L, WIDTH):
            mean = full(1, 0.0)
            for q in range(sizes.length):
                share = load(1, attention, (head * L + q) * L + p, 0)
                mean = fma(share, load(1, pull_t, q * L + p, 0), mean)
            for q in range(0, L, WIDTH):
                share = load(WIDTH, attention, (head * L + q) * L + p, L)
                dS_t = share * (load(WIDTH, pull_t, q * L + p, L) - mean) * scale
                for c in range(head * sizes.d_k, (head + 1) * sizes.d_k):
                    row = contract(P, (D + c) * L + q, dS_t)
                    if q > 0:
                        row = row + load(1, dP, c * L + p, 0)
                    store(dP, c * L + p, 0, row)
                dS = transposed(dS_t)
                for c in range(head * sizes.d_k, (head + 1) * sizes.d_k):
                    row = contract(P, c * L + p, dS)
                    if p > 0:
                        row = row + load(1, dP, (D + c) * L + q, 0)
                    store(dP, (D + c) * L + q, 0, row)
