"""The context sampler against App. A.1 and A.3 in plain Python, word by word and in law."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rgr_dist.problem.contexts import draw_contexts, edges_within, rate_word
from rgr_dist.problem.graphs import Neighbours
from rgr_dist.problem.streams import Stream
from tests.oracles.sampler import law_of_contexts, literal_context

STREAM = Stream.of("problem", "train", 0)
KEY = (STREAM.key0, STREAM.key1)
GRAPHS_OF_5 = {
    "fixed points only": [0, 1, 2, 3, 4],
    "fixed point and two pairs": [0, 2, 1, 4, 3],
    "one cycle": [1, 2, 3, 4, 0],
    "pair and triple": [1, 0, 3, 4, 2],
}


UNEVEN_OF_5 = {
    "two each": [[1, 2], [2, 3], [3, 4], [0, 4], [0, 1]],
    "a hub, a loop and two without": [[1, 2, 3, 4], [], [2], [], [0, 1]],
}


def singles(pi: list[int]) -> list[list[int]]:
    """A permutation as lists of out-neighbours."""
    return [[target] for target in pi]


def neighbours(graph: list[list[int]]) -> Neighbours:
    edges = [(source, target) for source, targets in enumerate(graph) for target in targets]
    return Neighbours.of_edges(len(graph), np.array(edges, np.int32).reshape(-1, 2))


def draw(pi: list[int], first: int, count: int, length: int, rho: float) -> np.ndarray:
    return draw_contexts(STREAM, first, count, neighbours(singles(pi)), length, rho)


def graphs(most: int) -> st.SearchStrategy[list[list[int]]]:
    """Directed graphs of any out-degrees, self-loops included."""

    def of(m: int) -> st.SearchStrategy[list[list[int]]]:
        targets = st.sets(st.integers(0, m - 1)).map(sorted)
        return st.lists(targets, min_size=m, max_size=m) | st.permutations(range(m)).map(singles)

    return st.integers(2, most).flatmap(of)


@given(graph=graphs(16), data=st.data(), rho=st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]))
def test_contexts_of_any_graph_are_those_of_the_papers_text(
    graph: list[list[int]], data: st.DataObject, rho: float
) -> None:
    length = data.draw(st.integers(2, len(graph)), "l")
    first = data.draw(st.sampled_from([0, 1, 12_345, 2**32 - 2, 2**40]), "first")
    expected = [literal_context(KEY, first + i, graph, length, rho)[0] for i in range(6)]
    assert draw_contexts(STREAM, first, 6, neighbours(graph), length, rho).tolist() == expected


@pytest.mark.parametrize(
    "graph",
    [*map(singles, GRAPHS_OF_5.values()), *UNEVEN_OF_5.values()],
    ids=[*GRAPHS_OF_5, *UNEVEN_OF_5],
)
@pytest.mark.parametrize("rho", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("length", [2, 3])
def test_contexts_follow_the_papers_law(graph: list[list[int]], rho: float, length: int) -> None:
    law = law_of_contexts(graph, length, Fraction(rho))
    drawn = draw_contexts(STREAM, 0, 20_000, neighbours(graph), length, rho)
    contexts, times = np.unique(drawn, axis=0, return_counts=True)
    counts = dict(zip(map(tuple, contexts.tolist()), times.tolist(), strict=True))
    possible = {context: p for context, p in law.items() if p > 0}
    assert set(counts) <= set(possible)
    observed = [counts.get(context, 0) for context in possible]
    expected = [20_000 * p for p in possible.values()]
    assert stats.chisquare(observed, expected).pvalue > 1e-4


@pytest.mark.parametrize(("m", "length"), [(5, 5), (9, 7), (64, 16)])
def test_scratch_is_left_as_it_was_found(m: int, length: int) -> None:
    pi = Stream.of("problem", "graph", 0).permutation(m).tolist()
    one_by_one = [draw(pi, index, 1, length, 0.5)[0] for index in range(500)]
    np.testing.assert_array_equal(draw(pi, 0, 500, length, 0.5), one_by_one)


@given(graph=graphs(9), data=st.data())
def test_edges_within_a_context_are_those_between_its_items(
    graph: list[list[int]], data: st.DataObject
) -> None:
    length = data.draw(st.integers(1, len(graph)), "l")
    items = st.permutations(range(len(graph)))
    contexts = [data.draw(items)[:length] for _ in range(3)]
    expected = [sum(len(set(graph[p]) & set(c)) for p in c) for c in contexts]
    counted = edges_within(np.array(contexts, np.int32), neighbours(graph))
    assert counted.tolist() == expected
    assert counted.dtype == np.int64


@pytest.mark.parametrize(("rho", "word"), [(0, 0), (0.5, 2**31), (0.3, 1288490189), (1, 2**32)])
def test_a_rate_is_a_share_of_all_words(rho: float, word: int) -> None:
    assert rate_word(rho) == word
    assert rate_word(rho).dtype == np.uint64
