"""One head, exactly: against linear programmes by HiGHS, and proofs checked in fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from rgr_dist.problem.graphs import Neighbours
from rgr_dist.study.cell import Cell
from rgr_dist.theory.all_pairs import score_all_pairs
from rgr_dist.theory.construct import problem_of
from rgr_dist.theory.layer import Layer
from rgr_dist.theory.one_head import (
    certificate_residual,
    decide,
)

FEW_ITEMS = [(2, 1, 1), (3, 1, 1), (4, 3, 1), (5, 4, 2)]
"""Sizes whose certificates lie in fewer dimensions than they have rows: (m, d_model, degree)."""


def drawn(seed: int, m: int, d: int, degree: int = 1) -> tuple[np.ndarray, Neighbours]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    matchings = [np.column_stack([np.arange(m), rng.permutation(m)]) for _ in range(degree)]
    edges = np.unique(np.concatenate(matchings), axis=0)
    return X / np.linalg.norm(X, axis=1, keepdims=True), Neighbours.of_edges(m, edges)


def signed_columns(X: np.ndarray, graph: Neighbours) -> np.ndarray:
    """y (x_i x_jᵀ, -1) of every pair, [d² + 1, m²]."""
    m, d = X.shape
    y = np.where(graph.matrix, 1.0, -1.0).ravel()
    products = np.einsum("ia,jb->ijab", X, X).reshape(m * m, d * d)
    return (y[:, np.newaxis] * np.hstack([products, -np.ones((m * m, 1))])).T


def test_what_is_decided_is_what_a_linear_programme_says() -> None:
    answers = []
    sizes = [(8, 4, 1), (10, 5, 1), (14, 6, 1), (9, 6, 2), *FEW_ITEMS]
    for seed, (m, d, degree) in enumerate(sizes * 10):
        X, graph = drawn(seed, m, d, degree)
        A = signed_columns(X, graph)
        free = [(None, None)] * len(A)
        programme = linprog(np.zeros(len(A)), -A.T, -np.ones(m * m), bounds=free, method="highs")
        found = decide(X, graph)
        assert found.separable == (programme.status == 0)
        answers.append(found.separable)
    assert len(answers) / 4 < sum(answers) < 3 * len(answers) / 4


def widest_margin(X: np.ndarray, graph: Neighbours) -> float:
    """The largest margin of one head of entries within 1: the primal, by interior points."""
    A = signed_columns(X, graph)
    rows = np.hstack([-A.T, np.ones((A.shape[1], 1))])
    gain = np.append(np.zeros(len(A)), -1.0)
    box = [(-1.0, 1.0)] * len(A) + [(None, None)]
    found = linprog(gain, rows, np.zeros(len(rows)), bounds=box, method="highs-ipm")
    return -float(found.fun)


HELD_OUT = [
    (19, 9, [1.0]),
    (25, 9, [0.1, 0.9]),
    (31, 9, [0.0]),
    *(
        pytest.param(m, d_model, share, marks=pytest.mark.slow)
        for m, d_model, share in (
            (28, 12, [1.0]),
            (36, 12, [0.1, 0.9]),
            (44, 12, [0.0]),
            (66, 17, [0.1, 0.9]),  # 4,356 pairs: a minute of a core
        )
    ),
]
"""Sizes about the transition that no study and no page has, with the least and most share."""


@pytest.mark.parametrize(("m", "d_model", "share"), HELD_OUT)
def test_the_share_of_separable_draws_is_that_of_a_margin_programme(
    m: int, d_model: int, share: list[float]
) -> None:
    cell, answers = Cell(m=m, d_model=d_model), []
    for draw in range(10):
        problem = problem_of(cell, draw)
        X, found = problem.X.astype(np.float64), decide(problem.X, problem.graph)
        margin, columns = widest_margin(X, problem.graph), signed_columns(X, problem.graph)
        assert found.separable == (margin > 1e-9)
        if found.certificate is None:
            assert found.layer is not None
            W = found.layer.W_Q @ found.layer.W_K.T
            assert (columns.T @ np.append(W, found.layer.tau)).min() > 0
        else:
            assert found.certificate.min() >= 0
            assert np.linalg.norm(columns @ found.certificate.ravel()) < 1e-6
        answers.append(found.separable)
    assert share[0] <= np.mean(answers) <= share[-1]


@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_every_pair_and_no_pair_are_held_by_one_head(m: int, d: int) -> None:
    X, _ = drawn(m, m, d)
    for matrix in (np.ones((m, m)), np.zeros((m, m))):
        assert decide(X, Neighbours.of_edges(m, np.argwhere(matrix))).separable


def test_weights_are_right_on_every_pair_by_the_margin_that_is_told() -> None:
    X, graph = drawn(3, 24, 12)
    found = decide(X, graph)
    assert found.layer is not None
    assert found.certificate is None
    W = found.layer.W_Q @ found.layer.W_K.T
    assert np.linalg.norm(W) == pytest.approx(1)
    signed = np.where(graph.matrix, 1, -1) * (X @ W @ X.T - found.layer.tau)
    assert signed.min() == pytest.approx(found.margin)
    assert signed.min() > 0


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_of_weights_and_certificate_there_is_one(seed: int) -> None:
    X, graph = drawn(seed, 14, 5)
    found = decide(X, graph)
    assert (found.layer is None) != (found.certificate is None)
    if found.certificate is not None:
        again = certificate_residual(X, graph, found.certificate)
        assert again == pytest.approx(found.residual, rel=0.01)
        direct = np.linalg.norm(signed_columns(X, graph) @ found.certificate.ravel())
        assert direct <= again


def exact_weights(X: np.ndarray, graph: Neighbours, near: np.ndarray) -> list[Fraction]:
    """Weights next to ``near`` whose signed sum is zero in exact arithmetic, by least squares."""
    A = [[Fraction(entry) for entry in row] for row in signed_columns(X, graph)]
    weights = [Fraction(value) for value in near.ravel()]
    gap = [sum(a * w for a, w in zip(row, weights, strict=True)) for row in A]
    scaled = [[a * w for a, w in zip(row, weights, strict=True)] for row in A]
    system = [
        [sum(x * y for x, y in zip(one, other, strict=True)) for other in scaled] + [-right]
        for one, right in zip(scaled, gap, strict=True)
    ]
    for at in range(len(system)):  # Gauss-Jordan, in fractions
        pivot = next(row for row in range(at, len(system)) if system[row][at])
        system[at], system[pivot] = system[pivot], system[at]
        system[at] = [value / system[at][at] for value in system[at]]
        for row in range(len(system)):
            if row != at:
                factor = system[row][at]
                system[row] = [v - factor * s for v, s in zip(system[row], system[at], strict=True)]
    shift = [row[-1] for row in system]
    relative = [sum(shift[r] * scaled[r][p] for r in range(len(A))) for p in range(len(weights))]
    return [w * (1 + u) for w, u in zip(weights, relative, strict=True)]


def test_beside_a_certificate_there_is_a_contradiction_in_exact_arithmetic() -> None:
    X, graph = drawn(1, 10, 2)
    found = decide(X, graph)
    assert found.certificate is not None
    weights = exact_weights(X, graph, found.certificate)
    assert min(weights) >= 0
    assert sum(weights) > 0
    for row in signed_columns(X, graph):
        assert sum(Fraction(a) * w for a, w in zip(row, weights, strict=True)) == 0


def test_a_corrupted_certificate_is_refused() -> None:
    X, graph = drawn(0, 20, 5)
    found = decide(X, graph)
    assert found.certificate is not None
    source, target = np.unravel_index(found.certificate.argmax(), found.certificate.shape)
    for factor in (0.0, 0.9, 1.001, -1.0, np.nan):
        changed = found.certificate.copy()
        changed[source, target] *= factor
        assert certificate_residual(X, graph, changed) is None
    assert certificate_residual(X, graph, np.zeros_like(found.certificate)) is None
    other = Neighbours.of_edges(20, np.column_stack([np.arange(20), np.roll(np.arange(20), 1)]))
    assert certificate_residual(X, other, found.certificate) is None
    assert certificate_residual(X[::-1].copy(), graph, found.certificate) is None


def test_a_graph_that_one_head_holds_has_no_certificate() -> None:
    X, graph = drawn(3, 24, 12)
    uniform = np.where(graph.matrix, 23.0, 1.0)  # as much on edges as on the other pairs
    assert certificate_residual(X, graph, uniform) is None


def test_embeddings_in_fewer_dimensions_are_never_called_impossible_without_proof() -> None:
    X, graph = drawn(0, 20, 5)
    assert decide(np.hstack([X, X[:, :1]]), graph).separable is None  # too large for fractions
    X, graph = drawn(1, 10, 2)
    flat = np.hstack([X, X[:, :1]])  # d_model = 3, and two dimensions
    assert decide(flat, graph).separable is False
    turned = flat @ np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    assert decide(turned, graph).separable is None  # three dimensions, by the last digits
    wide = np.eye(8)[:, :8]
    ring = Neighbours.of_edges(8, np.column_stack([np.arange(8), np.roll(np.arange(8), 1)]))
    found = decide(np.hstack([wide, wide]), ring)
    assert found.layer is not None
    assert score_all_pairs(found.layer, np.hstack([wide, wide]), ring).exact


def test_weights_of_one_head_are_a_layer_of_full_width() -> None:
    X, graph = drawn(5, 15, 9)
    layer = decide(X, graph).layer
    assert isinstance(layer, Layer)
    assert (layer.h, layer.d_k, layer.W_Q.shape) == (1, 9, (9, 9))
