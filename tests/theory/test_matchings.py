"""Packing edges into matchings: every edge once, every bound kept, on graphs of every kind."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgr_dist.problem.graphs import Neighbours
from rgr_dist.theory.layer import ConstructionError
from rgr_dist.theory.matchings import Matching, blocks, edges_of, equitable, max_degree

EDGES = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), min_size=1, unique=True)


def graph_of(pairs: Sequence[tuple[int, int]], m: int = 12) -> Neighbours:
    return Neighbours.of_edges(m, np.array(sorted(pairs)))


def assert_matchings(found: Sequence[Matching], graph: Neighbours) -> None:
    for matching in found:
        for ends in matching.T:
            assert len(set(ends.tolist())) == len(matching)
    together = sorted(map(tuple, np.concatenate(found).tolist()))
    assert together == sorted(map(tuple, edges_of(graph).tolist()))


@given(EDGES, st.integers(0, 8))
def test_equitable_matchings_differ_by_one_edge_at_most(
    pairs: list[tuple[int, int]], more: int
) -> None:
    graph = graph_of(pairs)
    h = max_degree(graph) + more
    found = equitable(graph, h)
    assert_matchings(found, graph)
    assert len(found) == h
    assert max(map(len, found)) - min(map(len, found)) <= 1


def test_too_few_heads_are_refused() -> None:
    star = graph_of([(0, j) for j in range(5)])
    with pytest.raises(ConstructionError, match="give at least 5"):
        equitable(star, 4)


def test_blocks_take_permutations_alone() -> None:
    permutation = graph_of([(i, (i + 3) % 12) for i in range(12)])
    assert [len(block) for block in blocks(permutation, 5)] == [3, 3, 2, 2, 2]
    assert_matchings(blocks(permutation, 5), permutation)
    with pytest.raises(ConstructionError, match="takes a permutation"):
        blocks(graph_of([(0, 1), (0, 2)]), 2)
