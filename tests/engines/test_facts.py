"""The engines of model facts against each other, and what must not matter to a run's numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from pydantic import TypeAdapter

from rgr_dist.engines.choose import make_engine
from rgr_dist.engines.facts_outcome import TAUS
from rgr_dist.engines.fused.engine import FusedEngine
from rgr_dist.engines.fused.facts.lane import FactsLane
from rgr_dist.engines.reference.engine import ReferenceEngine
from rgr_dist.facts.logits import all_logits
from rgr_dist.facts.ranks import layer_rank_bound
from rgr_dist.study.cell import Cell
from rgr_dist.study.database import Database
from rgr_dist.study.run import Run

SHAPES: dict[str, dict[str, Any]] = {  # keys, queries, values, d_model, h, d_k, d_vo, and settings
    "one of everything": {"sizes": (1, 3, 2, 1, 1, 1, 1)},
    "whole tiles": {"sizes": (32, 16, 32, 16, 1, 16, 16)},
    "odd everything": {"sizes": (21, 5, 35, 19, 3, 5, 7)},
    "more queries than keys": {"sizes": (3, 20, 17, 9, 2, 1, 4)},
    "heads of width one": {"sizes": (17, 4, 9, 8, 5, 1, 1)},
    "no residual": {"sizes": (20, 4, 18, 8, 2, 3, 2), "facts": {"residual": False}},
    "frozen embeddings": {"sizes": (20, 4, 18, 8, 2, 3, 2), "facts": {"train_embedding": False}},
    "frozen unembedding": {"sizes": (20, 4, 18, 8, 1, 3, 2), "facts": {"train_unembedding": False}},
    "all frozen": {
        "sizes": (20, 4, 18, 8, 1, 3, 2),
        "facts": {"train_embedding": False, "train_unembedding": False, "residual": False},
    },
    "batches": {"sizes": (20, 4, 18, 8, 2, 3, 2), "training": {"batch_size": 7}},
    "decay": {"sizes": (20, 4, 18, 8, 2, 3, 2), "training": {"weight_decay": 0.5}},
    "cosine": {
        "sizes": (20, 4, 18, 8, 2, 3, 2),
        "training": {"schedule": "cosine", "max_steps": 120, "weight_decay": 0.1},
    },
    "partial": {"sizes": (20, 4, 18, 8, 2, 3, 2), "database": {"family": "partial", "share": 0.4}},
    "low rank": {"sizes": (20, 4, 18, 8, 2, 3, 2), "database": {"family": "low-rank", "rank": 6}},
}
shapes = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())


def run_of(shape: dict[str, Any], seed: int = 0, **training: Any) -> Run:
    keys, queries, values, d_model, h, d_k, d_vo = shape["sizes"]
    given = {"family": "function", "keys": keys, "queries": queries, "values": values}
    database = TypeAdapter(Database).validate_python(given | shape.get("database", {}))
    cell = Cell(
        model="facts",
        database=database,
        m=database.n_asked,
        d_model=d_model,
        facts=shape.get("facts", {}),
        training=shape.get("training", {}) | training,
    )
    return Run(cell=cell, h=h, d_k=d_k, d_vo=d_vo, seed=seed)


@shapes
def test_the_compiled_engine_follows_the_loop(shape: dict[str, Any]) -> None:
    run = run_of(shape, seed=3)
    (given,) = FusedEngine().weights_after([run], 60)
    (expected,) = ReferenceEngine(torch.float64).weights_after([run], 60)
    (start,) = ReferenceEngine(torch.float64).weights_after([run], 0)
    frozen = [name for name in start if (start[name] == expected[name]).all()]
    wanted = shape.get("facts", {})
    assert ("X_K" in frozen) == ("X_Q" in frozen) == (wanted.get("train_embedding") is False)
    assert ("U" in frozen) == (wanted.get("train_unembedding") is False)
    for name, value in given.items():
        assert value.shape == expected[name].shape
        assert np.abs(value - expected[name]).max() <= 1e-4 * np.abs(expected[name]).max()


def test_a_lane_that_is_perturbed_moves_no_other() -> None:
    one, other = (FactsLane(run_of(SHAPES["odd everything"], seed)) for seed in range(2))
    (alone,) = FusedEngine().weights_after([other.run], 30)
    for _ in range(3):
        one.theta += 0.1
        one.advance(10)
        other.advance(10)
    weights = other.weights()
    assert all((weights[name] == alone[name]).all() for name in weights)


def test_padding_stays_zero() -> None:
    lane = FactsLane(run_of(SHAPES["odd everything"], weight_decay=0.1))
    lane.advance(40)
    total = sum(float(np.abs(value).sum(dtype=np.float64)) for value in lane.weights().values())
    assert float(np.abs(lane.theta).sum(dtype=np.float64)) == pytest.approx(total, rel=1e-12)


QUICK = {"sizes": (12, 3, 8, 16, 1, 8, 16), "facts": {"tau": 0.9, "embedding_scale": 0.25}}
NARROW = {"sizes": (12, 3, 8, 4, 1, 2, 1), "facts": {"score": "argmax", "embedding_scale": 0.25}}


def test_a_run_stops_at_the_first_check_at_which_every_triple_is_right() -> None:
    run = run_of(QUICK, learning_rate=0.03, check_every=10, max_steps=1000)
    (outcome,) = FusedEngine().train([run])
    assert outcome.stop_reason == "converged"
    assert outcome.steps % 10 == 0
    lane = FactsLane(run)
    lane.advance(outcome.steps - 10)
    assert lane.accuracies()["softmax"] < 1
    lane.advance(10)
    assert lane.accuracies() == {"argmax": 1.0, "softmax": 1.0}


def test_an_outcome_tells_what_its_weights_know() -> None:
    shape = {"sizes": (12, 4, 9, 6, 2, 2, 1), "database": {"family": "partial", "share": 0.7}}
    run = run_of(shape, learning_rate=0.02, max_steps=120)
    (outcome,) = FusedEngine().train([run])
    (weights,) = FusedEngine().weights_after([run], 120)
    logits = all_logits(weights, run.h, residual=True)
    chances = np.exp(logits) / np.exp(logits).sum(2, keepdims=True)
    k, q, v = FactsLane(run).task.triples.T
    facts = outcome.facts
    assert facts is not None
    assert facts.argmax_accuracy == np.mean(logits.argmax(2)[k, q] == v)
    assert facts.softmax_accuracy == np.mean(chances[k, q, v] >= 0.95)
    assert outcome.score == facts.softmax_accuracy
    by_argmax = {**shape, "facts": {"score": "argmax"}}
    (other,) = FusedEngine().train([run_of(by_argmax, learning_rate=0.02, max_steps=120)])
    assert other.score == facts.argmax_accuracy != facts.softmax_accuracy
    assert [tau for tau, _, _ in facts.by_tau] == list(TAUS)
    for tau, accuracy, rank in facts.by_tau:
        assert accuracy == np.mean(chances[k, q, v] >= tau)
        ones = (chances >= tau).astype(float)
        assert rank == max(
            np.linalg.matrix_rank(np.moveaxis(ones, mode, 0).reshape(ones.shape[mode], -1))
            for mode in range(3)
        )
    assert facts.rank_logits <= layer_rank_bound((12, 4, 9), 2, 1, 6, residual=True)


def test_a_run_that_diverges_has_no_score() -> None:
    run = run_of(QUICK, learning_rate=1e30, max_steps=40)
    for name in ("fused", "reference"):
        (outcome,) = make_engine(name, model="facts").train([run])
        assert (outcome.stop_reason, outcome.score, outcome.facts) == ("diverged", None, None)
