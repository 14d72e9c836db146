"""The max-over-heads layer against plain loops over the paper's formulas."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rgr_dist.models.edges import (
    count_edges,
    labels,
    positive_weight,
    score_contexts,
    weighted_logistic_loss,
)
from rgr_dist.models.f1 import micro_f1
from rgr_dist.models.heads import Scores, max_scores, summed_attention


def layer(
    m: int, length: int, d: int, h: int, d_k: int, n_contexts: int = 1, seed: int = 0
) -> dict[str, Any]:
    """A random layer and contexts, in float64."""
    rng = np.random.default_rng(seed)
    contexts = np.stack([rng.permutation(m)[:length] for _ in range(n_contexts)])
    return {
        "contexts": torch.from_numpy(contexts),
        "targets_mr": torch.from_numpy(rng.permutation(m)).unsqueeze(1),
        "X_md": torch.from_numpy(rng.normal(size=(m, d))),
        "W_Q": torch.from_numpy(rng.normal(size=(d, h * d_k))),
        "W_K": torch.from_numpy(rng.normal(size=(d, h * d_k))),
        "tau": torch.tensor(0.3, dtype=torch.float64),
        "h": h,
    }


def loop_score(x_p: Any, x_q: Any, W_Q: Any, W_K: Any, h: int) -> float:
    """S_max(p, q) of Sec. 6, head by head."""
    d, d_k = len(x_p), W_Q.shape[1] // h
    best = -math.inf
    for head in range(h):
        total = 0.0
        for column in range(head * d_k, (head + 1) * d_k):
            q = sum(float(x_p[i]) * float(W_Q[i, column]) for i in range(d))
            k = sum(float(x_q[i]) * float(W_K[i, column]) for i in range(d))
            total += q * k
        best = max(best, total)
    return best


def loop_counts(part: dict[str, Any]) -> tuple[int, int, int]:
    """True positives, false positives and false negatives of a layer, pair by pair."""
    hits, wrong, missed = 0, 0, 0
    X = part["X_md"]
    for context in part["contexts"].tolist():
        for p in context:
            for q in context:
                score = loop_score(X[p], X[q], part["W_Q"], part["W_K"], part["h"])
                found, edge = score > float(part["tau"]), int(part["targets_mr"][p]) == q
                hits += found and edge
                wrong += found and not edge
                missed += edge and not found
    return hits, wrong, missed


@pytest.mark.parametrize(
    ("length", "d", "h", "d_k"), [(5, 4, 1, 1), (5, 4, 3, 2), (2, 7, 4, 1), (6, 3, 1, 5)]
)
def test_scores_are_the_largest_head_of_every_pair(length: int, d: int, h: int, d_k: int) -> None:
    part = layer(8, length, d, h, d_k)
    X_ld = part["X_md"][part["contexts"][0]]
    S = max_scores(X_ld, part["W_Q"], part["W_K"], h)
    expected = [[loop_score(p, q, part["W_Q"], part["W_K"], h) for q in X_ld] for p in X_ld]
    np.testing.assert_allclose(S.numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("scores", [max_scores, summed_attention])
def test_scores_of_many_contexts_are_those_of_each(scores: Scores) -> None:
    part = layer(9, 4, 5, 2, 3, n_contexts=6)
    X_nld, weights = part["X_md"][part["contexts"]], (part["W_Q"], part["W_K"], 2)
    alone = torch.stack([scores(X_ld, *weights) for X_ld in X_nld])
    torch.testing.assert_close(scores(X_nld, *weights), alone)


@given(data=st.data(), m=st.integers(2, 9))
def test_labels_of_several_targets_mark_the_edges_inside_a_context(
    data: st.DataObject, m: int
) -> None:
    graph = [data.draw(st.lists(st.integers(0, m - 1), unique=True)) for _ in range(m)]
    widest = max(1, *map(len, graph))
    table = torch.tensor([targets + [-1] * (widest - len(targets)) for targets in graph])
    contexts = [data.draw(st.permutations(range(m)))[: m - 1] for _ in range(3)]
    y = labels(torch.tensor(contexts), table)
    assert y.tolist() == [[[q in graph[p] for q in nodes] for p in nodes] for nodes in contexts]


def test_edges_weigh_negatives_over_positives_or_the_number_of_other_positions() -> None:
    y = torch.zeros(4, 3, 3)
    y[1, 0, 1] = y[2, 0, 1] = y[2, 0, 2] = 1
    y[3] = 1
    assert positive_weight(y, balanced=False) == 2
    assert positive_weight(y, balanced=True).tolist() == [9, 8, 3.5, 0]  # finite without an edge


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize(("length", "sharpness"), [(2, 10.0), (5, 1.0), (7, 10.0)])
def test_loss_is_the_papers_sum_over_all_ordered_pairs(
    length: int, sharpness: float, balanced: bool
) -> None:
    rng = np.random.default_rng(length)
    S, tau = rng.normal(size=(length, length)), 0.2
    y = np.zeros((length, length), bool)
    y[:-1, 1:] = np.eye(length - 1, dtype=bool)[rng.permutation(length - 1)]
    total, weight = 0.0, length - 1.0
    if balanced:
        y[0] = True
        weight = float((~y).sum()) / float(y.sum())
    for p in range(length):
        for q in range(length):
            z = sharpness * (S[p, q] - tau)
            if y[p, q]:
                total += math.log1p(math.exp(-z)) * weight
            else:
                total += math.log1p(math.exp(z))
    loss = weighted_logistic_loss(
        torch.from_numpy(S),
        torch.from_numpy(y),
        torch.tensor(tau, dtype=torch.float64),
        sharpness,
        balanced,
    )
    assert float(loss) == pytest.approx(total / length**2, rel=1e-12)


def test_loss_stays_finite_at_extreme_scores() -> None:
    S = torch.tensor([[1e30, -1e30], [-1e30, 1e30]])
    right, wrong = torch.eye(2, dtype=torch.bool), ~torch.eye(2, dtype=torch.bool)
    tau = torch.tensor(0.0)
    assert float(weighted_logistic_loss(S, right, tau, 10.0)) == 0.0
    assert math.isfinite(float(weighted_logistic_loss(S, wrong, tau, 10.0)))


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
def test_micro_f1_is_the_harmonic_mean_of_precision_and_recall(
    hits: int, wrong: int, missed: int
) -> None:
    score = micro_f1(hits, hits + wrong, hits + missed)
    if hits == 0:
        assert score == (0.0 if wrong + missed else 1.0)
        return
    precision, recall = Fraction(hits, hits + wrong), Fraction(hits, hits + missed)
    assert score == float(2 * precision * recall / (precision + recall))


def test_a_score_on_the_threshold_is_no_edge() -> None:
    S, tau = torch.tensor([[0.5, 0.5], [0.6, 0.4]]), torch.tensor(0.5)
    y = torch.tensor([[True, False], [True, False]])
    assert count_edges(S, y, tau) == (1, 1, 2)


@pytest.mark.parametrize("not_a_number", [math.nan, -math.inf])
def test_no_edge_is_predicted_from_what_is_not_a_number(not_a_number: float) -> None:
    S = torch.full((2, 2), not_a_number)
    assert count_edges(S, torch.eye(2, dtype=torch.bool), torch.tensor(0.0)) == (0, 0, 2)


@pytest.mark.parametrize(("h", "d_k", "seed"), [(1, 2, 0), (3, 1, 1), (2, 3, 2)])
def test_score_counts_pairs_over_all_contexts(h: int, d_k: int, seed: int) -> None:
    part = layer(6, 4, 3, h, d_k, n_contexts=7, seed=seed)
    hits, wrong, missed = loop_counts(part)
    assert hits > 0
    assert wrong > 0
    assert missed > 0
    assert score_contexts(**part) == 2 * hits / (2 * hits + wrong + missed)


@pytest.mark.parametrize("chunk", [1, 2, 6, 7, 8])
def test_scoring_in_chunks_changes_nothing(chunk: int) -> None:
    part = layer(9, 5, 4, 2, 2, n_contexts=7)
    assert score_contexts(**part, chunk=chunk) == score_contexts(**part)
