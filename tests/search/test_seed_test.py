"""The test of one probe: verdicts against exact decimal means, intervals against scipy."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from search.seed_test import SeedTest

TARGETS = [0.01, 0.07, 0.1, 0.29, 0.3, 0.5, 0.57, 0.9, 0.95, 0.97, 0.99, 0.995, 0.999, 1.0]


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


@given(probes())
@example((SeedTest(0.99, 10), [0.99] * 10))
@example((SeedTest(0.99, 4), [0.985, 0.995, 0.98, 1.0]))
@example((SeedTest(0.99, 4), [0.985, 0.995, 0.98, 0.999]))
@example((SeedTest(0.9, 3), [0.7, 1.0, 1.0]))
def test_no_subset_of_the_seeds_contradicts_the_mean_of_all(probe: tuple) -> None:
    test, scores = probe
    full = "pass" if passes(scores, test.target) else "fail"
    for size in range(test.seeds + 1):
        for subset in combinations(range(test.seeds), size):
            known = {seed: scores[seed] for seed in subset}
            assert test.verdict(known) in ((full,) if size == test.seeds else (full, None))


@given(probes(), st.data())
def test_undecided_means_that_the_missing_seeds_could_go_either_way(
    probe: tuple, data: st.DataObject
) -> None:
    test, scores = probe
    known = data.draw(st.sets(st.integers(0, test.seeds - 1)))
    best = [scores[s] if s in known else 1.0 for s in range(test.seeds)]
    worst = [scores[s] if s in known else 0.0 for s in range(test.seeds)]
    expected = {(True, True): "pass", (False, False): "fail", (True, False): None}
    bounds = passes(best, test.target), passes(worst, test.target)
    assert test.verdict({s: scores[s] for s in known}) == expected[bounds]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seeds", [1, 2, 3, 7, 10, 12])
def test_a_mean_exactly_at_the_target_passes_and_one_just_below_fails(
    target: float, seeds: int
) -> None:
    test = SeedTest(target, seeds)
    scores = dict.fromkeys(range(seeds), target)
    assert test.verdict(scores) == "pass"
    assert test.verdict({**scores, seeds - 1: target - 1e-6}) == "fail"


def test_numpy_scores_count_as_the_same_numbers() -> None:
    scores = dict(enumerate(np.full(10, 0.99)))
    assert SeedTest(0.99, 10).verdict(scores) == "pass"


@given(probes(), st.dictionaries(st.integers(100, 110), st.floats(0, 1)))
def test_seeds_beyond_the_count_are_no_evidence(probe: tuple, beyond: dict[int, float]) -> None:
    test, scores = probe
    known = dict(enumerate(scores[:-1]))
    assert test.verdict({**known, **beyond}) == test.verdict(known)
    assert test.interval({**known, **beyond}) == test.interval(known)
    assert test.next_wave({**known, **beyond}) == test.next_wave(known)
    assert not test.is_complete({**known, **beyond})


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
    assert not complete or test.is_complete(known)


def test_a_hopeless_probe_costs_two_seeds_and_a_promising_one_no_extra_wave() -> None:
    test = SeedTest(0.99, 10)
    assert test.next_wave({}) == (0, 1)
    assert test.next_wave({0: 0.9, 1: 0.99}) == ()
    assert test.next_wave({0: 0.98, 1: 0.98}) == (2, 3, 4)
    assert test.next_wave({0: 1.0, 1: 0.99}) == (2, 3, 4, 5, 6, 7, 8, 9)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=12).filter(lambda s: np.ptp(s) > 1e-6))
def test_the_interval_is_scipys(scores: list[float]) -> None:
    expected = stats.t.interval(0.95, len(scores) - 1, np.mean(scores), stats.sem(scores))
    interval = SeedTest(0.99, len(scores)).interval(dict(enumerate(scores)))
    assert interval == pytest.approx(expected, rel=1e-9)


@given(st.floats(0, 1), st.integers(2, 12))
@example(0.1, 3)
@example(0.97, 7)
def test_equal_scores_have_an_interval_of_zero_width(score: float, seeds: int) -> None:
    scores = dict.fromkeys(range(seeds), score)
    assert SeedTest(0.99, seeds).interval(scores) == (score, score)


def test_fewer_than_two_seeds_have_no_interval() -> None:
    assert SeedTest(0.99, 10).interval({}) is None
    assert SeedTest(0.99, 10).interval({3: 0.99}) is None


def test_every_verdict_is_explained_by_its_inequality() -> None:
    test = SeedTest(0.99, 10)
    said = {
        "no seed has run": {},
        "2 seeds lack 0.2000 > 0.1 = n(1 - target): the other 8 cannot": {0: 0.9, 1: 0.9},
        "mean 0.9950 over 2 of 10 seeds: undecided": {0: 0.99, 1: 1.0},
        "mean 0.9950 ≥ 0.99 over all 10 seeds": dict.fromkeys(range(10), 0.995),
        "mean 0.9850 < 0.99 over all 10 seeds": dict.fromkeys(range(10), 0.985),
    }
    for words, scores in said.items():
        assert words in test.explain(scores)
    assert "the other 1 are spared" in SeedTest(0.5, 2).explain({0: 1.0})
