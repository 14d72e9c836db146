"""How many trainings a search takes, against plain bisection, and which were in vain."""

from __future__ import annotations

import random
from bisect import bisect_left
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgr_dist.search.tune.question import Question
from rgr_dist.search.tune.score_file import ScoreFile
from rgr_dist.search.tune.setting_search import SettingSearch
from tests.search.driven import ABOUT, ask, drive, found, trainings


def by_bisection(question: Question, score: Any) -> tuple[int | None, int]:
    """Plain bisection that spares seeds as the search does: its answer and its trainings."""
    count = 0

    def passes(value: int) -> bool:
        nonlocal count
        scores: dict[int, float] = {}
        while wave := question.test.next_wave(scores):
            scores |= {seed: score({}, value, seed) for seed in wave}
        count += len(scores)
        return question.test.verdict(scores) == "pass"

    at = bisect_left(question.values, True, key=passes)
    return (question.values[at] if at < len(question.values) else None), count


@given(st.integers(1, 70), st.integers(1, 3), st.integers(0, 99), st.booleans())
def test_with_up_to_three_seeds_and_no_guess_it_trains_what_plain_bisection_trains(
    threshold: int, seeds: int, noise: int, bounded: bool
) -> None:
    def score(_: dict, value: int, seed: int) -> float:
        luck = random.Random(f"{noise} {value} {seed}").random()
        return min(1.0, 0.9 * value / threshold - 0.1 * luck) if value < threshold else 1.0

    options = {"seeds": seeds, "bounds": (0, 1) if bounded else (None, None)}
    result = found(score, **options)
    assert (result.thresholds[0].value, trainings(result)) == by_bisection(ask(**options), score)


@pytest.mark.parametrize(("seeds", "share"), [(5, 0.82), (10, 0.66)])
def test_with_more_seeds_it_takes_fewer_trainings_than_plain_bisection(
    seeds: int, share: float
) -> None:
    taken = plain = 0
    for threshold in range(1, 66):

        def score(_: dict, value: int, seed: int, threshold: int = threshold) -> float:
            return 1.0 if value >= threshold else 0.8 * value / threshold

        result = found(score, seeds=seeds)
        answer, count = by_bisection(ask(seeds=seeds), score)
        assert result.thresholds[0].value == answer
        taken, plain = taken + trainings(result), plain + count
    assert taken < share * plain


def test_what_idle_slots_trained_in_vain_is_counted_apart() -> None:
    def score(_: dict, value: int, seed: int) -> float:
        return float(value >= 40)

    alone, many = found(score), found(score, slots=8)
    (needed,), (ahead,) = alone, many
    assert needed.ahead == 0
    assert ahead.ahead == trainings(many) - trainings(alone) > 0
    assert ahead == replace(needed, scores=ahead.scores)
    search = SettingSearch(ask(), ScoreFile(None, {}))
    search.portfolio.look_ahead = 0
    assert trainings(drive(search, score, slots=8)) == trainings(alone)


def test_what_a_file_brought_was_not_trained_in_vain(tmp_path: Path) -> None:
    def score(_: dict, value: int, seed: int) -> float:
        return float(value >= 40)

    path = tmp_path / "scores.log"
    drive(SettingSearch(ask(seeds=9), ScoreFile(path, ABOUT)), score)
    (fewer,) = drive(SettingSearch(ask(seeds=2), ScoreFile(path, ABOUT)), score)
    assert max(map(len, fewer.scores.values())) == 9
    assert fewer.ahead == 0
    assert "in vain" not in fewer.explain()
