"""The paper's algorithms, entry by entry against their printed lines, and what they recover."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgr_dist.problem.graphs import Neighbours
from rgr_dist.problem.streams import Stream
from rgr_dist.study.cell import Cell
from rgr_dist.study.construction import Construction
from rgr_dist.theory.all_pairs import find_tau, score_all_pairs
from rgr_dist.theory.construct import Problem, build, problem_of, signatures_of
from rgr_dist.theory.draws import Constructor
from rgr_dist.theory.layer import Layer
from rgr_dist.theory.matchings import batched, blocks, edges_of, max_degree
from rgr_dist.theory.projections import project
from rgr_dist.theory.smallest_width import not_found, smallest_width, widest
from rgr_dist.theory.template_weights import Signatures, limit_layer, template_layer, trivial_layer

PRINTED = Construction()


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
    layer = build("1", PRINTED, problem, h, 7).layer
    w = Signatures("rademacher").draw(problem.stream("signatures"), 24, 7)
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
    layer = build("3", PRINTED, problem, 1, 11).layer
    keys = Signatures("bernoulli", 0.25).draw(problem.stream("signatures"), 20, 11)
    np.testing.assert_array_equal(layer.W_K, keys)
    np.testing.assert_array_equal(layer.W_Q, keys[problem.graph.targets])
    assert layer.tau == pytest.approx((0.25 + 0.25**2) / 2 * 11)


@pytest.mark.parametrize(("kind", "d_k"), [("rademacher", 60), ("bernoulli", 180)])
def test_algorithm_3_is_exact_on_the_draws_whose_signatures_are_apart(kind: str, d_k: int) -> None:
    """With one-hot rows the scores are the products of two signatures; the draws are the same."""
    made = Constructor(
        cell(64, 64, "onehot"), "3", Construction.model_validate({"signatures": kind})
    )
    law = Signatures(kind, 0.25)
    tau = d_k / 2 if kind == "rademacher" else (0.25 + 0.25**2) / 2 * d_k
    exact = []
    for seed in range(60):
        w = law.draw(problem_of(made.cell, seed).stream("signatures"), 64, d_k)
        exact.append(bool(((w @ w.T > tau) == np.eye(64, dtype=bool)).all()))
    assert [made.score(seed, 1, d_k).f1 == 1 for seed in range(60)] == exact
    assert 0.1 < np.mean(exact) < 0.98


def test_algorithm_4_divides_by_the_scale_and_takes_sparse_signatures() -> None:
    problem = problem_of(cell(24, 24, "onehot"), 0)
    twice = Problem(2 * problem.X, problem.graph, problem.stream)
    one, other = (build("4", PRINTED, each, 3, 9).layer for each in (problem, twice))
    np.testing.assert_allclose(twice.X @ other.W_Q, problem.X @ one.W_Q)
    assert signatures_of("4", PRINTED) == Signatures("bernoulli", 1 / 20)


def test_signatures_of_a_draw_are_nested_and_follow_their_law() -> None:
    stream = Stream.of("test", "signatures", 0)
    law = Signatures("bernoulli", 0.25)
    wide = law.draw(stream, 300, 100)
    np.testing.assert_array_equal(law.draw(stream, 300, 40), wide[:, :40])
    assert set(np.unique(wide)) == {0, 1}
    assert wide.mean() == pytest.approx(0.25, abs=4 * math.sqrt(0.1875 / wide.size))
    signs = Signatures("rademacher").draw(stream, 300, 100)
    assert set(np.unique(signs)) == {-1, 1}
    assert abs(signs.mean()) < 4 / math.sqrt(signs.size)


@pytest.mark.parametrize("h", [2, 4, 8])
def test_the_template_tends_to_its_limit(h: int) -> None:
    """A B of 4 (narrower than d_model), 8 and 16: the limit's width is min(B, d_model)."""
    problem = problem_of(cell(32, 8), 1)
    limit = build("limit", PRINTED, problem, h, 1).layer
    assert limit.d_k == min(32 // h, 8)
    near = build("1", PRINTED, problem, h, 40_000).layer
    scores = []
    for layer, unit in (limit, 1), (near, 40_000):
        Q, K = ((problem.X @ W).reshape(32, h, -1) for W in (layer.W_Q, layer.W_K))
        scores.append(np.einsum("ihk,jhk->hij", Q, K).max(axis=0) / unit)
    np.testing.assert_allclose(scores[1], scores[0], atol=0.06)


@pytest.mark.parametrize("h", [4, 8])
def test_orthogonal_signatures_of_a_block_are_the_limit(h: int) -> None:
    problem = problem_of(cell(32, 8), 1)
    options = Construction(signatures="orthogonal")
    layers = [
        build("1", options, problem, h, 32 // h).layer,
        build("limit", PRINTED, problem, h, 1).layer,
    ]
    assert layers[0].tau == layers[1].tau == 0.5
    scores = []
    for layer in layers:
        Q, K = ((problem.X @ W).reshape(32, h, -1) for W in (layer.W_Q, layer.W_K))
        scores.append(np.einsum("ihk,jhk->hij", Q, K).max(axis=0))
    np.testing.assert_allclose(scores[0], scores[1] * problem.scale, atol=1e-12)
    assert build("1", options, problem, h, 32 // h - 1).layer.tau == 0.5


def test_noise_has_a_mean_that_width_does_not_remove() -> None:
    """N_1 and N_2 of App. B.2 are d_k δ_j(π(i)) and d_k δ_i(π⁻¹(j)) on average, not 0."""
    problem = problem_of(cell(16, 4), 0)
    X, pi = problem.X, problem.graph.targets
    gram = X @ X.T
    expected = gram @ gram[pi]  # Σ_s (x_i · x_s)(x_π(s) · x_j), all sources in one head
    layer = limit_layer(X, [edges_of(problem.graph)])
    np.testing.assert_allclose((X @ layer.W_Q) @ (X @ layer.W_K).T, expected)
    i, j = 0, int(pi[5])
    off = {(s, t): gram[i, s] * gram[pi[s], j] for s in range(16) for t in [pi[s]]}
    assert off[0, pi[0]] == pytest.approx(gram[pi[0], j])  # δ_j(π(i)): no factor that averages out


def test_wide_bernoulli_signatures_go_to_their_own_limit() -> None:
    """Their products are p and p² times d_k, not 1 and 0: a part of rank one stays."""
    problem = problem_of(cell(32, 8), 0)
    options = Construction(signatures="bernoulli", p=0.25)

    def scores(layer: Layer) -> np.ndarray:
        return (problem.X @ layer.W_Q) @ (problem.X @ layer.W_K).T

    wide = scores(build("1", options, problem, 1, 40_000).layer) / 40_000 / (0.25 - 0.25**2)
    limit = Constructor(cell(32, 8), "1", options, 32).limit.build(0, 1, 1)[1].layer
    np.testing.assert_allclose(wide, scores(limit), atol=0.5)
    printed = build("1", options, problem, 1, 40_000).layer.tau / 40_000 / (0.25 - 0.25**2)
    assert build("limit", options, problem, 1, 1).layer.tau == pytest.approx(printed)
    assert np.abs(wide - scores(limit_layer(problem.X, [edges_of(problem.graph)]))).max() > 5


def test_the_limit_has_the_matchings_of_its_algorithm() -> None:
    """Equitable matchings of a permutation are not its blocks."""
    small = Cell.model_validate({"m": 10, "d_model": 10, "context": {"length": 8}})
    made = Constructor(small, "5", Construction(colouring="equitable", tau="best"), 3)
    h, wide = made.heads(), 40_000
    scores = []
    for one in made, made.limit:
        problem, built = one.build(0, h, wide)
        Q, K = ((problem.X @ W).reshape(10, h, -1) for W in (built.layer.W_Q, built.layer.W_K))
        scores.append(np.einsum("ihk,jhk->hij", Q, K))
    np.testing.assert_allclose(scores[0] / wide, scores[1], atol=0.06)
    found = smallest_width(made, h, 1, 1.0)
    assert found is not None
    assert made.score(0, h, found).exact


def test_an_item_of_zeros_has_finite_trivial_weights() -> None:
    problem = problem_of(cell(16, 8), 0)
    X = problem.X.copy()
    X[3] = 0
    layer = trivial_layer(X, edges_of(problem.graph))
    assert np.isfinite(layer.W_Q).all()
    assert math.isfinite(layer.tau)


@pytest.mark.parametrize("d_k", [4, 32, 512])
@pytest.mark.parametrize("block", [32, 128])
def test_noise_grows_with_the_edges_of_a_head(block: int, d_k: int) -> None:
    """A head's scores of items that it does not serve are N_3: (B / d_model) √d_k by (1).

    That is the part which signatures average out; their mean adds d_k √B / d_model.
    """
    m, d_model = 512, 64
    problem = problem_of(cell(m, d_model), 0)
    layer = build("1", PRINTED, problem, m // block, d_k).layer
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
    h = len(batched(graph, 1))
    assert h <= len(pairs) + max_degree(graph)
    layer = build("5", PRINTED, problem, h, 3, block_size=1).layer
    assert layer.h == h
    assert score_all_pairs(layer, problem.X, graph).exact
    assert score_all_pairs(trivial_layer(problem.X, edges_of(graph)), problem.X, graph).exact


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


@pytest.mark.parametrize("d_model", [4, 16])
def test_the_trivial_layer_is_exact_where_the_printed_tau_is_not(d_model: int) -> None:
    for seed in range(5):
        problem = problem_of(cell(64, d_model), seed)
        edges = edges_of(problem.graph)
        assert score_all_pairs(trivial_layer(problem.X, edges), problem.X, problem.graph).exact
        printed = template_layer(problem.X, np.array_split(edges, 64), np.ones((64, 1)), 0.5)
        assert not score_all_pairs(printed, problem.X, problem.graph).exact


def test_the_trivial_layer_fails_where_a_longer_row_leans_to_an_edge() -> None:
    """(0, 1) scores 1 in its own head, and (2, 1) scores |x_2| cos(x_2, x_0) = 3 / √2 there."""
    X = np.array([[1.0, 0], [0, 1], [3 / math.sqrt(2), 3 / math.sqrt(2)]])
    graph = Neighbours.of_edges(3, np.array([[0, 1]]))
    layer = trivial_layer(X, edges_of(graph))
    scores = (X @ layer.W_Q) @ (X @ layer.W_K).T
    assert (scores[0, 1], scores[2, 1]) == pytest.approx((1, 3 / math.sqrt(2)))
    assert not score_all_pairs(layer, X, graph).exact
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    assert score_all_pairs(trivial_layer(unit, edges_of(graph)), unit, graph).exact


def test_the_search_for_a_width_finds_the_smallest_of_all() -> None:
    made = Constructor(cell(24, 24, "onehot"), "3", Construction(signatures="rademacher"))
    found = smallest_width(made, 1, 40, 0.9)
    rates = {d_k: made.measure(1, d_k, 40)["success_rate"] for d_k in range(1, 70)}
    assert found == min(d_k for d_k, rate in rates.items() if rate >= 0.9)


def test_where_the_limit_fails_no_width_is_tried() -> None:
    made, tried = Constructor(cell(64, 16), "1"), list[int]()
    assert smallest_width(made, made.heads(), 3, 0.99, tried.append) is None
    assert tried == []
    row = not_found(made, 4, 3)
    assert row["d_k"] is None
    assert row["success_rate"] == 0
    assert 0.4 < row["mean_f1"] < 0.8


def test_algorithm_2_is_tried_up_to_four_times_the_union_bound() -> None:
    made, tried, bars = Constructor(cell(32, 8), "2", n_contexts=10), list[int](), list[int]()

    def steps(draws: Sequence[int]) -> Sequence[int]:
        bars.append(len(draws))
        return draws

    assert smallest_width(made, 4, 2, 1.0, tried.append) is None
    assert max(tried) == widest(made) == math.ceil(4 * 40 * math.log(32))
    assert not_found(made, 4, 2, steps)["d_k"] is None
    assert bars == [2]


def test_where_every_pair_is_an_edge_tau_is_below_all() -> None:
    targets = np.tile(np.arange(3, dtype=np.int32), 3)
    graph = Neighbours(np.arange(0, 10, 3, dtype=np.int32), targets)
    X = np.eye(3)
    built = project(X, graph, 1, 3, Stream.of("test", "heads", 0))
    for tau in built.layer.tau, find_tau(built.layer, X, graph):
        scored = score_all_pairs(replace(built.layer, tau=tau), X, graph)
        assert math.isfinite(tau)
        assert scored.exact
        assert math.isfinite(scored.margin)
