"""Ranks of 3-tensors: of databases, and of the logits of a layer (arXiv:2502.05076).

The rank of a tensor T of |K| x |Q| x |V| is the least R with T = sum of R terms a ⊗ b ⊗ c. To find
it is NP-hard, so here it stands between bounds. Our seeds have a summary of the paper alone,
which names Propositions 2.1 and 3.5 but prints no proof and, of the second, no formula: what is
stated here is proved here.

*From below.* Unfold T to a matrix [|K|, |Q| |V|], and likewise for the other two. A sum of R terms
of rank one unfolds to a sum of R matrices of rank at most one. So the rank of T is at least that
of each of its unfoldings. None of these exceeds the longest side of T, so where the true rank does,
the gap stays open.

*Proposition 2.1* (from above, for a 0/1 tensor D). With V_k the values that a key has at some
query and V_q those of a query, rank(D) <= min(sum_k |V_k|, sum_q |V_q|). Proof: gather the triples
by key and value. D is the sum over the pairs (k, v) that occur of
e_k ⊗ 1_{q : (k, q, v) in D} ⊗ e_v, and there are sum_k |V_k| of them. By query and value there are
sum_q |V_q|. (By key and query there are |D| where each pair has one value, which is no less.)

*Proposition 3.5* (from above, for the logits). Both hold:

    rank(L) <= min(h d_vo, d_model) min(|K|, |Q|) + e,    rank(L) <= d_model min(|K|, |Q|),

with e = min(|Q|, |V|, d_model) where there is a residual connection and 0 where there is none.
Proof: the output at (k, q) is r x_q + sum_i (A^i_kq x_k + (1 - A^i_kq) x_q) W_V^i W_O^i, times U.
Split each head by the d_vo coordinates j of its values. All but the first term is the sum over
(i, j) of M^ij ⊗ c^ij, with |K| x |Q| matrices M^ij_kq = A^i_kq a^i_kj + (1 - A^i_kq) b^i_qj and
vectors c^ij, row j of W_O^i U. The h d_vo vectors span at most min(h d_vo, d_model) dimensions,
since U is a factor of them all; written in a basis of that span, it is a sum of so many terms
M ⊗ c, and a matrix M is a sum of min(|K|, |Q|) terms of rank one. The first term is r (X_Q U)_qv at
every k: 1 ⊗ a matrix of rank e at most. For the second bound, split the whole output by its
d_model coordinates: a sum of d_model terms M ⊗ row of U.

*What the paper most likely prints* is the sum d_model + h d_vo |Q| (``summed_rank_bound``). The
summary has no formula, but says that the bound holds d_head,vo and not d_head,qk; that |Q| is a
factor of W_VO's part; that L = E + sum_h A^h V^h, of which E alone is not W_VO's; and it tells the
reader to plot accuracy against d_model + d_head,vo for one head, a sum. As e <= d_model and
min(|K|, |Q|) <= |Q|, ours are never above it.

By the same sums the unfolding [|V|, |K| |Q|] of L has rank at most min(d_model, h d_vo + e). So
logits have a low rank, but not what is made of them: softmax≥tau(L) and argmax(L) are 0/1
tensors, to which Proposition 2.1 applies and 3.5 does not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

PRIME = 2**31 - 1
"""Exact ranks are counted modulo this prime."""

Tensor = npt.NDArray[np.floating]


class DatabaseRank(NamedTuple):
    """What is known of the rank of a database's tensor.

    Attributes:
        lower: the largest rank of an unfolding, or a bound on it from below (``_unfolding_rank``).
        upper: min(sum_k |V_k|, sum_q |V_q|), Proposition 2.1.
        values_of_keys: sum over the keys of |V_k|, the values that a key has at some query.
        values_of_queries: sum over the queries of |V_q|.
    """

    lower: int
    upper: int
    values_of_keys: int
    values_of_queries: int


def unfoldings(tensor: Tensor) -> list[Tensor]:
    """The three matrices of a 3-tensor, a row for each key, query, value."""
    return [np.moveaxis(tensor, mode, 0).reshape(tensor.shape[mode], -1) for mode in range(3)]


def logits_rank(logits: Tensor) -> int:
    """The largest rank of an unfolding of real numbers, a lower bound on their tensor rank.

    A singular value counts if it exceeds the largest one times the longest side of the tensor times
    the spacing of float64 at 1: what is below may be rounding. A direction as weak as that is not
    seen, so the number is a lower bound still.
    """
    return max(_singular_rank(matrix, max(logits.shape)) for matrix in unfoldings(logits))


def _singular_rank(matrix: Tensor, longest: int) -> int:
    wide = matrix if len(matrix) < matrix.shape[1] else matrix.T
    triangle = np.linalg.qr(wide.T, mode="r")  # the same singular values, and small
    sizes = np.linalg.svd(triangle, compute_uv=False)
    return int((sizes > longest * np.finfo(np.float64).eps * sizes[0]).sum())


def triples_rank(triples: npt.NDArray[np.integer]) -> DatabaseRank:
    """Bounds on the rank of a 0/1 tensor from the places of its ones, int [n, 3]."""
    if not len(triples):
        return DatabaseRank(0, 0, 0, 0)
    lower = max(_unfolding_rank(triples, mode) for mode in range(3))
    of_keys = len(np.unique(triples[:, [0, 2]], axis=0))
    of_queries = len(np.unique(triples[:, 1:], axis=0))
    return DatabaseRank(lower, min(of_keys, of_queries), of_keys, of_queries)


LARGEST_EXACT, LARGEST_CORE = 300, 2000
"""Shorter side of the largest matrix whose rank is counted exactly, and of the largest at all."""


def _unfolding_rank(triples: npt.NDArray[np.integer], mode: int) -> int:
    """The rank of an unfolding, or what is certain of it.

    Most entries need no arithmetic. An entry that is alone in its row clears its column, and one
    alone in its column clears its row; each such step leaves a matrix of a rank lower by one. The
    rank of what is left is exact up to ``LARGEST_EXACT``, by singular values up to
    ``LARGEST_CORE`` (as in ``logits_rank``), and beyond taken as 0: a lower bound.
    """
    _, rows = np.unique(triples[:, mode], return_inverse=True)
    _, columns = np.unique(np.delete(triples, mode, axis=1), axis=0, return_inverse=True)
    lines = [rows.reshape(-1), columns.reshape(-1)]
    rank, settled = 0, 0
    while lines[0].size and settled < 2:
        settled = 0
        for along, across in ((0, 1), (1, 0)):
            alone = np.bincount(lines[along])[lines[along]] == 1
            cleared = np.unique(lines[across][alone])
            rank, settled = rank + cleared.size, settled + (cleared.size == 0)
            kept = ~np.isin(lines[across], cleared)
            lines = [line[kept] for line in lines]
    if not lines[0].size:
        return rank
    (_, rows), (_, columns) = (np.unique(line, return_inverse=True) for line in lines)
    shape = int(rows.max()) + 1, int(columns.max()) + 1
    if min(shape) > LARGEST_CORE:
        return rank
    matrix = np.zeros(shape, dtype=np.int64)
    matrix[rows, columns] = 1
    matrix = np.unique(matrix, axis=0)
    if min(matrix.shape) > LARGEST_EXACT:
        return rank + _singular_rank(matrix.astype(np.float64), max(matrix.shape))
    return rank + exact_rank(matrix)


def exact_rank(matrix: npt.NDArray[np.integer]) -> int:
    """The rank of a matrix of integers modulo the prime 2^31 - 1, without rounding.

    It is never above the rank over the rationals, so it is a lower bound with certainty; it is
    below only where the prime divides every minor of the full size.
    """
    left = np.array(matrix, dtype=np.int64) % PRIME
    if left.shape[0] > left.shape[1]:
        left = left.T.copy()
    if 2 * left.shape[0] < left.shape[1] and left.max(initial=0) <= 1:
        left = left @ left.T % PRIME  # over the rationals of the same rank; modulo p of no larger
    rank = 0
    for column in range(left.shape[1]):
        if rank == len(left):
            break
        found = np.flatnonzero(left[rank:, column])
        if not found.size:
            continue
        left[[rank, rank + found[0]]] = left[[rank + found[0], rank]]
        below = rank + 1 + np.flatnonzero(left[rank + 1 :, column])
        inverse = pow(int(left[rank, column]), -1, PRIME)
        factor = left[below, column] * inverse % PRIME
        left[below, column:] = (
            left[below, column:] - factor[:, np.newaxis] * left[rank, column:] % PRIME
        ) % PRIME
        rank += 1
    return rank


def layer_rank_bound(
    shape: tuple[int, int, int], h: int, d_vo: int, d_model: int, residual: bool
) -> int:
    """The largest rank that the logits of a layer can have (Proposition 3.5 as proved above).

    Args:
        shape: |K|, |Q|, |V|. The product of any two is a bound on every tensor.
    """
    keys, queries, values = shape
    smaller = min(keys, queries)
    embedded = min(queries, values, d_model) if residual else 0
    return min(
        min(h * d_vo, d_model) * smaller + embedded,
        d_model * smaller,
        keys * queries,
        keys * values,
        queries * values,
    )


def summed_rank_bound(queries: int, h: int, d_vo: int, d_model: int) -> int:
    """Proposition 3.5 as the sum that it most likely is; never below ``layer_rank_bound``."""
    return d_model + h * d_vo * queries


def least_value_width(
    shape: tuple[int, int, int], rank: int, d_model: int, residual: bool
) -> int | None:
    """The least h d_vo at which logits can have a rank (``layer_rank_bound``); None if at none."""
    widths = range(1, d_model + 1)  # a wider layer has no higher bound
    return next(
        (D_V for D_V in widths if layer_rank_bound(shape, 1, D_V, d_model, residual) >= rank), None
    )


def places_of_largest(logits: Tensor) -> npt.NDArray[np.int64]:
    """Where argmax(L) is one: a value for each pair, [|K| |Q|, 3]."""
    keys, queries = np.indices(logits.shape[:2]).reshape(2, -1)
    return np.stack([keys, queries, logits.argmax(axis=2).reshape(-1)], axis=1)
