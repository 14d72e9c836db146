"""The layer of facts written out number by number, and as the sum of its factors."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from rgr_dist.facts.layer import all_logits, right_by_argmax, right_by_softmax, token_logits
from rgr_dist.facts.task import first_weights
from tests.facts.made_up import run_of


def plain_logits(w: dict[str, np.ndarray], k: int, q: int, h: int, residual: bool) -> np.ndarray:
    """Two tokens, one head after another: a softmax over two positions, read at the second."""
    tokens = [w["X_K"][k], w["X_Q"][q]]
    d_qk, d_vo = w["W_Q"].shape[1] // h, w["W_V"].shape[1] // h
    out = tokens[1].copy() if residual else np.zeros_like(tokens[1])
    for i in range(h):
        keys, values = slice(i * d_qk, (i + 1) * d_qk), slice(i * d_vo, (i + 1) * d_vo)
        query = tokens[1] @ w["W_Q"][:, keys]
        scores = [query @ (x @ w["W_K"][:, keys]) / math.sqrt(d_qk) for x in tokens]
        weights = [math.exp(s) / sum(map(math.exp, scores)) for s in scores]
        mixed = sum(a * (x @ w["W_V"][:, values]) for a, x in zip(weights, tokens, strict=True))
        out = out + mixed @ w["W_O"][values]
    return out @ w["U"]


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize(("h", "d_k", "d_vo"), [(1, 1, 1), (2, 3, 2), (3, 1, 4)])
def test_logits_are_those_of_the_layer_written_out(
    h: int, d_k: int, d_vo: int, residual: bool
) -> None:
    weights = first_weights(run_of(h, d_k, d_vo))
    expected = np.array(
        [[plain_logits(weights, k, q, h, residual) for q in range(3)] for k in range(5)]
    )
    np.testing.assert_allclose(all_logits(weights, h, residual), expected, rtol=1e-12, atol=1e-14)
    keys, queries = torch.from_numpy(np.indices((5, 3)).reshape(2, -1))
    theta = {name: torch.from_numpy(value) for name, value in weights.items()}
    given = token_logits(keys, queries, theta, h, residual).reshape(5, 3, 7).numpy()
    np.testing.assert_allclose(given, expected, rtol=1e-12, atol=1e-14)


def test_a_value_is_right_if_it_alone_is_largest_or_likely_enough() -> None:
    logits = torch.tensor([[1.0, 5.0, 0.0], [2.0, 2.0, 0.0], [0.0, 9.0, 1.0]])
    values = torch.tensor([1, 0, 0])
    assert right_by_argmax(logits, values).tolist() == [True, False, False]
    chance = math.exp(5) / (math.e + math.exp(5) + 1)
    assert right_by_softmax(logits, values, chance - 1e-6).tolist() == [True, False, False]
    assert right_by_softmax(logits, values, chance + 1e-6).tolist() == [False] * 3
