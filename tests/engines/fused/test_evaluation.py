"""The compiled score of a check: its value, and how little of it is computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rgr_dist.engines.fused.evaluation import (
    ErrorByContexts,
    ErrorByTriples,
    F1ByContexts,
    F1ByPairs,
    make_scorer,
)
from rgr_dist.engines.fused.lane import Lane
from tests.engines.reference_of import lane_and_reference
from tests.engines.shapes import flat, make_run

kinds = pytest.mark.parametrize("kind", [F1ByPairs, F1ByContexts])


def trained_lane() -> Lane:
    lane = Lane(make_run(64, 16, 4, 5, seed=1))
    lane.advance(300)
    return lane


@pytest.mark.parametrize(
    ("model", "kind"),
    [("max", F1ByPairs), ("max", F1ByContexts), ("softmax", make_scorer), ("value", make_scorer)],
)
@pytest.mark.parametrize(
    "shape",
    [(64, 16, 4, 5), (300, 17, 3, 1, 5), (23, 33, 5, 4, 23), (23, 33, 1, 4, 7), (70, 12, 2, 9, 70)],
    ids=str,
)
def test_score_is_that_of_the_reference(shape: tuple[int, ...], model: str, kind: Any) -> None:
    lane, trainer = lane_and_reference(make_run(*shape, model=model, validation_contexts=60), 300)
    for contexts in (lane.task.validation, lane.task.validation[:1]):
        tolerance = {"rel": 1e-5} if model == "value" else {"abs": 2e-3}
        expected = pytest.approx(trainer.score(contexts), **tolerance)
        assert kind(lane, contexts).score() == expected


def test_pairs_and_contexts_agree() -> None:
    lane = trained_lane()
    by_pairs = F1ByPairs(lane, lane.task.validation)
    by_contexts = F1ByContexts(lane, lane.task.validation)
    assert by_pairs.score() == by_contexts.score()
    assert by_pairs.errors.sum() == by_contexts.errors.sum()


def test_training_goes_on_as_if_it_had_not_been_scored() -> None:
    for shape in ((64, 16, 4, 5), (23, 33, 5, 4, 5)):
        scored, quiet = Lane(make_run(*shape)), Lane(make_run(*shape))
        for lane in (scored, quiet):
            lane.advance(50)
        for kind in (F1ByPairs, F1ByContexts):
            kind(scored, scored.task.validation).score()
        for lane in (scored, quiet):
            lane.advance(50)
        assert flat(scored.weights()).tobytes() == flat(quiet.weights()).tobytes()


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


@pytest.mark.parametrize("shape", [(64, 16, 4, 5), (23, 33, 1, 4, 7)], ids=str)
def test_errors_are_the_same_by_triples_and_by_contexts(shape: tuple[int, ...]) -> None:
    run = make_run(*shape, model="value", validation_contexts=250)
    lane, trainer = lane_and_reference(run, 300)
    expected = trainer.score(lane.task.validation)
    for often, kind in ((True, ErrorByTriples), (False, ErrorByContexts)):
        scorer = make_scorer(lane, lane.task.validation, often)
        assert isinstance(scorer, kind)
        assert scorer.score() == pytest.approx(expected, rel=1e-5)
        assert scorer.score() == pytest.approx(expected, rel=1e-5), "and again"


def test_a_sum_over_triples_does_not_hide_what_is_not_a_number() -> None:
    lane = Lane(make_run(64, 16, 4, 5, model="value"))
    scorer = ErrorByTriples(lane, lane.task.validation)
    W = lane.theta.W
    W *= np.float32(1e18)
    assert not np.isfinite(scorer.score())


@pytest.mark.parametrize("kind", [ErrorByTriples, ErrorByContexts])
def test_where_no_message_is_retrieved_the_error_is_zero(kind: type) -> None:
    lane = Lane(make_run(64, 16, 4, 5, 2, model="value"))
    pi = lane.task.targets
    apart = [(i, j) for i in range(64) for j in range(64) if not {pi[i], pi[j]} & {i, j}]
    contexts = np.array([pair for pair in apart if pair[0] != pair[1]], dtype=np.int32)
    assert len(contexts)
    assert kind(lane, contexts).score() == 0.0


def test_a_softmax_check_ends_early_only_where_the_answer_is_no() -> None:
    lane = Lane(make_run(64, 16, 4, 8, model="softmax"))
    lane.advance(3000)
    scorer = make_scorer(lane, lane.task.validation)
    exact = scorer.score()
    assert exact is not None
    assert 0.1 < exact < 0.9
    assert scorer.score(above=0.995) is None
    assert scorer.score(above=exact - 1e-9) == exact
