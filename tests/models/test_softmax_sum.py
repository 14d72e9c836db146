"""Summed softmax attention against plain loops over eqs. (5) and (6)."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from rgr_dist.models.edges import score_contexts, weighted_logistic_loss
from rgr_dist.models.heads import summed_attention
from tests.models.test_max_heads import layer


def loop_attention(X: torch.Tensor, W_Q: torch.Tensor, W_K: torch.Tensor, h: int) -> np.ndarray:
    """A of every pair, head by head and exponential by exponential."""
    d_k = W_Q.shape[1] // h
    queries, keys = (X @ W_Q).tolist(), (X @ W_K).tolist()
    total = np.zeros((len(X), len(X)))
    for head in range(h):
        own = range(head * d_k, (head + 1) * d_k)
        for p, query in enumerate(queries):
            logits = [sum(query[c] * key[c] for c in own) / math.sqrt(d_k) for key in keys]
            shares = [math.exp(logit) for logit in logits]
            total[p] += np.array(shares) / sum(shares)
    return total


@pytest.mark.parametrize(
    ("length", "d", "h", "d_k"), [(5, 4, 1, 1), (5, 4, 3, 2), (2, 7, 4, 1), (6, 3, 1, 5)]
)
def test_scores_are_the_papers_sum_of_softmaxes(length: int, d: int, h: int, d_k: int) -> None:
    part = layer(8, length, d, h, d_k)
    X_ld = part["X_md"][part["contexts"][0]]
    A = summed_attention(X_ld, part["W_Q"], part["W_K"], h)
    np.testing.assert_allclose(A, loop_attention(X_ld, part["W_Q"], part["W_K"], h), rtol=1e-12)
    np.testing.assert_allclose(A.sum(1), h, rtol=1e-12)


@pytest.mark.parametrize("size", [1e3, 1e9, 1e18])
def test_extreme_logits_give_finite_attention_and_gradients(size: float) -> None:
    part = layer(8, 6, 4, 2, 3)
    W_Q, W_K = ((size * part[name]).float().requires_grad_() for name in ("W_Q", "W_K"))
    A = summed_attention(part["X_md"][part["contexts"][0]].float(), W_Q, W_K, 2)
    assert bool((A >= 0).all())
    torch.testing.assert_close(A.sum(1), torch.full((6,), 2.0))
    y = torch.eye(6, dtype=torch.bool)
    weighted_logistic_loss(A, y, torch.tensor(0.5), 10.0).backward()
    for W in (W_Q, W_K):
        assert W.grad is not None
        assert bool(torch.isfinite(W.grad).all())


def test_micro_f1_counts_summed_attention_above_tau() -> None:
    m = 6
    targets = torch.tensor([3, 4, 5, 0, 1, 2])
    one_hot = torch.eye(m)
    part = {
        "contexts": torch.tensor([[0, 1, 3], [3, 1, 4], [5, 2, 0]]),
        "targets_mr": targets.unsqueeze(1),
        "X_md": one_hot,
        "W_Q": 99 * one_hot[targets],  # q of an item is its target's one-hot key
        "W_K": one_hot,
        "tau": torch.tensor(0.5),
        "h": 1,
    }
    assert score_contexts(**part, scores=summed_attention) == 1.0
    lower = score_contexts(**part | {"tau": torch.tensor(0.3)}, scores=summed_attention)
    # Item 1 of the first context and item 3 of the second see no target, nor does item 0 of the
    # third: their attention, a third each, is above 0.3, so that 9 pairs are wrong and 6 right.
    assert lower == 2 * 6 / (2 * 6 + 9)
