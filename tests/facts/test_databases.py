"""Databases: sizes, laws of the draws, and the stated rank."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy.stats import chisquare

from rgr_dist.facts.cell import Listed
from rgr_dist.facts.databases import sample_triples, tensor
from rgr_dist.facts.ranks import triples_rank
from rgr_dist.study import assets
from tests.facts.made_up import FAMILIES, database


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("sizes", [(12, 4, 9), (1, 7, 6), (30, 1, 5)])
def test_a_database_is_a_function_of_the_stated_size(
    family: str, sizes: tuple[int, int, int]
) -> None:
    asked = database(family, *sizes)
    for seed in range(3):
        triples = sample_triples(asked, "problem", seed)
        assert triples.dtype == np.int32
        assert triples.shape == (asked.n_asked, 3)
        rows = [tuple(row) for row in triples.tolist()]
        assert all(one[:2] < other[:2] for one, other in pairwise(rows))
        assert (triples >= 0).all()
        assert (triples < sizes).all()
        assert tensor(triples, sizes).sum() == asked.n_asked
        assert tensor(triples, sizes).dtype == np.uint8


@pytest.mark.parametrize("family", FAMILIES)
def test_a_database_depends_on_its_seed_and_problem_alone(family: str) -> None:
    asked = database(family)
    first = sample_triples(asked, "problem", 0)
    assert (first == sample_triples(asked, "problem", 0)).all()
    assert not np.array_equal(first, sample_triples(asked, "problem", 1))
    assert not np.array_equal(first, sample_triples(asked, "other", 0))


@pytest.mark.parametrize(
    ("family", "own", "table"),
    [
        ("function", {}, [[5, 1, 0], [3, 3, 2], [2, 5, 1], [2, 0, 2]]),
        ("partial", {"share": 0.5}, [[None, 5, 1], [0, 3, 3], [None] * 3, [None, None, 2]]),
        ("predicates", {"per_query": 2}, [[2, 0, 3], [2, 3, 3], [0, 3, 3], [0, 0, 3]]),
        (
            "low-rank",
            {"rank": 16, "values": 20},
            [
                [16, 16, 2, 15, 8],
                [18, 18, 18, 9, 12],
                [6, 6, 6, 9, 19],
                [11, 11, 13, 15, 12],
                [17, 17, 17, 4, 7],
                [5, 5, 5, 14, 19],
            ],
        ),
    ],
)
def test_stored_runs_keep_their_triples(
    family: str, own: dict[str, Any], table: list[list[int | None]]
) -> None:
    sizes = {"keys": len(table), "queries": len(table[0]), "values": 6}
    triples = sample_triples(database(family, **{**sizes, **own}), "problem", 2)
    assert triples.tolist() == [
        [key, query, value]
        for key, row in enumerate(table)
        for query, value in enumerate(row)
        if value is not None
    ]


def test_triples_of_a_file_are_the_same_at_every_seed() -> None:
    triples = np.array([[0, 0, 1], [0, 1, 0], [2, 0, 1]], dtype=np.int32)
    asked = Listed(digest=assets.add(triples), keys=3, queries=2, values=2, triples=3)
    for seed in range(2):
        assert sample_triples(asked, "problem", seed).tolist() == triples.tolist()


@pytest.mark.parametrize("family", ["function", "partial"])
def test_values_and_pairs_are_uniform(family: str) -> None:
    asked = database(family, keys=200, queries=50, values=10)
    triples = sample_triples(asked, "problem", 0)
    for column, size in ((0, 200), (1, 50), (2, 10)):
        seen = np.bincount(triples[:, column], minlength=size)
        assert chisquare(seen).pvalue > 1e-3


def test_predicates_draw_from_a_set_of_their_own() -> None:
    triples = sample_triples(database("predicates", 200, 20, 30, per_query=3), "problem", 0)
    sets = [set(triples[triples[:, 1] == query, 2].tolist()) for query in range(20)]
    assert all(len(one) == 3 for one in sets)
    assert len(set.union(*sets)) > 20
    assert triples_rank(triples).values_of_queries == 60


def ranks_of_unfoldings(dense: np.ndarray) -> list[int]:
    return [
        int(np.linalg.matrix_rank(np.moveaxis(dense, mode, 0).reshape(dense.shape[mode], -1)))
        for mode in range(3)
    ]


@given(st.integers(1, 9), st.integers(1, 6), st.integers(2, 12), st.data())
@settings(max_examples=40, deadline=None)
def test_a_low_rank_database_has_the_stated_rank(
    keys: int, queries: int, values: int, data: st.DataObject
) -> None:
    """From above: it is the sum of R blocks. From below: an unfolding has rank R."""
    rank = data.draw(st.integers(1, min(values, keys * queries)))
    asked = database("low-rank", keys, queries, values, rank=rank)
    dense = tensor(sample_triples(asked, "problem", 0), (keys, queries, values))
    used = [value for value in range(values) if dense[:, :, value].any()]
    assert len(used) == rank
    for value in used:
        block = dense[:, :, value]
        product = np.outer(block.any(axis=1), block.any(axis=0))
        assert (block == product).all()
    assert ranks_of_unfoldings(dense.astype(float))[2] == rank


def test_counts_are_those_of_sets() -> None:
    triples = sample_triples(database("partial", share=0.7), "problem", 3)
    of_keys: dict[int, set[int]] = {}
    of_queries: dict[int, set[int]] = {}
    for key, query, value in triples.tolist():
        of_keys.setdefault(key, set()).add(value)
        of_queries.setdefault(query, set()).add(value)
    found = triples_rank(triples)
    assert len(triples) == round(0.7 * 48)
    assert found.values_of_keys == sum(map(len, of_keys.values()))
    assert found.values_of_queries == sum(map(len, of_queries.values()))


@pytest.mark.parametrize(
    ("family", "own", "message"),
    [
        ("low-rank", {"rank": 10}, "rank: 10 is not valid with 12 keys, 4 queries and 9"),
        ("low-rank", {"keys": 2, "queries": 2, "rank": 5}, "give at most 4"),
        ("predicates", {"per_query": 10}, "per_query: 10 is not valid with 9 values"),
        ("function", {"keys": 2**30, "queries": 3}, "keys: 1073741824 is not valid with 3 queries"),
    ],
)
def test_impossible_databases_are_refused(family: str, own: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        database(family, **own)


@pytest.mark.parametrize("own", [{"share": 0}, {"share": 1.5}, {"share": True}])
def test_a_share_is_above_nothing_and_up_to_all(own: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        database("partial", **own)
