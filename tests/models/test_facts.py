"""The layer of facts written out number by number, and as the sum of its factors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from rgr_dist.models.facts import right_by_argmax, right_by_softmax, token_logits
from rgr_dist.problem.databases import sample_triples
from rgr_dist.problem.facts_task import FactsTask, initial_facts, trained_names
from rgr_dist.study.cell import Cell, Run
from rgr_dist.theory.fact_logits import all_logits

DATABASE = {"family": "function", "keys": 5, "queries": 3, "values": 7}


def run_of(h: int = 2, d_k: int = 3, d_vo: int = 2, seed: int = 1, **own: Any) -> Run:
    database = own.pop("database", DATABASE)
    m = own.pop("m", 15)
    cell = Cell(model="facts", database=database, m=m, d_model=own.pop("d_model", 6), **own)
    return Run(cell=cell, h=h, d_k=d_k, d_vo=d_vo, seed=seed)


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
    weights = initial_facts(run_of(h, d_k, d_vo))
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


def test_a_wider_layer_begins_with_the_narrower_ones_columns() -> None:
    narrow, wide = initial_facts(run_of(1, 2, 2)), initial_facts(run_of(1, 4, 5))
    for name in ("X_K", "X_Q", "U"):
        assert (narrow[name] == wide[name]).all()
    for name, width in (("W_Q", 2), ("W_K", 2), ("W_V", 2)):
        assert (narrow[name] == wide[name][:, :width]).all()
    np.testing.assert_allclose(narrow["W_O"] * math.sqrt(2), wide["W_O"][:2] * math.sqrt(5))


def test_first_weights_have_the_stated_deviations() -> None:
    database = {"family": "function", "keys": 400, "queries": 300, "values": 500}
    sizes = {"database": database, "m": 120_000, "d_model": 50, "h": 2, "d_k": 20, "d_vo": 10}
    facts, training = {"embedding_scale": 3.0}, {"initial_scale": 0.5}
    weights = initial_facts(run_of(**sizes, facts=facts, training=training))
    inner = 0.5 / math.sqrt(50)
    expected = {
        "X_K": 3.0, "X_Q": 3.0, "U": 1 / math.sqrt(50),
        "W_Q": inner, "W_K": inner, "W_V": inner, "W_O": 0.5 / math.sqrt(20),
    }  # fmt: skip
    for name, value in weights.items():
        assert value.std() == pytest.approx(expected[name], rel=0.06)
    drawn = [
        np.round(value.reshape(-1)[:50] / expected[name], 6) for name, value in weights.items()
    ]
    assert len({tuple(row) for row in np.stack(drawn).tolist()}) == 7  # no two share a stream


def test_every_epoch_meets_every_triple_once() -> None:
    task = FactsTask.of(run_of(training={"batch_size": 4}).cell, 0)
    assert task.batches_per_epoch == 4
    epochs = [[task.batch(4 * epoch + part) for part in range(4)] for epoch in range(3)]
    for epoch in epochs:
        assert [len(batch) for batch in epoch] == [4, 4, 4, 3]
        assert sorted(np.concatenate(epoch).tolist()) == task.triples.tolist()
    assert not np.array_equal(epochs[0][0], epochs[1][0])
    full = FactsTask.of(run_of().cell, 0)
    assert (full.batch(7) == full.triples).all()
    assert (full.triples == sample_triples(full.cell.database, full.cell.problem_json, 0)).all()


def test_frozen_parts_are_not_trained() -> None:
    assert len(trained_names(run_of().cell)) == 7
    frozen = run_of(facts={"train_embedding": False, "train_unembedding": False})
    assert trained_names(frozen.cell) == ("W_Q", "W_K", "W_V", "W_O")
