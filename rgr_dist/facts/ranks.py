"""Ranks of 3-tensors: of databases, and of the logits of a layer (arXiv:2502.05076).

The rank of a tensor T of |K| x |Q| x |V| is the least R with T = sum of R terms a ⊗ b ⊗ c. Finding
it is NP-hard, so here it is bounded from both sides. We have only a summary of the paper, which
names Propositions 2.1 and 3.5 but prints no proof, nor a formula for the second: what is stated
here is proved here.

*From below.* Unfold T to a matrix [|K|, |Q| |V|], and likewise for the other two sides. A sum of R
terms of rank one unfolds to a sum of R matrices of rank at most one. So the rank of T is at least
that of each of its unfoldings. None of these exceeds the longest side of T, so if the true rank
does, a gap remains.

*Proposition 2.1* (from above, for a 0/1 tensor D). With V_k the values that a key has at some
query and V_q those that a query has at some key, rank(D) <= min(sum_k |V_k|, sum_q |V_q|). Proof:
group the triples by key and value. D is the sum of e_k ⊗ 1_{q : (k, q, v) in D} ⊗ e_v over the
pairs (k, v) that occur, which are sum_k |V_k|. Grouping by query and value gives sum_q |V_q| terms.
(Grouping by key and query gives |D| terms if each pair has one value, which is no fewer.)

*Proposition 3.5* (from above, for the logits). Both hold:

    rank(L) <= min(h d_vo, d_model) min(|K|, |Q|) + e,    rank(L) <= d_model min(|K|, |Q|),

with e = min(|Q|, |V|, d_model) if there is a residual connection and 0 if there is none.
Proof: the output at (k, q) is r x_q + sum_i (A^i_kq x_k + (1 - A^i_kq) x_q) W_V^i W_O^i, times U.
Split each head by the d_vo coordinates j of its values. All terms but the first are the sum over
(i, j) of M^ij ⊗ c^ij, with |K| x |Q| matrices M^ij_kq = A^i_kq a^i_kj + (1 - A^i_kq) b^i_qj and
vectors c^ij, row j of W_O^i U. The h d_vo vectors span at most min(h d_vo, d_model) dimensions,
since U is a factor of them all; in a basis of that span, the sum has one term M ⊗ c for each basis
vector, and a matrix M is a sum of min(|K|, |Q|) terms of rank one. The first term is r (X_Q U)_qv
at every k: 1 ⊗ a matrix of rank at most e. For the second bound, split the whole output by its
d_model coordinates: a sum of d_model terms M ⊗ row of U.

*What the paper most likely prints* is the sum d_model + h d_vo |Q| (``summed_rank_bound``). The
summary has no formula, but says that the bound contains d_head,vo and not d_head,qk; that |Q| is a
factor of W_VO's part; that L = E + sum_h A^h V^h, where only E does not involve W_VO; and it tells
the reader to plot accuracy against d_model + d_head,vo for one head, a sum. As e <= d_model and
min(|K|, |Q|) <= |Q|, our first bound is never above it.

By the same sums the unfolding [|V|, |K| |Q|] of L has rank at most min(d_model, h d_vo + e). So
logits have a low rank, but what is derived from them need not: softmax≥tau(L) and argmax(L) are 0/1
tensors, to which Proposition 2.1 applies and 3.5 does not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

PRIME = 2**31 - 1
"""Exact ranks are computed modulo this prime."""

Tensor = npt.NDArray[np.floating]


class DatabaseRank(NamedTuple):
    """Bounds on the rank of a database's tensor.

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
    """The three unfoldings of a 3-tensor, with a row for each key, each query and each value."""
    return [np.moveaxis(tensor, mode, 0).reshape(tensor.shape[mode], -1) for mode in range(3)]


def logits_rank(logits: Tensor) -> int:
    """The largest rank of an unfolding of real numbers, a lower bound on their tensor rank.

    A singular value counts if it exceeds the largest one times the longest side of the tensor times
    the spacing of float64 at 1: anything below may be a rounding error. Directions that weak are
    missed, so the number is still a lower bound.
    """
    return max(_singular_rank(matrix, max(logits.shape)) for matrix in unfoldings(logits))


def _singular_rank(matrix: Tensor, longest: int) -> int:
    wide = matrix if len(matrix) < matrix.shape[1] else matrix.T
    triangle = np.linalg.qr(wide.T, mode="r")  # small, with the same singular values
    sizes = np.linalg.svd(triangle, compute_uv=False)
    return int((sizes > longest * np.finfo(np.float64).eps * sizes[0]).sum())


def triples_rank(triples: npt.NDArray[np.integer]) -> DatabaseRank:
    """Bounds on the rank of a 0/1 tensor from the positions of its ones, int [n, 3]."""
    if not len(triples):
        return DatabaseRank(0, 0, 0, 0)
    lower = max(_unfolding_rank(triples, mode) for mode in range(3))
    of_keys = len(np.unique(triples[:, [0, 2]], axis=0))
    of_queries = len(np.unique(triples[:, 1:], axis=0))
    return DatabaseRank(lower, min(of_keys, of_queries), of_keys, of_queries)


LARGEST_EXACT, LARGEST_CORE = 300, 2000
"""Shorter side of the largest matrix whose rank is exact, and of the largest that is tried."""


def _unfolding_rank(triples: npt.NDArray[np.integer], mode: int) -> int:
    """The rank of an unfolding, or a lower bound on it.

    Most entries need no arithmetic. An entry that is alone in its row clears its column, and one
    alone in its column clears its row; each such step lowers the rank by one. The rank of the
    remaining matrix is exact up to ``LARGEST_EXACT``, found by singular values up to
    ``LARGEST_CORE`` (as in ``logits_rank``), and taken as 0 beyond that: a lower bound.
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

    It is never above the rank over the rationals, so it is certainly a lower bound; it is below
    only if the prime divides every minor of the size of that rank.
    """
    left = np.array(matrix, dtype=np.int64) % PRIME
    if left.shape[0] > left.shape[1]:
        left = left.T.copy()
    if 2 * left.shape[0] < left.shape[1] and left.max(initial=0) <= 1:
        left = left @ left.T % PRIME  # same rank over the rationals; no larger modulo p
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
        shape: |K|, |Q|, |V|. The product of any two bounds the rank of every tensor.
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
    """Proposition 3.5 as the paper most likely prints it; never below ``layer_rank_bound``."""
    return d_model + h * d_vo * queries


def places_of_largest(logits: Tensor) -> npt.NDArray[np.int64]:
    """The positions of ones in argmax(L), [|K| |Q|, 3]: key, query and value of each pair."""
    keys, queries = np.indices(logits.shape[:2]).reshape(2, -1)
    return np.stack([keys, queries, logits.argmax(axis=2).reshape(-1)], axis=1)
