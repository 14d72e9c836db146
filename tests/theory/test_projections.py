"""Alternating projections: exact by an evaluation that knows nothing of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgr_dist.problem.graphs import Neighbours
from rgr_dist.problem.streams import Stream
from rgr_dist.study.cell import Cell
from rgr_dist.theory import projections
from rgr_dist.theory.all_pairs import score_all_pairs
from rgr_dist.theory.construct import problem_of
from rgr_dist.theory.projections import project


@pytest.mark.parametrize(
    ("m", "d_model", "h", "d_k", "iterations"),
    [(64, 16, 3, 6, 37), (64, 32, 1, 6, 28), (64, 64, 1, 4, None), (128, 32, 2, 8, 39)],
)
def test_it_is_exact_at_no_more_than_the_trained_width(
    m: int, d_model: int, h: int, d_k: int, iterations: int | None
) -> None:
    """Trained thresholds of these cells are D_K = 18, 6, 4 and 16.

    Rounding may move the number of iterations by one or two, another constant by more.
    """
    for seed in range(3):
        problem = problem_of(Cell(m=m, d_model=d_model), seed)
        done = project(problem.X, problem.graph, h, d_k, problem.stream("heads"))
        assert done.layer.W_Q.shape == done.layer.W_K.shape == (d_model, h * d_k)
        if seed == 0 and iterations is not None:
            assert abs(done.iterations - iterations) <= 2
        assert score_all_pairs(done.layer, problem.X, problem.graph).exact


@given(
    st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), min_size=1, unique=True),
    st.integers(0, 100),
)
def test_any_graph_will_do_where_embeddings_are_independent(
    pairs: list[tuple[int, int]], seed: int
) -> None:
    """With d_model = m one head of full width can score every pair freely."""
    X = np.random.default_rng(seed).standard_normal((12, 12))
    graph = Neighbours.of_edges(12, np.array(sorted(pairs)))
    done = project(X, graph, 1, 12, Stream.of("test", "heads", seed))
    assert score_all_pairs(done.layer, X, graph).exact


def test_a_width_that_is_too_small_is_told() -> None:
    problem = problem_of(Cell(m=64, d_model=16), 0)
    done = project(problem.X, problem.graph, 1, 2, problem.stream("heads"), max_iterations=20)
    assert done.iterations == 20
    assert not score_all_pairs(done.layer, problem.X, problem.graph).exact


def test_width_beyond_the_rank_of_the_embedding_is_zero() -> None:
    problem = problem_of(Cell(m=32, d_model=8), 0)
    done = project(problem.X, problem.graph, 4, 11, problem.stream("heads"), max_iterations=3)
    assert done.layer.d_k == 11
    for k in range(4):
        assert not done.layer.W_Q[:, 11 * k + 8 : 11 * (k + 1)].any()


def test_items_without_an_embedding_do_no_harm() -> None:
    X = np.eye(6)
    X[5] = 0
    graph = Neighbours.of_edges(6, np.array([[0, 1], [1, 2], [2, 0]]))
    done = project(X, graph, 1, 3, Stream.of("test", "heads", 0))
    assert score_all_pairs(done.layer, X, graph).exact


def test_blocks_of_rows_do_not_change_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problem_of(Cell(m=64, d_model=16), 1)
    whole = project(problem.X, problem.graph, 3, 6, problem.stream("heads"))
    monkeypatch.setattr(projections, "SCORES_AT_ONCE", 640)
    cut = project(problem.X, problem.graph, 3, 6, problem.stream("heads"))
    assert score_all_pairs(whole.layer, problem.X, problem.graph).exact
    assert abs(whole.iterations - cut.iterations) <= 3
    assert score_all_pairs(cut.layer, problem.X, problem.graph).exact
