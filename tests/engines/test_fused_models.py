"""Compiled training of the other models against the paper's loop, alone and beside others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from rgr_dist.engines.fused.errors import ErrorScorer
from rgr_dist.engines.fused.scoring import Scorer

from rgr_dist.engines.api import Engine, Weights
from rgr_dist.engines.fused.engine import FusedEngine
from rgr_dist.engines.fused.lane import Lane
from rgr_dist.engines.lanes.engine import LanesEngine
from rgr_dist.engines.reference.edges import ReferenceEngine, _Trainer
from rgr_dist.study.study import Run
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


class TestScores:
    @staticmethod
    def lane_and_reference(run: Run, steps: int) -> tuple[Lane, _Trainer]:
        """A trained lane, and the reference with its weights."""
        lane, trainer = Lane(run), _Trainer(run, torch.float32)
        lane.advance(steps)
        weights = lane.weights()
        for name in ("W_Q", "W_K"):
            getattr(trainer, name).data = torch.from_numpy(getattr(weights, name))
        trainer.tau.data = torch.tensor(weights.tau, dtype=torch.float32)
        return lane, trainer

    @models
    @pytest.mark.parametrize(
        "shape",
        [(64, 16, 4, 5), (300, 17, 3, 1, 5), (70, 12, 2, 9, 70), (23, 33, 1, 4, 7)],
        ids=str,
    )
    def test_score_is_that_of_the_reference(self, shape: tuple[int, ...], model: str) -> None:
        run = make_run(*shape, model=model, validation_contexts=60)
        lane, trainer = self.lane_and_reference(run, 300)
        for contexts in (lane.task.validation, lane.task.validation[:1]):
            scorer = (ErrorScorer if model == "value" else Scorer)(lane, contexts)
            expected = trainer.score(torch.from_numpy(contexts).long())
            tolerance = {"rel": 1e-5} if model == "value" else {"abs": 2e-3}
            assert scorer.score() == pytest.approx(expected, **tolerance)

    @pytest.mark.parametrize("shape", [(64, 16, 4, 5), (23, 33, 1, 4, 7)], ids=str)
    def test_errors_are_the_same_by_triples_by_pairs_and_by_contexts(
        self, shape: tuple[int, ...]
    ) -> None:
        run = make_run(*shape, model="value", validation_contexts=250)
        lane, trainer = self.lane_and_reference(run, 300)
        by_triples = ErrorScorer(lane, lane.task.validation, often=True)
        by_pairs = ErrorScorer(lane, lane.task.validation)
        by_contexts = ErrorScorer(lane, lane.task.validation[:5])
        ways = [
            (scorer.form.size > 0, scorer.scores.size > 0)
            for scorer in (by_triples, by_pairs, by_contexts)
        ]
        assert ways == [(True, True), (False, True), (False, False)]
        for scorer in (by_triples, by_pairs, by_contexts):
            expected = trainer.score(torch.from_numpy(scorer.contexts).long())
            assert scorer.score() == pytest.approx(expected, rel=1e-5)
            assert scorer.score() == pytest.approx(expected, rel=1e-5), "and again"

    def test_a_sum_over_triples_does_not_hide_what_is_not_a_number(self) -> None:
        lane = Lane(make_run(64, 16, 4, 5, model="value"))
        scorer = ErrorScorer(lane, lane.task.validation, often=True)
        W = lane.theta.W
        W *= np.float32(1e18)
        assert not np.isfinite(scorer.score())

    def test_where_nothing_is_asked_for_the_error_is_zero(self) -> None:
        lane = Lane(make_run(64, 16, 4, 5, 2, model="value"))
        pi = lane.task.targets
        apart = [(i, j) for i in range(64) for j in range(64) if not {pi[i], pi[j]} & {i, j}]
        contexts = np.array([pair for pair in apart if pair[0] != pair[1]], dtype=np.int32)
        assert len(contexts)
        assert ErrorScorer(lane, contexts).score() == 0.0

    def test_a_softmax_check_ends_early_only_where_the_answer_is_no(self) -> None:
        lane = Lane(make_run(64, 16, 4, 8, model="softmax"))
        lane.advance(3000)
        scorer = Scorer(lane, lane.task.validation)
        exact = scorer.score()
        assert exact is not None
        assert 0.1 < exact < 0.9
        assert scorer.score(above=0.995) is None
        assert scorer.score(above=exact - 1e-9) == exact


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
    @pytest.mark.parametrize("learning_rate", [1.0, 1e3, 1e9, 1e15, 1e18])
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
        attention = lane.scratch.attention.reshape(4, 16, 16)
        np.testing.assert_allclose(attention.sum(1), 1, rtol=1e-6)
        assert lane.is_finite()
