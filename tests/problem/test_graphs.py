"""Regular graphs against plain Python and rustworkx, and graphs from files."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import rustworkx
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rgr_dist.problem.graphs import Neighbours, sample_graph, sample_regular
from rgr_dist.problem.streams import Stream
from rgr_dist.study import assets
from rgr_dist.study.cell import Cell
from tests.oracles.sampler import literal_regular

SIZES = st.integers(2, 24).flatmap(lambda m: st.tuples(st.just(m), st.integers(1, m - 1)))


def lists(graph: Neighbours) -> list[list[int]]:
    ends = graph.starts.tolist()
    return [graph.targets[a:b].tolist() for a, b in itertools.pairwise(ends)]


def stream(seed: int) -> Stream:
    return Stream.of("problem", "graph", seed)


@given(size=SIZES, seed=st.integers(0, 9))
def test_regular_graphs_are_greedy_matchings_as_in_plain_python(
    size: tuple[int, int], seed: int
) -> None:
    m, degree = size
    words = stream(seed).words(3 * m * degree).tolist()
    assert lists(sample_regular(stream(seed), m, degree)) == literal_regular(words, m, degree)


@pytest.mark.parametrize(("m", "degree"), [(2, 1), (9, 8), (64, 8), (128, 32), (512, 3)])
def test_regular_graphs_are_regular_and_simple_for_rustworkx(m: int, degree: int) -> None:
    graph = rustworkx.PyDiGraph(multigraph=True)
    graph.add_nodes_from(range(m))
    sampled = sample_regular(stream(1), m, degree)
    graph.add_edges_from_no_data(list(zip(sampled.sources, sampled.targets, strict=True)))
    for node in range(m):
        assert graph.in_degree(node) == graph.out_degree(node) == degree
        assert len(set(graph.successor_indices(node))) == degree
        assert not graph.has_edge(node, node)


def test_every_pair_is_as_likely_to_be_an_edge() -> None:
    m, degree, seeds = 12, 3, 2_000
    counts = sum(
        sample_regular(stream(seed), m, degree).matrix.astype(int) for seed in range(seeds)
    )
    apart = counts[~np.eye(m, dtype=bool)]
    p = degree / (m - 1)
    z = (apart - seeds * p) / np.sqrt(seeds * p * (1 - p))
    # Entries of a row are drawn without replacement, so that a chi-square has (m - 1) - 1 a row.
    assert stats.chi2.sf(np.sum(z**2) * (m - 2) / (m - 1), df=m * (m - 2)) > 1e-3
    assert np.diag(counts).sum() == 0


def test_a_regular_graph_of_degree_one_is_a_derangement_and_another_problem() -> None:
    one = Cell(m=64, d_model=8, graph={"family": "regular", "degree": 1})
    other = Cell(m=64, d_model=8)
    graphs = [sample_graph(one, seed) for seed in range(50)]
    assert all(sorted(graph.targets) == list(range(64)) for graph in graphs)
    assert all((graph.targets != np.arange(64)).all() for graph in graphs)
    fixed = [(sample_graph(other, seed).targets == np.arange(64)).any() for seed in range(50)]
    assert any(fixed)
    assert one.cell_id != other.cell_id
    assert one.problem_json != other.problem_json


@given(data=st.data(), m=st.integers(1, 12))
def test_lists_of_neighbours_hold_the_edges_they_were_made_of(data: st.DataObject, m: int) -> None:
    items = st.integers(0, m - 1)
    edges = sorted(data.draw(st.sets(st.tuples(items, items))))
    graph = Neighbours.of_edges(m, np.array(edges, dtype=np.int32).reshape(-1, 2))
    assert list(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True)) == edges
    assert np.argwhere(graph.matrix).tolist() == [list(edge) for edge in edges]
    assert graph.m == m
    assert [[t for t in row if t >= 0] for row in graph.table.tolist()] == lists(graph)
    assert graph.table.shape == (m, max(1, *map(len, lists(graph))))
    arrays = (graph.starts, graph.targets, graph.sources, graph.table)
    assert {array.dtype for array in arrays} == {np.dtype(np.int32)}
    assert graph.targets.flags.c_contiguous
    assert graph.matrix.dtype == bool


def test_more_matchings_than_there_are_targets_are_refused() -> None:
    with pytest.raises(RuntimeError, match=r"^a graph on 4 items is not 4-regular$"):
        sample_regular(stream(0), 4, 4)


def test_a_permutation_is_a_graph_of_one_target_each() -> None:
    graph = sample_graph(Cell(m=64, d_model=8), 0)
    assert graph.starts.tolist() == list(range(65))
    assert {graph.starts.dtype, graph.targets.dtype} == {np.dtype(np.int32)}
    stream_of_cell = Stream.of(Cell(m=64, d_model=8).problem_json, "graph", 0)
    assert graph.targets.tolist() == stream_of_cell.permutation(64).tolist()


def test_edges_from_a_file_are_the_same_graph_at_every_seed() -> None:
    edges = np.array([[0, 3], [0, 4], [2, 2], [4, 0]], dtype=np.int32)
    keys = {"family": "edges", "digest": assets.add(edges), "edges": 4, "degree": 2, "items": 5}
    cell = Cell(m=6, d_model=3, graph=keys, context={"length": 4})
    for seed in range(3):
        assert lists(sample_graph(cell, seed)) == [[3, 4], [], [2], [], [0], []]
    missing = cell.model_copy(update={"graph": cell.graph.model_copy(update={"digest": "0" * 64})})
    with pytest.raises(assets.AssetError, match="000000000000 is not loaded"):
        sample_graph(missing, 0)
