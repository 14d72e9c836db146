"""Heads that are summed are one head of their total width (Sec. 3), exactly, in whole numbers."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from rgr_dist.models.heads import head_scores, max_scores
from rgr_dist.problem.graphs import Neighbours
from rgr_dist.theory.one_head import decide

SIZES = (st.integers(1, 6), st.integers(1, 5), st.integers(1, 4), st.integers(1, 3))


def layer(length: int, d: int, h: int, d_k: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Embeddings, W_Q and W_K of whole numbers, whose sums of products are exact in float64."""
    draw, wide = np.random.default_rng(seed), h * d_k
    entries = draw.integers(-9, 10, length * d + 2 * d * wide).astype(np.float64)
    X, W_Q, W_K = torch.from_numpy(entries).split([length * d, d * wide, d * wide])
    return X.view(length, d), W_Q.view(d, wide), W_K.view(d, wide)


@given(*SIZES, st.integers(0, 2**32 - 1))
def test_the_sum_of_heads_is_one_head_of_their_total_width(
    length: int, d: int, h: int, d_k: int, seed: int
) -> None:
    X, W_Q, W_K = layer(length, d, h, d_k, seed)
    x, q, k = (each.numpy().astype(int) for each in (X, W_Q, W_K))
    one_matrix = torch.from_numpy(x @ (q @ k.T) @ x.T).double()  # x_iᵀ W x_j, without any heads
    assert torch.equal(head_scores(X, W_Q, W_K, h).sum(-3), one_matrix)
    assert torch.equal(max_scores(X, W_Q, W_K, 1), one_matrix)


def test_their_maximum_is_no_single_head() -> None:
    """Items 1, 2 and -2 on a line, and every pair but (1, 1): two heads hold it, and no single one.

    Of one head w the edges (2, 2) and (2, -2) score 4w and -4w, so tau < 0, and (1, 1) scores
    w <= tau; but then the edge (1, 2) scores 2w < w.
    """
    X = np.array([[1.0], [2.0], [-2.0]])
    edges = np.array([(i, j) for i in range(3) for j in range(3) if (i, j) != (0, 0)])
    graph = Neighbours.of_edges(3, edges)
    W_Q, W_K = torch.ones(1, 2, dtype=torch.float64), torch.tensor([[1.0, -1.0]]).double()
    scores = max_scores(torch.from_numpy(X), W_Q, W_K, 2)
    assert np.array_equal(scores.numpy() > 1.5, graph.matrix)
    assert decide(X, graph).separable is False
