"""The test of one probe: verdicts against exact decimal means, intervals against scipy."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from rgr_dist.search.seed_test import SeedTest, t_interval

TARGETS = [0.01, 0.07, 0.1, 0.29, 0.3, 0.5, 0.57, 0.9, 0.95, 0.97, 0.99, 0.995, 0.999, 1.0]
ERROR = SeedTest(0.1, 10, minimise=True)
SCORE = SeedTest(0.99, 10)


def passes(scores: list[float], target: float) -> bool:
    """Whether the mean of numbers as they are written reaches the target as it is written."""
    total = sum(Fraction(str(score)) for score in scores)
    return total / len(scores) >= Fraction(str(target))


@st.composite
def probes(draw: st.DrawFn, least: int = 1, most: int = 7) -> tuple[SeedTest, list[float]]:
    """A test and the scores of all its seeds, many of them near the target."""
    target = draw(st.sampled_from(TARGETS))
    mills = round(1000 * target)
    near = st.integers(max(0, mills - 3), min(1000, mills + 3))
    mill = st.one_of(near, near, st.integers(0, 1000), st.sampled_from([0, 1000, mills]))
    scores = draw(st.lists(mill.map(lambda k: k / 1000), min_size=least, max_size=most))
    return SeedTest(target, len(scores)), scores


@given(probes(most=6))
@example((SeedTest(0.99, 10), [0.99] * 10))
@example((SeedTest(0.99, 4), [0.985, 0.995, 0.98, 1.0]))
@example((SeedTest(0.99, 4), [0.985, 0.995, 0.98, 0.999]))
def test_a_verdict_is_known_once_the_missing_seeds_cannot_change_it(probe: tuple) -> None:
    test, scores = probe
    for size in range(test.seeds + 1):
        for subset in combinations(range(test.seeds), size):
            known = {seed: scores[seed] for seed in subset}
            best, worst = ([known.get(s, end) for s in range(test.seeds)] for end in (1.0, 0.0))
            is_open = passes(best, test.target) and not passes(worst, test.target)
            full = "pass" if passes(scores, test.target) else "fail"
            assert test.verdict(known) == (None if is_open else full)


@given(probes(), st.data(), st.sampled_from([-np.inf, np.inf]))
def test_a_score_counts_to_its_last_bit(probe: tuple, data: st.DataObject, way: float) -> None:
    test, scores = probe
    seed = data.draw(st.integers(0, test.seeds - 1))
    scores[seed] = min(1.0, max(0.0, float(np.nextafter(scores[seed], way))))
    full = "pass" if passes(scores, test.target) else "fail"
    assert test.verdict(dict(enumerate(scores))) == full


@pytest.mark.parametrize(("target", "missing"), [(0.07, 7), (0.57, 57), (0.29, 29), (0.14, 14)])
def test_a_target_times_the_seeds_is_not_rounded(target: float, missing: int) -> None:
    """100 * 0.07 is above 7 in floating point, and 100 * 0.57 below 57."""
    zeros = dict.fromkeys(range(100 - missing), 0.0)
    assert SeedTest(target, 100).verdict(zeros) is None
    assert SeedTest(target, 100).verdict({**zeros, 99: 1 - 1e-15}) == "fail"


@given(probes(), st.dictionaries(st.integers(100, 110), st.floats(0, 1)))
def test_seeds_beyond_the_count_are_no_evidence(probe: tuple, beyond: dict[int, float]) -> None:
    test, scores = probe
    known = dict(enumerate(scores[:-1]))
    assert test.verdict({**known, **beyond}) == test.verdict(known)
    assert test.interval_reaches({**known, **beyond}) == test.interval_reaches(known)
    assert test.next_wave({**known, **beyond}) == test.next_wave(known)


@given(probes(most=12), st.booleans(), st.data())
def test_waves_train_the_missing_seeds_that_they_would_without_any_known_before(
    probe: tuple, complete: bool, data: st.DataObject
) -> None:
    test, scores = probe
    before = data.draw(st.sets(st.integers(0, test.seeds - 1)), "known before")
    known = {seed: scores[seed] for seed in before}
    alone = test.needed(dict(enumerate(scores)), complete)
    while wave := test.next_wave(known, complete):
        assert len(set(wave)) == len(wave)
        assert set(wave) <= set(alone) - set(known)
        known |= {seed: scores[seed] for seed in wave}
    assert test.needed(known, complete) == alone
    assert test.verdict(known) == ("pass" if passes(scores, test.target) else "fail")
    assert not complete or set(known) == set(range(test.seeds))


@given(
    st.lists(st.sampled_from([0.97, 0.985, 0.99, 0.995, 1.0]), min_size=10, max_size=10),
    st.integers(1, 5),
    st.integers(1, 5),
)
def test_no_subset_of_the_fresh_seeds_contradicts_the_mean_of_all(
    drawn: list[float], first: int, fresh: int
) -> None:
    scores = dict(enumerate(drawn))
    test = SeedTest(0.99, first).on_fresh(fresh)
    own = range(first, first + fresh)
    full = "pass" if passes([scores[seed] for seed in own], 0.99) else "fail"
    for size in range(fresh + 1):
        for some in combinations(own, size):
            known = {seed: scores[seed] for seed in (*range(first), *some)}
            assert test.verdict(known) in (None, full)
            assert set(test.next_wave(known)) <= set(own) - set(some)
    assert test.verdict(scores) == full
    assert math.isclose(test.mean(scores), math.fsum(scores[seed] for seed in own) / fresh)


def test_where_one_seed_settles_a_fail_waves_double() -> None:
    test, known, ends = SeedTest(1.0, 30), dict[int, float](), []
    while wave := test.next_wave(known):
        known |= dict.fromkeys(wave, 1.0)
        ends.append(len(known))
    assert ends == [1, 2, 4, 8, 16, 30]
    assert test.verdict(known) == "pass"
    assert test.next_wave({0: 1.0, 1: 0.9999}) == ()
    assert SeedTest(0.0, 3, minimise=True, high=None).next_wave({0: 0.0}) == (1,)


def test_three_seeds_whose_mean_reaches_the_target_pass_for_now() -> None:
    test = SeedTest(0.99, 10)
    first, good = test.at_first, {0: 0.99, 1: 1.0, 2: 0.98}
    assert (first.verdict(good), test.verdict(good)) == ("pass", None)
    assert first.next_wave({0: 0.99}) == (1, 2)
    assert first.next_wave(good) == ()
    assert first.needed(dict.fromkeys(range(10), 1.0)) == dict.fromkeys(range(3), 1.0)
    assert first.verdict({**good, 1: 0.99}) is None
    assert first.next_wave({**good, 1: 0.99}) == (3, 4, 5, 6, 7)  # eight such lack more than 0.1
    assert first.verdict({0: 0.89}) == "fail"
    assert first.verdict({0: 1.0, 1: 1.0}) is None
    assert SeedTest(0.5, 2).at_first.verdict({0: 1.0}) == "pass"  # certain
    loss = SeedTest(1.0, 10, minimise=True, low=None, high=None)
    assert loss.at_first == loss


@given(st.lists(st.floats(0, 1), min_size=2, max_size=12).filter(lambda s: np.ptp(s) > 1e-6))
def test_the_interval_is_scipys(scores: list[float]) -> None:
    expected = stats.t.interval(0.95, len(scores) - 1, np.mean(scores), stats.sem(scores))
    assert t_interval(tuple(scores)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("scores", "interval"),
    [
        ((), None),
        ((0.5,), None),
        ((0.1, 0.1, 0.1), (0.1, 0.1)),
        ((0.5, math.inf, 1.0), (math.inf, math.inf)),
    ],
)
def test_the_interval_of_few_equal_or_infinite_scores(scores: tuple, interval: Any) -> None:
    assert t_interval(scores) == interval


@pytest.mark.parametrize("scores", [{}, {0: 0.8}, {0: 0.99, 1: 1.0}, dict.fromkeys(range(10), 1.0)])
@pytest.mark.parametrize("test", [SCORE, ERROR, replace(SCORE, low=None, high=None)])
def test_every_verdict_is_explained_in_one_line(test: SeedTest, scores: dict[int, float]) -> None:
    words = test.explain(scores)
    assert words
    assert "\n" not in words
    assert not scores or f"{fmean(scores.values()):.4f}" in words


@pytest.mark.parametrize(
    ("test", "scores", "shown"),
    [
        (SCORE, dict.fromkeys(range(10), 1.0), "1.0000 ≥ 0.99 "),
        (SCORE, dict.fromkeys(range(10), 0.98), "0.9800 < 0.99 "),
        (ERROR, dict.fromkeys(range(10), 0.005), "0.005 ≤ 0.1 "),
        (ERROR, dict.fromkeys(range(10), 0.2), "0.2000 > 0.1 "),
        (SCORE, {0: 0.75}, "0.975 < 0.99"),  # if the other nine score 1
        (ERROR, {0: 1.0, 1: 0.5}, "0.15 > 0.1"),
    ],
)
def test_an_explanation_has_the_inequality(
    test: SeedTest, scores: dict[int, float], shown: str
) -> None:
    assert f" {shown}" in f"{test.explain(scores)} "


def test_a_pass_for_now_is_told_from_one_that_is_certain() -> None:
    test = SeedTest(0.25, 4)
    assert test.explain({0: 1.0}) != replace(test, look=1).explain({0: 1.0})
    assert test.explain({0: 0.9}).replace("0.9", "1.0") != test.explain({0: 1.0})


@pytest.mark.parametrize(
    ("score", "bounds"),
    [(1.5, (0.0, 1.0)), (-0.5, (0.0, None)), (2.0, (None, 1.0)), (math.nan, (None, None))],
)
def test_a_score_outside_its_bounds_is_refused(score: float, bounds: tuple) -> None:
    with pytest.raises(ValueError, match=str(score)):
        SeedTest(0.5, 2, low=bounds[0], high=bounds[1]).check(score)


def test_a_run_that_diverged_scores_the_worst_there_is() -> None:
    score, error = SeedTest(0.5, 2), SeedTest(0.5, 2, minimise=True)
    assert (score.worst, error.worst) == (0.0, 1.0)
    assert replace(score, low=None).worst == -np.inf
    assert replace(error, high=None).worst == np.inf


@pytest.mark.parametrize(
    ("scores", "minimise", "may", "surely"),
    [
        ([0.4, 0.6], False, True, False),  # 0.5 ± 1.27
        ([0.60, 0.61], False, True, True),
        ([0.40, 0.41], False, False, False),
        ([0.40, 0.41], True, True, True),
        ([0.60, 0.61], True, False, False),
        ([0.5, 0.5], True, True, True),
        ([0.9], False, False, False),
    ],
)
def test_the_ends_of_the_interval_reach_the_target_or_do_not(
    scores: list[float], minimise: bool, may: bool, surely: bool
) -> None:
    test, known = SeedTest(0.5, 2, minimise), dict(enumerate(scores))
    assert test.interval_reaches(known) == (may, surely)


@pytest.mark.parametrize(
    ("test", "scores", "complete", "wave"),
    [
        (SCORE, {}, False, (0,)),
        (SCORE, {}, True, tuple(range(10))),
        (SCORE, {0: 0.899}, False, ()),  # the other nine cannot save the mean
        (SCORE, {0: 0.95}, False, (1, 2)),  # three such lack more than the 0.1 allowed
        (SCORE, {0: 0.9899}, False, (1, 2, 3, 4, 5, 6, 7, 8, 9)),
        (SCORE, {0: 0.99}, False, (1, 2)),
        (SCORE, {0: 0.98, 1: 0.98}, False, (2, 3, 4, 5)),
        (SCORE, {0: 0.99, 1: 1.0, 2: 0.98}, False, (3, 4, 5, 6, 7, 8, 9)),
        (ERROR, {0: 0.6}, False, (1,)),
        (ERROR, {0: 0.15}, False, (1, 2, 3, 4, 5, 6)),  # seven such exceed the 1 allowed
        (replace(ERROR, low=None, high=None), {}, False, tuple(range(10))),
        (SCORE, {1: 0.98}, False, (0,)),
        (SCORE, {0: 0.98, 1: 0.98, 3: 0.98}, False, (2, 4, 5)),
        (SCORE, {0: 0.9, 1: 0.9}, True, (2, 3, 4, 5, 6, 7, 8, 9)),
        (SeedTest(0.99, 4, high=None), {}, False, (0, 1, 2, 3)),
    ],
)
def test_the_next_wave(test: SeedTest, scores: dict, complete: bool, wave: tuple) -> None:
    assert test.next_wave(scores, complete) == wave


@pytest.mark.parametrize(
    ("test", "scores", "verdict"),
    [
        (SCORE, dict.fromkeys(range(10), np.float64(0.99)), "pass"),
        (SCORE, {3: np.inf}, "fail"),
        # early only where the missing seeds cannot change it, and never without a bound
        (SeedTest(0.5, 2), {0: 1.0}, "pass"),
        (SeedTest(0.5, 2, low=None), {0: 1.0}, None),
        (SeedTest(0.9, 3, high=None), {0: 0.0}, None),
        # of errors a mean at the target passes
        (SeedTest(0.1, 3, minimise=True), {0: 0.1, 1: 0.1, 2: 0.1}, "pass"),
        (SeedTest(0.1, 3, minimise=True), {0: 0.1, 1: 0.1, 2: 0.101}, "fail"),
    ],
)
def test_the_verdict(test: SeedTest, scores: dict[int, float], verdict: str | None) -> None:
    assert test.verdict(scores) == verdict
