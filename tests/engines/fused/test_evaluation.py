"""The compiled score of a check: its value, and how little of it is computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from rgr_dist.engines.fused.engine import EdgeLane
from rgr_dist.engines.fused.evaluation import (
    ErrorByContexts,
    F1ByContexts,
    F1ByPairs,
    make_scorer,
)
from rgr_dist.engines.reference import ReferenceEngine
from rgr_dist.study.run import Run
from tests.engines.shapes import SHAPES, by_shape, runs_of, same

kinds = pytest.mark.parametrize("kind", [F1ByPairs, F1ByContexts])


def trained_lane() -> EdgeLane:
    lane = EdgeLane(make_run(64, 16, 4, 5, seed=1))
    lane.advance(300)
    return lane


def make_run(
    m: int, d_model: int, h: int, d_k: int, length: int = 16, seed: int = 0, **keys: Any
) -> Run:
    (run,) = runs_of((m, d_model, length, h, d_k), (seed,), **keys)
    return run


SCORERS = [
    by_shape(model, kind, name)
    for model, kind in (
        ("max", F1ByPairs), ("max", F1ByContexts), ("softmax", make_scorer), ("value", make_scorer)
    )
    for name, shape in SHAPES.items()
    if model != "value" or len(shape) == 5
]  # fmt: skip


@pytest.mark.parametrize(("model", "kind", "name"), SCORERS)
def test_score_is_that_of_the_reference(model: str, kind: Any, name: str) -> None:
    (run,) = runs_of(SHAPES[name], (1,), model, validation_contexts=60)
    lane, oracle = EdgeLane(run), ReferenceEngine().lane(run)
    lane.advance(300)
    theta = {name: torch.from_numpy(np.asarray(value)) for name, value in lane.weights().items()}
    if model == "value":
        del theta["tau"]
    tolerance = {"rel": 1e-5} if model == "value" else {"abs": 2e-3}
    expected = pytest.approx(oracle.task.check(theta, None), **tolerance)
    scorer = kind(lane, lane.task.validation)
    assert scorer.score() == expected
    assert scorer.score(above=0.0) == scorer.score()


def test_pairs_and_contexts_agree() -> None:
    lane = trained_lane()
    by_pairs = F1ByPairs(lane, lane.task.validation)
    by_contexts = F1ByContexts(lane, lane.task.validation)
    assert by_pairs.score() == by_contexts.score()
    assert by_pairs.errors.sum() == by_contexts.errors.sum()


def test_training_goes_on_as_if_it_had_not_been_scored() -> None:
    for shape in ((64, 16, 4, 5), (23, 33, 5, 4, 5)):
        scored, quiet = EdgeLane(make_run(*shape)), EdgeLane(make_run(*shape))
        for lane in (scored, quiet):
            lane.advance(50)
        for kind in (F1ByPairs, F1ByContexts):
            kind(scored, scored.task.validation).score()
        for lane in (scored, quiet):
            lane.advance(50)
        assert same(scored.weights(), quiet.weights())


@kinds
def test_a_look_is_cut_short_only_where_the_answer_is_no(kind: type) -> None:
    lane = trained_lane()
    scorer = kind(lane, lane.task.validation)
    exact = scorer.score()
    assert exact is not None
    assert 0 < exact < 0.9
    assert scorer.score(above=0.995) is None
    assert scorer.score(above=exact - 1e-9) == exact
    assert scorer.score(above=0.0) == exact
    assert scorer.score() == exact


@kinds
def test_what_was_wrong_comes_first_and_no_more_is_looked_at_than_needed(kind: type) -> None:
    lane, above = trained_lane(), 0.995
    scorer = kind(lane, lane.task.validation)
    scorer.score()
    wrong = scorer.errors.copy()
    scorer.errors *= 1000  # whatever is looked at again loses this factor
    assert scorer.score(above) is None
    seen = scorer.errors == wrong
    seen &= wrong > 0
    assert 0 < seen.sum() < (wrong > 0).sum()
    assert wrong[seen].min() >= wrong[~seen].max()
    needed = 2 * scorer.actual * (1 / above - 1)
    assert wrong[seen].sum() - wrong[seen].min() < needed <= wrong[seen].sum()


def test_where_no_message_is_retrieved_the_error_is_zero() -> None:
    lane = EdgeLane(make_run(64, 16, 4, 5, 2, model="value"))
    pi = lane.task.targets
    apart = [(i, j) for i in range(64) for j in range(64) if not {pi[i], pi[j]} & {i, j}]
    contexts = np.array([pair for pair in apart if pair[0] != pair[1]], dtype=np.int32)
    assert len(contexts)
    assert ErrorByContexts(lane, contexts).score() == 0.0


def test_a_softmax_check_ends_early_only_where_the_answer_is_no() -> None:
    lane = EdgeLane(make_run(64, 16, 4, 8, model="softmax"))
    lane.advance(3000)
    scorer = make_scorer(lane, lane.task.validation)
    exact = scorer.score()
    assert exact is not None
    assert 0.1 < exact < 0.9
    assert scorer.score(above=0.995) is None
    assert scorer.score(above=exact - 1e-9) == exact
