"""Compiled training of the other models against the paper's loop, alone and beside others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rgr_dist.engines.api import Engine, Weights
from rgr_dist.engines.fused.engine import FusedEngine
from rgr_dist.engines.fused.lane import Lane
from rgr_dist.engines.lanes.engine import LanesEngine
from rgr_dist.engines.reference.engine import ReferenceEngine
from tests.engines.shapes import BENCHMARK_SHAPES, ODD_SHAPES, flat, make_run

models = pytest.mark.parametrize("model", ["softmax", "value"])
engines = pytest.mark.parametrize("engine", [FusedEngine(), LanesEngine()], ids=lambda e: e.name)


def assert_close(given: Weights, expected: Weights) -> None:
    for name in ("W_Q", "W_K"):
        a, b = getattr(given, name), getattr(expected, name)
        assert a.shape == b.shape
        assert np.linalg.norm(a - b) <= 1e-4 * np.linalg.norm(b), name
    assert given.tau == pytest.approx(expected.tau, rel=1e-4)


class TestAgainstReference:
    @models
    @pytest.mark.parametrize("shape", BENCHMARK_SHAPES[:4] + ODD_SHAPES, ids=str)
    def test_weights_after_100_steps(self, shape: tuple[int, ...], model: str) -> None:
        run = make_run(*shape, model=model)
        (given,) = FusedEngine().weights_after([run], 100)
        (expected,) = ReferenceEngine().weights_after([run], 100)
        assert_close(given, expected)

    @models
    @pytest.mark.parametrize("positive_rate", [0.0, 1.0])
    @engines
    def test_other_rates(self, engine: Engine, positive_rate: float, model: str) -> None:
        """At rate 0 of two items hardly any context asks for a message.

        One head alone: where many heads share out few items, z is so large that 1 - sigmoid(z)
        is rounding, and so is the gradient of W; AdamW makes whole steps of it.
        """
        run = make_run(64, 16, 1, 5, 2, positive_rate=positive_rate, model=model)
        (given,) = engine.weights_after([run], 100)
        (expected,) = ReferenceEngine().weights_after([run], 100)
        assert_close(given, expected)

    @models
    def test_outcome_of_a_run(self, model: str) -> None:
        own: dict[str, Any] = {"softmax": {"stop_score": 0.6}, "value": {"tolerance": 0.05}}
        quick = {"learning_rate": 0.01, "check_every": 50, "patience": 2} | own[model]
        run = make_run(32, 12, 2, 4, 8, model=model, **quick)
        (given,) = FusedEngine().train([run])
        (expected,) = ReferenceEngine().train([run])
        assert given.stop_reason == expected.stop_reason == "converged"
        assert abs(given.steps - expected.steps) <= 2 * 50
        assert given.score == pytest.approx(expected.score, abs=0.01)
        assert given.val_score == pytest.approx(expected.val_score, abs=0.01)
        assert given.tau == (None if model == "value" else pytest.approx(expected.tau, rel=0.02))


class TestOneRunNeverAffectsAnother:
    @models
    def test_same_bits_alone_beside_others_and_on_any_number_of_threads(self, model: str) -> None:
        runs = [make_run(64, 16, 4, 5, model=model, seed=seed) for seed in range(4)]
        together = FusedEngine(threads=3).weights_after(runs, 300)
        for run, beside in zip(runs, together, strict=True):
            (alone,) = FusedEngine().weights_after([run], 300)
            assert flat(alone).tobytes() == flat(beside).tobytes()

    def test_models_take_turns_in_one_process(self) -> None:
        runs = [make_run(40, 17, 3, 4, 5, model=model) for model in ("max", "softmax", "value")]
        alone = [FusedEngine().weights_after([run], 50)[0] for run in runs]
        again = FusedEngine(threads=3).weights_after(runs[::-1], 50)[::-1]
        for one, other in zip(alone, again, strict=True):
            assert flat(one).tobytes() == flat(other).tobytes()


class TestExtremes:
    @models
    @engines
    def test_huge_learning_rate_is_marked_at_its_check(self, engine: Engine, model: str) -> None:
        run = make_run(64, 16, 4, 5, model=model, learning_rate=1e30, check_every=50, max_steps=500)
        (given,) = engine.train([run])
        (expected,) = ReferenceEngine().train([run])
        for outcome in (given, expected):
            assert (outcome.stop_reason, outcome.steps) == ("diverged", 50)
            assert (outcome.score, outcome.val_score, outcome.tau) == (None, None, None)

    @models
    @engines
    @pytest.mark.parametrize("learning_rate", [1.0, 1e9, 1e18])
    def test_large_learning_rate_gives_numbers_or_says_so(
        self, engine: Engine, learning_rate: float, model: str
    ) -> None:
        run = make_run(
            64, 16, 4, 5, model=model, learning_rate=learning_rate, check_every=100, max_steps=200
        )
        (given,) = engine.train([run])
        if given.stop_reason == "diverged":
            assert given.score is None
        else:
            assert given.score is not None
            assert np.isfinite(given.score)
            (weights,) = engine.weights_after([run], given.steps)
            assert np.isfinite(flat(weights)).all()

    @engines
    @pytest.mark.parametrize("sharpness", [1e-3, 1e4])
    def test_softmax_at_other_sharpness(self, engine: Engine, sharpness: float) -> None:
        run = make_run(64, 16, 4, 5, model="softmax", sharpness=sharpness)
        (given,) = engine.weights_after([run], 50)
        (expected,) = ReferenceEngine().weights_after([run], 50)
        assert_close(given, expected)
        assert np.isfinite(flat(engine.weights_after([run], 300)[0])).all()

    def test_softmax_of_extreme_logits_is_finite(self) -> None:
        lane = Lane(make_run(64, 16, 4, 5, model="softmax"))
        W = lane.theta.W
        W *= np.float32(1e9)
        lane.advance(1)
        attention = lane.workspace.attention.reshape(4, 16, 16)
        np.testing.assert_allclose(attention.sum(1), 1, rtol=1e-6)
        assert lane.is_finite()
