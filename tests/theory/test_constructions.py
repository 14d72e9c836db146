"""The paper's algorithms, entry by entry against their printed lines, and what they recover."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgr_dist.problem.graphs import Neighbours
from rgr_dist.problem.streams import Stream
from rgr_dist.study.cell import Cell
from rgr_dist.theory.all_pairs import score_all_pairs
from rgr_dist.theory.construct import Problem, build, problem_of
from rgr_dist.theory.matchings import blocks
from rgr_dist.theory.projections import project
from rgr_dist.theory.template_weights import signatures


def cell(m: int, d_model: int, family: str = "gaussian") -> Cell:
    return Cell.model_validate({"m": m, "d_model": d_model, "embedding": {"family": family}})


def literal_algorithm_1(X: np.ndarray, pi: np.ndarray, w: np.ndarray, h: int) -> np.ndarray:
    """Scores by Algorithm 1's lines: templates of m rows per head, then the approximate inverse."""
    m, best = len(X), np.full((len(X), len(X)), -np.inf)
    for block in np.array_split(np.arange(m), h):
        Q, K = np.zeros_like(w), np.zeros_like(w)
        for s in block:
            Q[s] = w[pi[s]]
            K[pi[s]] = w[pi[s]]
        best = np.maximum(best, (X @ (X.T @ Q)) @ (X @ (X.T @ K)).T)
    return best


@pytest.mark.parametrize("h", [1, 3, 4])
def test_algorithm_1_is_as_printed(h: int) -> None:
    problem = problem_of(cell(24, 6), 3)
    layer = build("1", problem, h, 7).layer
    w = signatures(problem.stream("signatures"), 24, 7)
    X, d_k = problem.X, 7
    ours = np.max(
        [
            (X @ layer.W_Q[:, k * d_k : (k + 1) * d_k])
            @ (X @ layer.W_K[:, k * d_k : (k + 1) * d_k]).T
            for k in range(h)
        ],
        axis=0,
    )
    np.testing.assert_allclose(ours, literal_algorithm_1(X, problem.graph.targets, w, h))
    assert layer.tau == 3.5


def test_algorithm_3_is_as_printed() -> None:
    problem = problem_of(cell(20, 20, "onehot"), 0)
    layer = build("3", problem, 1, 11).layer
    keys = signatures(problem.stream("signatures"), 20, 11, 0.25)
    np.testing.assert_array_equal(layer.W_K, keys)
    np.testing.assert_array_equal(layer.W_Q, keys[problem.graph.targets])
    assert layer.tau == pytest.approx((0.25 + 0.25**2) / 2 * 11)


def test_algorithm_3_is_exact_on_the_draws_whose_signatures_are_apart() -> None:
    """With one-hot rows the scores are the products of two signatures; the draws are the same."""
    d_k, ours, exact = 180, [], []
    for seed in range(60):
        problem = problem_of(cell(64, 64, "onehot"), seed)
        layer = build("3", problem, 1, d_k).layer
        ours.append(score_all_pairs(layer, problem.X, problem.graph).exact)
        w = signatures(problem.stream("signatures"), 64, d_k, 0.25)
        right = (w @ w.T > (0.25 + 0.25**2) / 2 * d_k) == np.eye(64, dtype=bool)
        exact.append(bool(right.all()))
    assert ours == exact
    assert 0.1 < np.mean(exact) < 0.98


def test_algorithm_2_is_algorithm_1_with_a_threshold_of_one_half() -> None:
    problem = problem_of(cell(24, 8), 0)
    one, two = (build(name, problem, 3, 5).layer for name in ("1", "2"))
    np.testing.assert_array_equal(one.W_Q, two.W_Q)
    assert (one.tau, two.tau) == (2.5, 0.5)


def test_algorithm_4_divides_by_the_scale_and_takes_sparse_signatures() -> None:
    problem = problem_of(cell(24, 24, "onehot"), 0)
    twice = Problem(2 * problem.X, problem.graph, problem.stream)
    one, other = (build("4", each, 3, 9).layer for each in (problem, twice))
    np.testing.assert_allclose(twice.X @ other.W_Q, problem.X @ one.W_Q)
    assert one.tau == pytest.approx((1 / 20 + 1 / 400) / 2 * 9)


def test_signatures_of_a_draw_are_nested_and_follow_their_law() -> None:
    stream = Stream.of("test", "signatures", 0)
    wide = signatures(stream, 300, 100, 0.25)
    np.testing.assert_array_equal(signatures(stream, 300, 40, 0.25), wide[:, :40])
    assert set(np.unique(wide)) == {0, 1}
    assert wide.mean() == pytest.approx(0.25, abs=4 * math.sqrt(0.1875 / wide.size))
    signs = signatures(stream, 300, 100)
    assert set(np.unique(signs)) == {-1, 1}
    assert abs(signs.mean()) < 4 / math.sqrt(signs.size)


def test_noise_has_a_mean_that_width_does_not_remove() -> None:
    """N_1 and N_2 of App. B.2 are d_k δ_j(π(i)) and d_k δ_i(π⁻¹(j)) on average, not 0."""
    problem, d_k = problem_of(cell(16, 4), 0), 40_000
    X, pi = problem.X, problem.graph.targets
    gram = X @ X.T
    expected = gram @ gram[pi]  # Σ_s (x_i · x_s)(x_π(s) · x_j), all sources in one head
    layer = build("1", problem, 1, d_k).layer
    np.testing.assert_allclose((X @ layer.W_Q) @ (X @ layer.W_K).T / d_k, expected, atol=0.06)


@pytest.mark.parametrize("d_k", [4, 32, 512])
@pytest.mark.parametrize("block", [32, 128])
def test_noise_grows_with_the_edges_of_a_head(block: int, d_k: int) -> None:
    """A head's scores of items that it does not serve are N_3: (B / d_model) √d_k by (1).

    That is the part which signatures average out; their mean adds d_k √B / d_model.
    """
    m, d_model = 512, 64
    problem = problem_of(cell(m, d_model), 0)
    layer = build("1", problem, m // block, d_k).layer
    served = blocks(problem.graph, m // block)[0]
    others, targets = (np.setdiff1d(np.arange(m), ends) for ends in served.T)
    Q, K = (problem.X @ W[:, :d_k] for W in (layer.W_Q, layer.W_K))
    noise = float((Q[others] @ K[targets].T).std())
    expected = math.hypot(block * math.sqrt(d_k), d_k * math.sqrt(block)) / d_model
    assert noise == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize("m_d", [(64, 16), (128, 32), (128, 64), (256, 64), (256, 128)])
def test_wide_gaussian_rows_leak_no_more_than_constants_allow(m_d: tuple[int, int]) -> None:
    """Lemma B.3 over ten draws: a C_3 of 3 at every size, its C_2 = 2 from d_model = 64 on."""
    m, d_model = m_d
    worst = 0.0
    for seed in range(10):
        problem = problem_of(cell(m, d_model), seed)
        leak = problem.X @ problem.X.T - np.eye(m)
        assert np.abs(np.diag(leak)).max() < 1e-6
        for served in blocks(problem.graph, m // d_model):
            sources, targets = (leak[:, ends] for ends in served.T)
            worst = max(worst, *((side**2).sum(axis=1).max() for side in (sources, targets)))
            assert np.abs(sources @ targets.T).max() <= 3 * math.sqrt(math.log(m) / d_model)
    assert (worst <= 2) == (d_model >= 64)


FAMILIES = {
    "star": [(0, j) for j in range(1, 12)],
    "in-star": [(i, 0) for i in range(1, 12)],
    "complete bipartite": [(i, 6 + j) for i in range(5) for j in range(4)],
    "self-loops": [(i, i) for i in range(9)] + [(0, 1)],
    "isolated nodes": [(2, 3), (3, 2)],
}


def assert_one_edge_a_head_recovers(pairs: Sequence[tuple[int, int]], seed: int) -> None:
    """At B = 1 in high dimension cosines stay below 1/2, as the printed tau needs."""
    drawn = problem_of(cell(16, 256), seed)
    graph = Neighbours.of_edges(16, np.array(sorted(pairs)))
    assert np.abs(drawn.X @ drawn.X.T - np.eye(16)).max() < 0.5
    problem = Problem(drawn.X, graph, drawn.stream)
    layer = build("5", problem, len(pairs), 3).layer
    assert layer.h == len(pairs)
    assert score_all_pairs(layer, problem.X, graph).exact


@pytest.mark.parametrize("family", FAMILIES)
def test_algorithm_5_recovers_hard_graphs_at_one_edge_a_head(family: str) -> None:
    assert_one_edge_a_head_recovers(FAMILIES[family], 0)


@given(
    st.lists(st.tuples(st.integers(0, 15), st.integers(0, 15)), min_size=1, unique=True),
    st.integers(0, 5),
)
def test_algorithm_5_recovers_random_graphs_at_one_edge_a_head(
    pairs: list[tuple[int, int]], seed: int
) -> None:
    assert_one_edge_a_head_recovers(pairs, seed)


def test_where_every_pair_is_an_edge_tau_is_below_all() -> None:
    targets = np.tile(np.arange(3, dtype=np.int32), 3)
    graph = Neighbours(np.arange(0, 10, 3, dtype=np.int32), targets)
    built = project(np.eye(3), graph, 1, 3, Stream.of("test", "heads", 0))
    scored = score_all_pairs(built.layer, np.eye(3), graph)
    assert scored.exact
    assert math.isfinite(scored.margin)
