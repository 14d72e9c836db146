"""The compiled score of a check: its value, and how little of it is computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from rgr_dist.engines.fused.lane import Lane
from rgr_dist.engines.fused.scoring import Scorer
from rgr_dist.models.max_heads import score_contexts
from tests.engines.shapes import flat, make_run


def trained_lane() -> Lane:
    lane = Lane(make_run(64, 16, 4, 5, seed=1))
    lane.advance(300)
    return lane


@pytest.mark.parametrize("by_pairs", [True, False])
@pytest.mark.parametrize(
    "shape",
    [(64, 16, 4, 5, 16), (300, 17, 3, 1, 5), (23, 33, 5, 4, 23), (70, 12, 2, 9, 70)],
)
def test_score_is_that_of_the_reference(shape: tuple[int, ...], by_pairs: bool) -> None:
    run = make_run(*shape, validation_contexts=60)
    lane = Lane(run)
    lane.advance(400)
    weights = lane.weights()

    def expected(contexts: np.ndarray[Any, np.dtype[np.int32]]) -> float:
        return score_contexts(
            torch.from_numpy(contexts).long(),
            torch.from_numpy(lane.task.targets),
            torch.from_numpy(lane.task.embedding).float(),
            torch.from_numpy(np.ascontiguousarray(weights.W_Q)),
            torch.from_numpy(np.ascontiguousarray(weights.W_K)),
            torch.tensor(weights.tau, dtype=torch.float32),
            run.h,
        )

    for contexts in (lane.task.validation, lane.task.validation[:1]):
        scorer = Scorer(lane, contexts, by_pairs)
        assert scorer.score() == pytest.approx(expected(contexts), abs=2e-3)


def test_pairs_and_contexts_agree() -> None:
    lane = trained_lane()
    by_pairs = Scorer(lane, lane.task.validation, by_pairs=True)
    by_contexts = Scorer(lane, lane.task.validation, by_pairs=False)
    assert by_pairs.score() == by_contexts.score()
    assert by_pairs.errors.sum() == by_contexts.errors.sum()


def test_training_goes_on_as_if_it_had_not_been_scored() -> None:
    for shape in ((64, 16, 4, 5), (23, 33, 5, 4, 5)):
        scored, quiet = Lane(make_run(*shape)), Lane(make_run(*shape))
        for lane in (scored, quiet):
            lane.advance(50)
        for by_pairs in (True, False):
            Scorer(scored, scored.task.validation, by_pairs).score()
        for lane in (scored, quiet):
            lane.advance(50)
        assert flat(scored.weights()).tobytes() == flat(quiet.weights()).tobytes()


@pytest.mark.parametrize("by_pairs", [True, False])
def test_a_look_is_cut_short_only_where_the_answer_is_no(by_pairs: bool) -> None:
    lane = trained_lane()
    scorer = Scorer(lane, lane.task.validation, by_pairs)
    exact = scorer.score()
    assert exact is not None
    assert 0 < exact < 0.9
    assert scorer.score(above=0.995) is None
    assert scorer.score(above=exact - 1e-9) == exact
    assert scorer.score(above=0.0) == exact
    assert scorer.score() == exact


@pytest.mark.parametrize("by_pairs", [True, False])
def test_what_was_wrong_comes_first_and_no_more_is_looked_at_than_needed(by_pairs: bool) -> None:
    lane, above = trained_lane(), 0.995
    scorer = Scorer(lane, lane.task.validation, by_pairs)
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
