"""A run of facts: its first weights and batches, its engines against each other, and its end."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from rgr_dist.engines.choose import make_engine
from rgr_dist.engines.compiled import CompiledEngine
from rgr_dist.engines.reference import ReferenceEngine
from rgr_dist.facts.databases import sample_triples
from rgr_dist.facts.layer import all_logits
from rgr_dist.facts.ranks import layer_rank_bound
from rgr_dist.facts.task import TAUS, Task, Triples, filled, first_weights
from rgr_dist.study.run import Run
from tests.facts.made_up import cell_of, database, run_of
from tests.marks import SLOW_IN_CI


def test_a_wider_layer_begins_with_the_narrower_ones_columns() -> None:
    narrow, wide = first_weights(run_of(1, 2, 2)), first_weights(run_of(1, 4, 5))
    for name in ("X_K", "X_Q", "U"):
        assert (narrow[name] == wide[name]).all()
    for name, width in (("W_Q", 2), ("W_K", 2), ("W_V", 2)):
        assert (narrow[name] == wide[name][:, :width]).all()
    np.testing.assert_allclose(narrow["W_O"] * math.sqrt(2), wide["W_O"][:2] * math.sqrt(5))


def test_first_weights_have_the_stated_deviations() -> None:
    many = database("function", keys=400, queries=300, values=500)
    facts, training = {"embedding_scale": 3.0}, {"initial_scale": 0.5}
    weights = first_weights(
        run_of(2, 20, 10, database=many, d_model=50, facts=facts, training=training)
    )
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
    task = Triples(cell_of(training={"batch_size": 4}), 0)
    assert task.per_epoch == 4
    epochs = [[task.batch(4 * epoch + part) for part in range(4)] for epoch in range(3)]
    for epoch in epochs:
        assert [len(batch) for batch in epoch] == [4, 4, 4, 3]
        assert sorted(np.concatenate(epoch).tolist()) == task.all.tolist()
    assert not np.array_equal(epochs[0][0], epochs[1][0])
    full = Triples(cell_of(), 0)
    assert (full.batch(7) == full.all).all()
    assert (full.all == sample_triples(full.cell.database, full.cell.problem_json, 0)).all()


def test_stored_runs_keep_their_first_weights_and_the_order_of_their_batches() -> None:
    ends = {
        "X_K": (-0.1617498533310019, -0.042783036699737834),
        "X_Q": (-0.08705273578299194, 0.018517619159948633),
        "W_Q": (-0.46680932705958555, -0.7151418332875085),
        "W_K": (0.6392780468014038, 0.6661663691076941),
        "W_V": (0.23538057610459226, -0.2793954614168019),
        "W_O": (-0.2685865687883684, 0.27059225918504787),
        "U": (0.2908095299658769, -0.38922270323095826),
    }
    run = run_of(seed=1, training={"batch_size": 4})
    weights = first_weights(run)
    assert list(weights) == list(ends)
    for name, value in weights.items():
        assert (value[0, 1], value[-1, -1]) == pytest.approx(ends[name], rel=1e-12)


SHAPES: dict[str, dict[str, Any]] = {  # h, d_qk, d_vo, and settings
    "several heads": {"sizes": (3, 5, 7)},
    "no residual": {"sizes": (2, 3, 2), "facts": {"residual": False}},
    "frozen": {
        "sizes": (1, 3, 2),
        "facts": {"train_embedding": False, "train_unembedding": False},
    },
    "batches": {"sizes": (2, 3, 2), "training": {"batch_size": 7}},
    "cosine": {
        "sizes": (2, 3, 2),
        "training": {"schedule": "cosine", "max_steps": 120, "weight_decay": 0.1},
    },
}


def shaped(shape: dict[str, Any], **training: Any) -> Run:
    given = {"training": shape.get("training", {}) | training, "facts": shape.get("facts", {})}
    asked = database("function", *shape.get("database", (20, 4, 18)))
    return run_of(*shape["sizes"], seed=3, database=asked, d_model=8, **given)


def test_heads_that_are_filled_up_stay_as_they_are() -> None:
    run = run_of(3, 5, 2, d_model=8)
    weights = {name: torch.from_numpy(p) for name, p in first_weights(run).items()}
    wide = filled(weights, 3, True, 5, 2)
    assert wide["W_Q"].shape == wide["W_V"].shape == wide["W_O"].T.shape == (8, 3 * 16)
    narrow = filled(wide, 3, False, 5, 2)
    assert all(torch.equal(narrow[name], weights[name]) for name in weights)
    (trained,) = ReferenceEngine().weights_after([run], 30)
    for name in ("W_Q", "W_K", "W_V"):
        assert not trained[name].reshape(8, 3, 16)[:, :, 5 if name != "W_V" else 2 :].any()


COMPILED = [
    pytest.param(shape, id=name, marks=SLOW_IN_CI if name == "several heads" else pytest.mark.slow)
    for name, shape in SHAPES.items()
]


@pytest.mark.parametrize("shape", COMPILED)
def test_the_compiled_engine_follows_the_reference(shape: dict[str, Any]) -> None:
    run = shaped(shape)
    (given,) = CompiledEngine().weights_after([run], 50)
    (expected,) = ReferenceEngine(torch.float64).weights_after([run], 50)
    for name, value in given.items():
        assert np.abs(value - expected[name]).max() <= 1e-4 * np.abs(expected[name]).max()
    assert ("U" in given) == ("X_K" in given) == (shape is not SHAPES["frozen"])


def test_a_run_stops_at_the_first_check_at_which_every_triple_is_right() -> None:
    quick = {"sizes": (1, 8, 16), "database": (12, 3, 8)}
    quick |= {"facts": {"tau": 0.9, "embedding_scale": 0.25}}
    run = shaped(quick, learning_rate=0.03, check_every=10, max_steps=1000)
    (outcome,) = ReferenceEngine().train([run])
    assert outcome.stop_reason == "converged"
    assert outcome.steps % 10 == 0
    assert outcome.score == 1.0
    lane = ReferenceEngine().lane(run)
    lane.advance(outcome.steps - 10)
    assert lane.check(None) < 1


def test_an_outcome_tells_what_its_weights_know() -> None:
    asked = database("partial", 12, 4, 9, share=0.7)
    training = {"learning_rate": 0.02, "max_steps": 120}
    run = run_of(2, 2, 1, database=asked, training=training)
    (outcome,) = ReferenceEngine().train([run])
    (weights,) = ReferenceEngine().weights_after([run], 120)
    given = {name: torch.from_numpy(p) for name, p in weights.items()}
    narrow = {name: p.numpy() for name, p in filled(given, run.h, False, 2, 1).items()}
    logits = all_logits(narrow, run.h, residual=True)
    chances = np.exp(logits) / np.exp(logits).sum(2, keepdims=True)
    task = Task(run, torch.device("cpu"), torch.float32)
    k, q, v = task.triples.all.T
    told = outcome.details
    assert told is not None
    assert told["argmax_accuracy"] == np.mean(logits.argmax(2)[k, q] == v)
    assert told["softmax_accuracy"] == np.mean(chances[k, q, v] >= 0.95) == outcome.score
    by_argmax = run_of(2, 2, 1, database=asked, training=training, facts={"score": "argmax"})
    (other,) = ReferenceEngine().train([by_argmax])
    assert other.score == told["argmax_accuracy"] != told["softmax_accuracy"]
    assert [tau for tau, _, _ in told["by_tau"]] == list(TAUS)
    for tau, accuracy, rank in told["by_tau"]:
        assert accuracy == np.mean(chances[k, q, v] >= tau)
        ones = (chances >= tau).astype(float)
        assert rank == max(
            np.linalg.matrix_rank(np.moveaxis(ones, mode, 0).reshape(ones.shape[mode], -1))
            for mode in range(3)
        )
    assert told["rank_logits"] <= layer_rank_bound((12, 4, 9), 2, 1, 6, residual=True)


@pytest.mark.parametrize("name", [pytest.param("compiled", marks=SLOW_IN_CI), "reference"])
def test_a_run_that_diverges_has_no_score(name: str) -> None:
    run = shaped(SHAPES["several heads"], learning_rate=1e30, max_steps=40)
    (outcome,) = make_engine(name, model="facts").train([run])
    assert (outcome.stop_reason, outcome.score, outcome.details) == ("diverged", None, None)
