"""Databases: sets of triples (key, query, value), a sparse 0/1 3-tensor D of |K| x |Q| x |V|.

Families draw from counter-based streams, each addressed by a problem, a role and a seed. A uniform
integer below n is (word * n) >> 32.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rgr_dist.facts.cell import Database, Listed, LowRank, Partial, Predicates
from rgr_dist.problem.streams import SHIFT_32, Stream
from rgr_dist.study import assets

Int32Array = npt.NDArray[np.int32]
Block = tuple[npt.NDArray[np.integer], npt.NDArray[np.integer]]
"""Some keys and some queries, which stand for all pairs of one of each."""


def sample_triples(database: Database, problem: str, seed: int) -> Int32Array:
    """The triples of a database, int32 [|D|, 3]: key, query, value, sorted in this order.

    Triples from a file are the same at every seed.

    Args:
        problem: what the streams are keyed by (``Cell.problem_json``).

    Raises:
        AssetError: the triples of a file have not been loaded in this process.
    """
    if isinstance(database, Listed):
        return assets.get(database.digest)
    if isinstance(database, LowRank):
        return _triples(database, np.arange(database.n_asked), _of_blocks(database, problem, seed))
    pairs = np.arange(database.keys * database.queries)
    if isinstance(database, Partial):
        order = Stream.of(problem, "asked", seed).permutation(pairs.size)
        pairs = np.sort(order[: database.n_asked])
    words = Stream.of(problem, "values", seed).words(pairs.size)
    if isinstance(database, Predicates):
        sets = _value_sets(database, problem, seed)
        return _triples(
            database, pairs, sets[pairs % database.queries, _below(words, database.per_query)]
        )
    return _triples(database, pairs, _below(words, database.values))


def tensor(triples: npt.NDArray[np.integer], shape: tuple[int, int, int]) -> npt.NDArray[np.uint8]:
    """D as a dense 0/1 array, uint8 [|K|, |Q|, |V|]."""
    dense = np.zeros(shape, dtype=np.uint8)
    dense[tuple(triples.T)] = 1
    return dense


def _triples(
    database: Database, pairs: npt.NDArray[np.integer], values: npt.NDArray[np.integer]
) -> Int32Array:
    """The triples of some pairs, which are numbered key by key, and their values."""
    keys, queries = np.divmod(pairs, database.queries)
    return np.stack([keys, queries, values], axis=1).astype(np.int32)


def _below(words: npt.NDArray[np.uint32], n: int) -> npt.NDArray[np.int64]:
    return ((words.astype(np.uint64) * np.uint64(n)) >> SHIFT_32).astype(np.int64)


def _value_sets(database: Predicates, problem: str, seed: int) -> Int32Array:
    """The values of each query, a uniform set of ``per_query``, int32 [|Q|, per_query]."""
    return np.stack(
        [
            Stream.of(problem, f"values of {q}", seed).permutation(database.values)
            for q in range(database.queries)
        ]
    )[:, : database.per_query]


def _of_blocks(database: LowRank, problem: str, seed: int) -> Int32Array:
    """The value of every pair in a database whose tensor has rank R, int32 [|K| |Q|].

    The pairs are cut into R blocks S_r x T_r of keys and queries, each with a value v_r of its
    own, so that D is the sum over r of 1_{S_r} ⊗ 1_{T_r} ⊗ e_{v_r}.

    *Its rank is R.* At most, since that is a sum of R terms of rank one. At least, since the
    unfolding [|V|, |K| |Q|] has the rows 1_{S_r x T_r} at v_r and zeros elsewhere: R rows that are
    not zero and have disjoint supports, so they are independent; and the rank of a tensor is at
    least that of each of its unfoldings. The proof needs R <= |V|.

    Each cut halves the largest block, or the oldest of equally large ones, by keys or by queries; a
    random word decides if both are possible.
    """
    order = Stream.of(problem, "block values", seed).permutation(database.values)
    coins = Stream.of(problem, "sides", seed).words(database.rank)
    blocks: list[Block] = [(np.arange(database.keys), np.arange(database.queries))]
    for cut in range(database.rank - 1):
        sizes = [len(keys) * len(queries) for keys, queries in blocks]
        keys, queries = blocks.pop(int(np.argmax(sizes)))
        by_keys = len(queries) == 1 or (len(keys) > 1 and coins[cut] >> 31 == 0)
        side = keys if by_keys else queries
        shuffled = side[Stream.of(problem, f"cut {cut}", seed).permutation(len(side))]
        halves = np.split(shuffled, [len(side) // 2])
        blocks += [(half, queries) if by_keys else (keys, half) for half in halves]
    values = np.empty((database.keys, database.queries), dtype=np.int32)
    for (keys, queries), value in zip(blocks, order, strict=False):
        values[np.ix_(keys, queries)] = value
    return values.reshape(-1)
