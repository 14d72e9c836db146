"""Algorithm 2 on contexts, pair by pair."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from rgr_dist.problem.graphs import Neighbours
from rgr_dist.study.cell import Cell
from rgr_dist.study.construction import Construction
from rgr_dist.theory import softmax_contexts
from rgr_dist.theory.draws import Constructor
from rgr_dist.theory.layer import Layer
from rgr_dist.theory.softmax_contexts import score_contexts_softmax


def test_counts_are_those_of_every_context_by_hand() -> None:
    rng = np.random.default_rng(0)
    m, h, d_k = 10, 2, 3
    X, W_Q, W_K = rng.standard_normal((m, 4)), *rng.standard_normal((2, 4, h * d_k))
    pi = rng.permutation(m)
    contexts = np.array([rng.permutation(m)[:4] for _ in range(30)], dtype=np.int32)
    counts = dict.fromkeys(("tp", "predicted", "present", "present_right", "absent_right"), 0)
    for nodes in contexts:
        A = np.zeros((4, 4))
        for k in range(h):
            own = slice(k * d_k, (k + 1) * d_k)
            logits = (X[nodes] @ W_Q[:, own]) @ (X[nodes] @ W_K[:, own]).T / np.sqrt(d_k)
            A += np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        for p in range(4):
            true, predicted = nodes == pi[nodes[p]], A[p] > 0.5
            right = bool((true == predicted).all())
            counts["tp"] += int((true & predicted).sum())
            counts["predicted"] += int(predicted.sum())
            counts["present"] += int(true.any())
            counts["present_right"] += int(true.any() and right)
            counts["absent_right"] += int(not true.any() and right)
    graph = Neighbours(np.arange(m + 1, dtype=np.int32), pi.astype(np.int32))
    found = score_contexts_softmax(Layer(W_Q, W_K, h, 0.5), X, graph, contexts)
    assert {name: getattr(found, name) for name in counts} == counts
    assert found.absent == 120 - found.present


def test_wide_heads_are_scored_a_few_contexts_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same counts; an array of all 20 contexts would hold 20 · 16 · 4 · 32 numbers."""
    made = Constructor(Cell.model_validate({"m": 64, "d_model": 16}), "2", n_contexts=20)
    whole, sizes = made.score(0, 4, 32), list[int]()
    attend = softmax_contexts.summed_attention

    def counted(X_nld: torch.Tensor, *weights: Any) -> torch.Tensor:
        sizes.append(len(X_nld))
        return attend(X_nld, *weights)

    monkeypatch.setattr(softmax_contexts, "summed_attention", counted)
    monkeypatch.setattr(softmax_contexts, "NUMBERS_AT_ONCE", 7 * 16 * 4 * 32)
    assert made.score(0, 4, 32) == whole
    assert sizes == [7, 7, 6]
    sizes.clear()
    made.score(0, 4, 32 * 8)
    assert sizes == [1] * 20


def test_absent_targets_fail_at_short_contexts_with_many_heads() -> None:
    """Theorem 8.1 takes l ≫ h; with 8 heads on 16 items the background alone is 7/16."""
    cell = Cell.model_validate({"m": 64, "d_model": 64, "embedding": {"family": "onehot"}})
    made = Constructor(cell, "2", Construction(), block_size=8, n_contexts=20)
    row = made.measure(made.heads(), 400, 2)
    assert row["h"] == 8
    assert row["absent_right"] < 0.5
    assert row["present_right"] > 0.9  # the owner head alone gives 1
