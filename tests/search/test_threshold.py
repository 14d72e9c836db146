"""One cell's search against trying every value of every arm."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rgr_dist.search.seed_test import SeedTest
from rgr_dist.search.threshold import Key, Plan, ProbeResult, Search
from tests.oracles.search_table import (
    SimulatedCell,
    drawn_cell,
    lagging_cells,
    noisy_cells,
    plans,
    rising_cells,
    rows,
    search,
    sharp_cells,
    step,
    work,
)

MONOTONE = st.one_of(sharp_cells(), rising_cells(), lagging_cells())
ANY = st.one_of(MONOTONE, noisy_cells())


def cell_of(limits: dict[int, int], score: object, seeds: int = 2, **plan: object) -> SimulatedCell:
    """A cell with every value from 1 to each arm's limit."""
    axes = {arm: range(1, limit + 1) for arm, limit in limits.items()}
    options = {"guess": (2.0, 16.0), "intervals": False} | plan
    return SimulatedCell(Plan(axes, SeedTest(0.99, seeds), **options), score)


@settings(max_examples=100)
@given(MONOTONE)
def test_the_search_finds_what_trying_every_value_finds(cell: SimulatedCell) -> None:
    assert rows(search(cell)) == cell.table()


@pytest.mark.slow
@pytest.mark.parametrize("thousand", range(5))
def test_five_thousand_cells_are_found_as_by_trying_every_value(thousand: int) -> None:
    for number in range(1000 * thousand, 1000 * (thousand + 1)):
        cell = drawn_cell(number)
        assert rows(search(cell)) == cell.table(), f"drawn_cell({number})"


@given(ANY)
def test_a_found_threshold_is_certified_by_a_pass_and_a_fail_beside_it(cell: SimulatedCell) -> None:
    found = search(cell)
    for arm in cell.plan.axes:
        result = found.result(arm)
        if result.status != "found":
            assert result.passed is None
            continue
        assert result.passed.value == result.value
        assert cell.passes(arm, result.value)
        assert (result.failed is None) == (result.value == 1)
        if result.failed is not None:
            assert result.failed.value == result.value - 1
            assert not cell.passes(arm, result.value - 1)
        for above in result.fails_above:
            assert above > result.value
            assert not cell.passes(arm, above)
        for probe in filter(None, (result.passed, result.failed)):
            scores = [cell.score(arm, probe.value, seed) for seed in range(probe.n_seeds)]
            assert probe.mean_score == pytest.approx(sum(scores) / len(scores))


@given(noisy_cells(intervals=True, keep_within=None))
def test_each_end_of_an_interval_has_a_certificate_however_rough_the_means(
    cell: SimulatedCell,
) -> None:
    found = search(cell)
    best = found.best()
    if best is None or cell.test.seeds == 1:
        return
    result, axis = found.result(best.arm), cell.plan.axes[best.arm]
    known = {value: found.scores(Key(best.arm, value), "every seed") for value in axis}
    assert result.low <= best.value
    if result.low > axis[0]:
        below = axis[axis.index(result.low) - 1]
        assert not cell.test.interval_reaches(known[below])[0]
    if result.high is not None:
        assert cell.test.interval_reaches(known[result.high])[1]


def test_a_mean_that_hangs_about_the_target_does_not_cost_a_probe_at_every_value() -> None:
    """A mean that creeps through the target over hundreds of values, under the seeds' spread."""

    def hanging(arm: int, value: int, seed: int) -> float:
        return round(min(1.0, 0.985 + value * 2e-5 + (seed - 1) * 0.002), 6)

    found = search(cell_of({1: 900}, hanging, seeds=3, guess=(1.0, 256.0), intervals=True))
    result = found.result(1)
    assert (result.low, result.high) == (2, 499)
    asked = [one for one in found.decisions if one.need.want == "every seed"]
    assert len(asked) <= 45  # of 747


def test_a_margin_counts_exactly_at_its_edge() -> None:
    """10 % above 20 is 22, which binary floating point would put just above."""
    cell = cell_of({1: 40, 2: 20, 11: 9}, step({1: 20, 2: 11, 11: 3}), keep_within=0.1)
    found = search(cell)
    results = [found.result(arm) for arm in (1, 2, 11)]
    assert [(one.status, one.value) for one in results] == [
        ("found", 20),
        ("found", 11),
        ("pruned", None),
    ]
    assert results[2].low == 3


@settings(max_examples=60)
@given(sharp_cells(), st.data())
def test_more_evidence_than_the_search_asks_for_changes_nothing(
    cell: SimulatedCell, data: st.DataObject
) -> None:
    found = search(cell)
    evidence = {key: dict(scores) for key, scores in found.evidence.items()}
    for arm, axis in cell.plan.axes.items():
        for value in data.draw(st.sets(st.sampled_from(axis), max_size=5)):
            scores = evidence.setdefault(Key(arm, value), {})
            scores.update({seed: cell.score(arm, value, seed) for seed in cell.test.in_order})
            scores[99] = 0.123  # a store may hold more seeds than a study asks for
    richer = Search(cell.plan, evidence)
    assert richer.is_done
    assert richer.decisions == found.decisions
    assert rows(richer) == rows(found)


@settings(max_examples=40)
@given(sharp_cells(intervals=False, keep_within=None))
def test_a_grid_of_every_value_finds_every_threshold(cell: SimulatedCell) -> None:
    gridded = replace(cell, plan=replace(cell.plan, every_value=True))
    found = search(gridded)
    probed = {(one.need.key, len(one.scores)) for one in found.decisions}
    every = {Key(arm, value) for arm, axis in cell.plan.axes.items() for value in axis}
    assert probed == {(key, cell.test.seeds) for key in every}
    assert rows(found) == cell.table()


@given(
    st.sets(st.integers(1, 10_000), min_size=1, max_size=40).map(sorted),
    st.data(),
)
def test_any_increasing_integers_are_searched_like_trying_each(
    axis: list[int], data: st.DataObject
) -> None:
    threshold = data.draw(st.integers(1, axis[-1] + 1), "threshold")
    guess = (1.0, data.draw(st.floats(0.1, 20_000), "guess"))
    plan = Plan({1: axis}, SeedTest(0.99, 2), guess, intervals=data.draw(st.booleans()))
    cell = SimulatedCell(plan, step({1: threshold}))
    found = search(cell)
    assert rows(found) == cell.table()
    assert {key.value for key in found.evidence} <= set(axis)


@settings(max_examples=40)
@given(rising_cells(keep_within=None, intervals=False))
def test_an_error_to_be_small_is_the_mirror_of_a_score_to_be_large(cell: SimulatedCell) -> None:
    """An error of 1 - s against 1 - target has the same thresholds."""

    def error(arm: int, value: int, seed: int) -> float:
        return float(1 - Fraction(str(cell.score(arm, value, seed))))

    test = replace(cell.test, target=0.01, minimise=True, low=0.0, high=None)
    mirror = SimulatedCell(replace(cell.plan, test=test), error)
    assert rows(search(mirror)) == mirror.table() == rows(search(cell))


# ----- thresholds that must pass on fresh seeds too

CONFIRM = 4


@dataclass(frozen=True)
class ConfirmedCell(SimulatedCell):
    """Each winner must pass on fresh seeds: one that does not is a fail, and the next best wins.

    So must each arm's threshold where every arm is searched to its end.
    """

    @cached_property
    def refuted(self) -> frozenset[tuple[int, int]]:
        """What passes on the first seeds, and does not on the fresh ones where these are asked."""
        refuted: set[tuple[int, int]] = set()
        fresh = self.test.on_fresh(self.plan.confirm_seeds)
        while True:
            known = [
                next((arm, v) for v in axis if super(ConfirmedCell, self).passes(arm, v)
                     and (arm, v) not in refuted)
                for arm, axis in self.plan.axes.items()
                if any(super(ConfirmedCell, self).passes(arm, v) and (arm, v) not in refuted
                       for v in axis)
            ]  # fmt: skip
            asked = {one for one in known if self.plan.keep_within is None}
            rank = {one: (one[0] * one[1], self._loss(*one), one[0]) for one in known}
            asked |= {min(known, key=rank.get)} if known else set()
            new = {one for one in asked if not super(ConfirmedCell, self).passes(*one, fresh)}
            if not new:
                return frozenset(refuted)
            refuted |= new

    def passes(self, arm: int, value: int, test: SeedTest | None = None) -> bool:
        return super().passes(arm, value, test) and (arm, value) not in self.refuted


@st.composite
def lucky_cells(draw: st.DrawFn) -> ConfirmedCell:
    """From one value on the first seeds pass, from another on the fresh ones."""
    test = SeedTest(0.99, draw(st.sampled_from([1, 2, 3])))
    plan = draw(plans(test, largest=60, intervals=False, confirm_seeds=CONFIRM))
    first = {arm: draw(st.integers(1, axis[-1] + 2)) for arm, axis in plan.axes.items()}
    later = {arm: first[arm] + draw(st.integers(-3, 4)) for arm in first}

    def score(arm: int, value: int, seed: int) -> float:
        at = first if seed < test.seeds else later
        return 1.0 if value >= at[arm] else (0.7, 0.9)[seed % 2]

    return ConfirmedCell(plan, score)


@settings(max_examples=100)
@given(lucky_cells())
def test_the_winner_passes_on_the_first_and_on_the_fresh_seeds(cell: ConfirmedCell) -> None:
    found = search(cell)
    assert rows(found) == cell.table()
    if best := found.best():
        assert found.confirmed[best]
        assert found.result(best.arm).fresh.n_seeds == CONFIRM
    for arm in cell.plan.axes:
        result = found.result(arm)
        if result.first_value not in (None, result.value) and result.status == "found":
            assert (arm, result.first_value) in cell.refuted


def lucky(arm: int, value: int, seed: int) -> float:
    """4 passes on its first two seeds alone, 5 passes on all."""
    return (1.0 if seed < 2 else 0.9) if value == 4 else float(value >= 5)


def test_a_winner_that_was_lucky_is_a_fail_from_then_on() -> None:
    found = search(cell_of({1: 16}, lucky, guess=(1.0, 4.0), confirm_seeds=3))
    result = found.result(1)
    assert (result.status, result.value, result.first_value) == ("found", 5, 4)
    assert result.passed == ProbeResult(5, 1.0, 2)
    assert result.fresh == ProbeResult(5, 1.0, 3)
    assert result.failed == ProbeResult(4, pytest.approx(0.9), 1)
    assert sorted(found.evidence[Key(1, 4)]) == [0, 1, 2]  # one of the fresh ones settles it


def test_a_winner_refuted_at_the_end_of_its_axis_is_censored() -> None:
    result = search(cell_of({1: 4}, lucky, guess=(1.0, 4.0), confirm_seeds=3)).result(1)
    assert (result.status, result.first_value) == ("censored", 4)
    assert result.fresh == ProbeResult(4, pytest.approx(0.9), 1)


def test_the_best_is_confirmed_alone_and_the_next_best_where_it_is_refuted() -> None:
    """4 is refuted; then two of 3 are the best, and one of 7 is near them, and not asked."""

    def score(arm: int, value: int, seed: int) -> float:
        if (arm, value) == (1, 4):
            return float(seed < 2)
        return float(value >= {1: 7, 2: 3}[arm])

    cell = cell_of({1: 16, 2: 8}, score, guess=(1.0, 4.0), keep_within=0.2, confirm_seeds=3)
    found = search(cell)
    assert found.confirmed == {Key(1, 4): False, Key(2, 3): True}
    near, best = found.result(1), found.result(2)
    assert (best.value, near.value, near.first_value, near.fresh) == (3, 7, 4, near.fresh)
    assert near.fresh.value == 4


@pytest.mark.parametrize("keep_within", [None, 1.0])
def test_a_winner_whose_fresh_seeds_cannot_be_run_is_open_and_the_next_best_confirmed(
    keep_within: float | None,
) -> None:
    def score(arm: int, value: int, seed: int) -> float | None:
        return None if (arm, seed) == (2, 3) else float(value >= {1: 7, 2: 3}[arm])

    cell = cell_of({1: 16, 2: 8}, score, keep_within=keep_within, confirm_seeds=3)
    found = work(cell).run().portfolio.search("cell")
    lost, best = found.result(2), found.best()
    assert (lost.status, lost.value, lost.first_value, lost.high) == ("open", None, 3, 3)
    assert best == Key(1, 7)
    assert found.confirmed[best]


def test_an_interval_whose_run_failed_has_no_end_and_leaves_its_threshold() -> None:
    def score(arm: int, value: int, seed: int) -> float | None:
        return None if (value, seed) == (9, 1) else 0.9 if value < 10 else 0.99 + seed / 1000

    cell = cell_of({1: 40}, score, intervals=True, guess=(1.0, 11.0))
    result = work(cell).run().portfolio.search("cell").result(1)
    assert (result.status, result.value, result.low) == ("found", 10, None)
