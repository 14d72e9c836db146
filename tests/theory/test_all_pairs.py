"""The total evaluation, against the plain forward pass and brute force."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rgr_dist.engines.tasks import F1Scorer
from rgr_dist.models.zoo.max import Max
from rgr_dist.problem.graphs import Neighbours
from rgr_dist.theory.all_pairs import score_all_pairs
from rgr_dist.theory.layer import Layer


def random_layer(
    seed: int, m: int, d: int, h: int, d_k: int
) -> tuple[Layer, np.ndarray, Neighbours]:
    rng = np.random.default_rng(seed)
    edges = np.argwhere(rng.random((m, m)) < 0.15)
    W_Q, W_K = rng.standard_normal((2, d, h * d_k))
    layer = Layer(W_Q, W_K, h, float(rng.standard_normal()))
    return layer, rng.standard_normal((m, d)), Neighbours.of_edges(m, edges)


def plain_scores(layer: Layer, X: np.ndarray) -> np.ndarray:
    d_k = layer.d_k
    heads = [
        X @ layer.W_Q[:, k * d_k : (k + 1) * d_k] @ layer.W_K[:, k * d_k : (k + 1) * d_k].T @ X.T
        for k in range(layer.h)
    ]
    return np.max(heads, axis=0)


@given(st.integers(0, 10**6), st.integers(2, 12), st.integers(1, 4), st.integers(1, 3))
def test_counts_and_margin_are_those_of_the_plain_matrix(
    seed: int, m: int, h: int, d_k: int
) -> None:
    layer, X, graph = random_layer(seed, m, 5, h, d_k)
    scores, true = plain_scores(layer, X), graph.matrix
    found = score_all_pairs(layer, X, graph)
    predicted = scores > layer.tau
    assert found.tp == (predicted & true).sum()
    assert found.predicted == predicted.sum()
    assert found.actual == true.sum()
    assert found.failed_pairs == (predicted != true).sum()
    assert found.exact == np.array_equal(predicted, true)
    signed = np.where(true, scores - layer.tau, layer.tau - scores)
    assert found.margin == pytest.approx(signed.min())


def test_f1_is_that_of_the_code_that_scores_trained_weights() -> None:
    layer, X, graph = random_layer(1, 30, 6, 3, 2)
    everything = np.arange(30, dtype=np.int32)[np.newaxis]
    W_Q, W_K, X_t = (torch.from_numpy(a) for a in (layer.W_Q, layer.W_K, X))
    scorer = F1Scorer(everything, torch.from_numpy(graph.table).long())
    tau, p = torch.tensor(layer.tau, dtype=torch.float64), {"W_Q": W_Q, "W_K": W_K}
    expected = scorer.score(lambda nodes: Max(6, 3, 2).scores(X_t[nodes], p), tau)
    assert score_all_pairs(layer, X, graph).f1 == expected


def test_a_score_equal_to_tau_is_no_edge() -> None:
    graph = Neighbours.of_edges(2, np.array([[0, 1]]))
    layer = Layer(np.array([[1.0, 2.0], [0.0, 0.0]]), np.eye(2), 1, 1.0)
    found = score_all_pairs(layer, np.eye(2), graph)
    assert found.exact
    assert found.margin == 0
    missed = score_all_pairs(replace(layer, tau=2.0), np.eye(2), graph)
    assert (missed.tp, missed.predicted, missed.margin) == (0, 0, 0)
