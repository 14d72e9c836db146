"""The bound at a constant margin (Theorem 9.2), and what it rests on: how weights move scores."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from rgr_dist.models.heads import Scores, head_scores, max_scores, summed_attention
from rgr_dist.problem.graphs import Neighbours
from rgr_dist.study.cell import Cell
from rgr_dist.study.construction import Construction
from rgr_dist.theory.bounds import counting_bound, graph_bits, margin_bits, margin_of
from rgr_dist.theory.construct import Problem, build
from rgr_dist.theory.draws import problem_of
from rgr_dist.theory.layer import Layer
from rgr_dist.theory.one_head import decide

SIZES = (st.integers(1, 6), st.integers(1, 4), st.integers(1, 3))


def test_the_bound_at_a_margin_by_hand() -> None:
    assert margin_bits(0.2) == 4  # 1 + 3 / 0.2 = 16
    assert margin_of(4) == pytest.approx(0.2)
    assert margin_of(8) == pytest.approx(0.0117647, abs=1e-7)  # 3 / 255
    assert margin_of(2) is None  # 3 / 3 = 1, and a margin is below 1
    bits = graph_bits(4, 4, "all")  # log2 of the 495 graphs of 4 edges among 12 pairs
    assert counting_bound(bits, 1, margin_bits(0.2)) == pytest.approx(0.6189, abs=1e-4)
    at_half = counting_bound(graph_bits(64, 64, "all"), 16, margin_bits(0.5))
    words = math.log2(math.comb(64 * 63, 64)) / math.log2(7)  # 1 + 3 / 0.5 = 7
    assert at_half == pytest.approx((words - 1) / 32)


def weights(d: int, h: int, d_k: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """U, V and two embeddings whose norms are at most 1, as (26) has them."""
    draw = np.random.default_rng(seed)
    scale = draw.uniform(0, 1, 3)
    U, V = (draw.standard_normal((d, h * d_k)) for _ in range(2))
    X = draw.standard_normal((2, d))
    X *= scale[2] / np.linalg.norm(X, axis=1, keepdims=True)
    U, V = (s * W / np.linalg.norm(W) for s, W in zip(scale, (U, V), strict=False))
    return torch.from_numpy(U), torch.from_numpy(V), torch.from_numpy(X)


@given(*SIZES, st.integers(0, 2**31), st.floats(1e-6, 1))
def test_scores_move_no_more_than_weights(d: int, h: int, d_k: int, seed: int, step: float) -> None:
    """Lemma 9.3 for the maximum and for the sum of heads, and (29) for summed softmaxes."""
    U, V, X = weights(d, h, d_k, seed)
    far_U, far_V, _ = weights(d, h, d_k, seed + 1)
    near_U, near_V = (1 - step) * U + step * far_U, (1 - step) * V + step * far_V
    moved = float((U - near_U).norm() + (V - near_V).norm()) + 1e-12

    def most(scores: Scores) -> float:
        return float((scores(X, U, V, h) - scores(X, near_U, near_V, h)).abs().max())

    assert most(max_scores) <= moved
    assert most(lambda *layer: head_scores(*layer).sum(-3)) <= moved
    assert most(summed_attention) <= moved / 2


LAYERS: dict[str, Callable[[Problem], Layer | None]] = {
    "ours": lambda problem: build("ours", Construction(), problem, 4, 6).layer,
    "trivial": lambda problem: build("trivial", Construction(), problem, 48, 1).layer,
    "one head": lambda problem: decide(problem.X, problem.graph).layer,
}


@pytest.mark.parametrize("layer", LAYERS)
def test_no_margin_of_a_permutation_exceeds_what_the_embedding_allows(layer: str) -> None:
    """At norms of 1 edges score ‖X‖² / m at most in the mean, and other pairs minus that at least.

    So no margin is constant: on Gaussian rows it is about 1 / d_model, and Algorithm 1's 1 / (2m).
    """
    m, d_model = 48, 16
    problem = problem_of(Cell.model_validate({"m": m, "d_model": d_model}), 0)
    made = LAYERS[layer](problem)
    assert made is not None
    scores = max_scores(*map(torch.from_numpy, (problem.X, made.W_Q, made.W_K)), made.h).numpy()
    margin = least_margin(scores - made.tau, problem.graph)
    norms = np.linalg.norm(made.W_Q) * np.linalg.norm(made.W_K)
    assert 0 < margin / norms < np.linalg.norm(problem.X, 2) ** 2 / (m - 2)


def least_margin(scores: np.ndarray, graph: Neighbours) -> float:
    """The distance to tau of the nearest pair of two different items (Definition 9.1)."""
    signed = np.where(graph.matrix, scores, -scores)
    np.fill_diagonal(signed, math.inf)
    return float(signed.min())


def test_the_margin_of_algorithm_1_is_that_of_one_item_among_all() -> None:
    """Its weights have |W_Q|² ≈ m d_k, and its edges d_k above its non-edges at most."""
    m = 64
    cell = Cell.model_validate({"m": m, "d_model": m, "embedding": {"family": "onehot"}})
    made = build("1", Construction(), problem_of(cell, 0), 4, 300).layer
    norms = np.linalg.norm(made.W_Q) * np.linalg.norm(made.W_K)
    assert norms == pytest.approx(m * 300)
    assert made.tau / norms == pytest.approx(1 / (2 * m))
