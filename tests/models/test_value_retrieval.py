"""Message retrieval against plain loops over eqs. (3) and (4)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from rgr_dist.models.edges import labels
from rgr_dist.models.heads import max_scores
from rgr_dist.models.value_retrieval import retrieval_error_over, retrieval_errors, retrieval_loss
from tests.models.test_max_heads import layer, loop_score


def retrieval_layer(*sizes: int, n_contexts: int = 1) -> dict[str, Any]:
    """A random layer with messages, without a threshold."""
    part = layer(*sizes, n_contexts=n_contexts)
    del part["tau"]
    rng = np.random.default_rng(1)
    return part | {"V_mv": torch.from_numpy(rng.normal(size=(sizes[0], 3)))}


def loop_errors(part: dict[str, Any]) -> list[list[float]]:
    """Squared error of each position whose target is present, context by context."""
    X, V, result = part["X_md"], part["V_mv"], []
    for context in part["contexts"].tolist():
        errors = []
        for p in context:
            target = int(part["targets_mr"][p])
            if target in context:
                scores = {q: loop_score(X[p], X[q], part["W_Q"], part["W_K"], 2) for q in context}
                retrieved = [sum(scores[q] * float(V[q, v]) for q in context) for v in range(3)]
                wanted = V[target].tolist()
                errors.append(sum((a - b) ** 2 for a, b in zip(retrieved, wanted, strict=True)))
        result.append(errors)
    return result


def test_loss_is_the_papers_mean_over_positions_whose_target_is_present() -> None:
    part = retrieval_layer(8, 5, 4, 2, 3, n_contexts=6)
    counts = set()
    for nodes, errors in zip(part["contexts"], loop_errors(part), strict=True):
        S = max_scores(part["X_md"][nodes], part["W_Q"], part["W_K"], 2)
        loss = retrieval_loss(S, labels(nodes, part["targets_mr"]), part["V_mv"][nodes])
        assert float(loss) == pytest.approx(np.mean(errors) if errors else 0.0, rel=1e-12)
        counts.add(len(errors))
    assert len(counts) > 1
    assert min(counts) < 5


def test_a_position_without_its_target_is_no_matter() -> None:
    S = torch.tensor([[0.1, 0.2], [3.0, 4.0]])
    y = torch.tensor([[False, True], [False, False]])
    V = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
    errors, count = retrieval_errors(S, y, V)
    assert count == 1
    torch.testing.assert_close(errors, torch.tensor([(0.7 - 3) ** 2 + (1.2 - 5) ** 2, 0.0]))
    S.requires_grad_()
    retrieval_loss(S, y, V).backward()
    assert S.grad is not None
    assert S.grad[0].all()
    assert not S.grad[1].any()


def test_where_nothing_is_asked_for_there_is_no_error_and_no_gradient() -> None:
    S, y = torch.ones(3, 3, requires_grad=True), torch.zeros(3, 3, dtype=torch.bool)
    loss = retrieval_loss(S, y, torch.ones(3, 2))
    loss.backward()
    assert loss.item() == 0.0
    assert S.grad is not None
    assert not S.grad.any()
    part = retrieval_layer(8, 2, 4, 2, 3) | {"contexts": torch.tensor([[0, 1]])}
    part["targets_mr"] = torch.tensor([2, 3, 0, 1, 4, 5, 6, 7]).unsqueeze(1)
    assert retrieval_error_over(**part) == 0.0


@pytest.mark.parametrize("chunk", [1, 4, 7, 250])
def test_error_over_contexts_is_the_mean_over_positions_not_over_contexts(chunk: int) -> None:
    part = retrieval_layer(8, 5, 4, 2, 3, n_contexts=7)
    errors = loop_errors(part)
    pooled = np.mean([error for context in errors for error in context])
    assert pooled != pytest.approx(np.mean([np.mean(context) for context in errors]), rel=1e-3)
    assert retrieval_error_over(**part, chunk=chunk) == pytest.approx(pooled, rel=1e-12)
