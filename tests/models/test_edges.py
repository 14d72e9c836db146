"""The layers max and softmax, their loss and their scores, against plain loops over the paper."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rgr_dist.engines.tasks import ErrorScorer, F1Scorer
from rgr_dist.models.edges import labels, positive_weight, weighted_logistic_loss
from rgr_dist.models.f1 import micro_f1
from rgr_dist.models.value import retrieval_errors, retrieval_loss
from rgr_dist.models.zoo.max import Max
from rgr_dist.models.zoo.softmax import Softmax

DRAW = np.random.default_rng(0)


def drawn(*shape: int) -> torch.Tensor:
    return torch.from_numpy(DRAW.normal(size=shape))


def by_loops(X: torch.Tensor, p: dict[str, torch.Tensor], h: int, model: str) -> np.ndarray:
    """Scores of one context, head by head and number by number."""
    length, d_k = len(X), p["W_Q"].shape[1] // h
    heads = np.zeros((h, length, length))
    for i in range(h):
        own = slice(i * d_k, (i + 1) * d_k)
        for a in range(length):
            for b in range(length):
                q, k = (X[a] @ p["W_Q"][:, own], X[b] @ p["W_K"][:, own])
                heads[i, a, b] = sum(float(q[c]) * float(k[c]) for c in range(d_k))
    if model == "max":
        return heads.max(0)
    shares = np.exp(heads / math.sqrt(d_k))
    return (shares / shares.sum(2, keepdims=True)).sum(0)


@pytest.mark.parametrize(("model", "made"), [("max", Max), ("softmax", Softmax)])
@pytest.mark.parametrize(("length", "d", "h", "d_k"), [(5, 4, 1, 1), (5, 4, 3, 2), (2, 7, 4, 1)])
def test_scores_are_the_papers(
    model: str, made: type, length: int, d: int, h: int, d_k: int
) -> None:
    X_nld, p = drawn(3, length, d), {"W_Q": drawn(d, h * d_k), "W_K": drawn(d, h * d_k)}
    S = made(d, h, d_k).scores(X_nld, p)
    for X, given_S in zip(X_nld, S, strict=True):
        np.testing.assert_allclose(given_S, by_loops(X, p, h, model), rtol=1e-10)


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
    draw = np.random.default_rng(length)  # of its own: what other tests draw is no matter
    S, tau = torch.from_numpy(draw.normal(size=(length, length))), torch.tensor(0.2).double()
    y = torch.from_numpy(draw.random((length, length)) < 0.3)
    y[0, 0] = True
    edges = float(y.sum())
    weight = (length**2 - edges) / edges if balanced else length - 1.0
    total = 0.0
    for p in range(length):
        for q in range(length):
            z = sharpness * float(S[p, q] - tau)
            each = math.log1p(math.exp(-z)) * weight if y[p, q] else math.log1p(math.exp(z))
            total += each
    loss = weighted_logistic_loss(S, y, tau, sharpness, balanced)
    assert float(loss) == pytest.approx(total / length**2, rel=1e-12)


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


def test_f1_over_contexts_counts_pairs_and_is_cut_short_only_where_the_answer_is_no() -> None:
    m, length = 9, 4
    contexts = np.stack([DRAW.permutation(m)[:length] for _ in range(300)]).astype(np.int32)
    targets, S_mm = torch.from_numpy(DRAW.permutation(m)).unsqueeze(1), drawn(m, m)
    scorer = F1Scorer(contexts, targets)

    def scores(nodes: torch.Tensor) -> torch.Tensor:
        return S_mm[nodes[:, :, None], nodes[:, None, :]]

    hits = wrong = missed = 0
    for nodes in contexts:
        for p in nodes:
            for q in nodes:
                found, edge = float(S_mm[p, q]) > 0.3, int(targets[p]) == q
                hits += found and edge
                wrong += found and not edge
                missed += edge and not found
    exact = 2 * hits / (2 * hits + wrong + missed)
    tau = torch.tensor(0.3, dtype=torch.float64)
    assert scorer.score(scores, tau) == exact
    assert scorer.score(scores, tau, above=0.995) is None
    assert scorer.score(scores, tau, above=exact - 1e-9) == exact
    assert scorer.score(lambda nodes: scores(nodes) * math.nan, tau) == 0.0


def test_errors_of_messages_are_the_papers() -> None:
    m, length, contexts = 8, 5, []
    targets, S_mm, V = torch.from_numpy(DRAW.permutation(m)), drawn(m, m), drawn(m, 3)
    errors: list[float] = []
    for _ in range(7):
        nodes = DRAW.permutation(m)[:length]
        contexts.append(nodes)
        own = []
        for p in nodes:
            if int(targets[p]) in nodes:
                retrieved = sum(S_mm[p, q] * V[q] for q in nodes)
                own.append(float((retrieved - V[targets[p]]).square().sum()))
        S, y = S_mm[nodes][:, nodes], labels(torch.from_numpy(nodes), targets.unsqueeze(1))
        loss = retrieval_loss(S, y.double(), V[nodes])
        assert float(loss) == pytest.approx(np.mean(own) if own else 0.0, rel=1e-10)
        errors += own
    scorer = ErrorScorer(np.stack(contexts).astype(np.int32), targets.unsqueeze(1), V)
    score = scorer.score(lambda nodes: S_mm[nodes[:, :, None], nodes[:, None, :]], None)
    assert score == pytest.approx(np.mean(errors), rel=1e-10)


def test_a_position_without_its_target_is_no_matter() -> None:
    S = torch.tensor([[0.1, 0.2], [3.0, 4.0]], requires_grad=True)
    y = torch.tensor([[0.0, 1.0], [0.0, 0.0]])
    V = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
    errors, counts = retrieval_errors(S, y, V)
    assert counts.tolist() == [1, 0]
    assert errors.detach().tolist() == pytest.approx([(0.7 - 3) ** 2 + (1.2 - 5) ** 2, 0.0])
    retrieval_loss(S, y, V).backward()
    assert S.grad is not None
    assert S.grad[0].all()
    assert not S.grad[1].any()
    assert retrieval_loss(S.detach(), torch.zeros(2, 2), V).item() == 0.0
