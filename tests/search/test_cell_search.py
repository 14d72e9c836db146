"""One cell's search against trying every value of every arm."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rgr_dist.search.cell_search import replay
from rgr_dist.search.probe_verdict import SeedTest
from rgr_dist.search.protocol import CellPlan, ProbeKey
from tests.search.oracles import (
    drawn_cell,
    lagging_cells,
    noisy_cells,
    rising_cells,
    sharp_cells,
    step,
)
from tests.search.simulated_cells import SimulatedCell, cell_of, rows, search


@given(st.one_of(sharp_cells(), rising_cells(), lagging_cells()))
def test_the_search_finds_what_trying_every_value_finds(cell: SimulatedCell) -> None:
    state, _ = search(cell)
    assert rows(state) == cell.table()


@pytest.mark.slow
@pytest.mark.parametrize("thousand", range(10))
def test_ten_thousand_cells_are_found_as_by_trying_every_value(thousand: int) -> None:
    for number in range(1000 * thousand, 1000 * (thousand + 1)):
        cell = drawn_cell(number)
        state, _ = search(cell)
        assert rows(state) == cell.table(), f"drawn_cell({number})"


@given(st.one_of(sharp_cells(), rising_cells(), lagging_cells(), noisy_cells()))
def test_a_found_threshold_is_certified_by_a_pass_and_a_fail_beside_it(
    cell: SimulatedCell,
) -> None:
    state, evidence = search(cell)
    for arm in cell.plan.axes:
        result = state.result(arm)
        if result.status != "found":
            assert result.passed is None
            continue
        assert result.passed.value == result.value
        assert cell.passes(arm, result.value)
        if result.value == 1:
            assert result.failed is None
            continue
        assert result.failed.value == result.value - 1
        assert not cell.passes(arm, result.value - 1)
        for probe in (result.passed, result.failed):
            scores = evidence[ProbeKey(arm, probe.value)].values()
            assert probe.n_seeds == len(scores)
            assert probe.mean_score == pytest.approx(sum(scores) / len(scores))


@settings(max_examples=40)
@given(st.data(), rising_cells(keep_within=None))
def test_intervals_of_the_best_arm_and_the_kept_ones_alone(
    data: st.DataObject, cell: SimulatedCell
) -> None:
    kept = data.draw(st.frozensets(st.sampled_from(sorted(cell.plan.axes))), "kept")
    plan = replace(cell.plan, intervals="best", keep_arms=kept)
    state, _ = search(replace(cell, plan=plan))
    for arm in plan.axes:
        result = state.result(arm)
        if result.status == "found":
            wanted = arm in kept or arm == state.best.arm
            interval = cell.interval(arm, result.value) if wanted and cell.test.seeds > 1 else None
            assert (result.cost_low, result.cost_high) == (interval or (None, None))


@settings(max_examples=40)
@given(st.one_of(sharp_cells(), rising_cells(), lagging_cells(), noisy_cells()))
def test_the_probes_that_a_search_asked_for_and_their_seeds(cell: SimulatedCell) -> None:
    state, evidence = search(cell)
    assert state.asked == {key: len(scores) for key, scores in evidence.items()}
    unused = {key: {**dict.fromkeys(range(9), 1.0), **known} for key, known in evidence.items()}
    more = replay(cell.plan, cell.test, unused | {ProbeKey(99, 1): {0: 1.0}})
    assert more.asked == state.asked
    grid = replace(cell.plan, every_value=True)
    every = {ProbeKey(arm, value) for arm, axis in grid.axes.items() for value in axis}
    assert replay(grid, cell.test, evidence).asked == dict.fromkeys(every, cell.test.seeds)


def hanging(arm: int, value: int, seed: int) -> float:
    """A mean that creeps through the target over hundreds of values, under the seeds' spread."""
    return round(min(1.0, 0.985 + value * 2e-5 + (seed - 1) * 0.002), 6)


def test_a_mean_that_hangs_about_the_target_does_not_cost_a_probe_at_every_value() -> None:
    cell = cell_of({1: 900}, hanging, seeds=3, guess_cost=256.0, intervals=True)
    state, _ = search(cell)
    result = state.result(1)
    assert (result.cost_low, result.cost_high) == cell.interval(1, result.value) == (2, 499)
    asked = [d.value for d in state.decisions if d.reason.startswith("interval")]
    assert len(asked) <= 45  # of 747
    above = [value for value in asked if value >= result.value]
    assert above[:8] == [result.value + step for step in (0, 1, 2, 3, 4, 5, 6, 8)]


@settings(max_examples=40)
@given(noisy_cells(intervals=True, keep_within=None))
def test_each_end_of_an_interval_has_a_certificate_however_rough_the_means(
    cell: SimulatedCell,
) -> None:
    state, _ = search(cell)
    for arm, axis in cell.plan.axes.items():
        result = state.result(arm)
        if result.status != "found" or cell.test.seeds == 1:
            continue
        at = axis.index(result.value)
        low = axis.index(result.cost_low // arm)
        assert low <= at
        assert low == 0 or not cell.may_reach(arm, axis[low - 1])
        if result.cost_high is not None:
            high = axis.index(result.cost_high // arm)
            assert cell.surely_reaches(arm, axis[high])
            assert high == at or not cell.surely_reaches(arm, axis[high - 1])


def test_a_margin_counts_exactly_at_its_edge() -> None:
    """10 % above 20 is 22, which binary floating point would put just above."""
    cell = cell_of({1: 40, 2: 20, 11: 9}, step({1: 20, 2: 11, 11: 3}), keep_within=0.1)
    state, _ = search(cell)
    assert [state.result(arm).status for arm in (1, 2, 11)] == ["found", "found", "pruned"]
    assert [state.margin(arm) for arm in (1, 2, 11)] == [22, 11, 2]
    assert state.result(11).cost_low == 33


@settings(max_examples=40)
@given(sharp_cells(), st.data())
def test_more_evidence_than_the_search_asks_for_changes_no_row(
    cell: SimulatedCell, data: st.DataObject
) -> None:
    state, evidence = search(cell)
    for arm, axis in cell.plan.axes.items():
        for value in data.draw(st.sets(st.sampled_from(axis), max_size=5)):
            scores = evidence.setdefault(ProbeKey(arm, value), {})
            scores.update(enumerate(cell.scores(arm, value)))
            scores[99] = 0.123  # a store may hold more seeds than a study asks for
    richer = replay(cell.plan, cell.test, evidence)
    assert richer.is_done
    assert [richer.result(arm) for arm in cell.plan.axes] == [
        state.result(arm) for arm in cell.plan.axes
    ]
    assert richer.decisions == state.decisions


def test_seeds_beyond_a_first_look_do_not_change_it() -> None:
    """The first three pass for now; with three more, nothing is certain."""
    scores = [0.995, 0.985, 0.99, 0.97, 0.99, 0.99, 1.0, 1.0]
    cell = cell_of({1: 8}, lambda arm, value, seed: scores[seed] if value >= 4 else 0.5, seeds=8)
    state, evidence = search(cell)
    looked = next(d for d in state.decisions if d.want == "look" and d.verdict == "pass")
    assert looked.n_seeds == 3
    known = {
        key: {s: score for s, score in all_.items() if s < 6} for key, all_ in evidence.items()
    }
    known = replay(cell.plan, cell.test, known)
    assert known.decisions
    assert known.decisions == state.decisions[: len(known.decisions)]
    assert all(known.wave(need) for need in known.needs)


@settings(max_examples=30)
@given(sharp_cells(intervals=False, keep_within=None))
def test_a_grid_of_every_value_finds_every_threshold(cell: SimulatedCell) -> None:
    grid = cell.plan.axes
    plan = CellPlan("cell", grid, 1.0, 1.0, keep_within=None, every_value=True)
    gridded = SimulatedCell(plan, cell.test, cell.score)
    state, evidence = search(gridded)
    assert set(evidence) == {ProbeKey(arm, value) for arm, axis in grid.items() for value in axis}
    assert all(len(scores) == cell.test.seeds for scores in evidence.values())
    assert {arm: row[:2] for arm, row in rows(state).items()} == {
        arm: row[:2] for arm, row in cell.table().items()
    }


AXES = st.sets(st.integers(1, 10_000), min_size=1, max_size=40).map(sorted)


@given(AXES, st.data())
def test_any_increasing_integers_are_searched_like_trying_each(
    axis: list, data: st.DataObject
) -> None:
    threshold = data.draw(st.integers(1, axis[-1] + 1), "threshold")
    plan = CellPlan(
        "cell",
        {1: axis},
        guess_cost=data.draw(st.floats(0.1, 20_000), "guess"),
        spread=data.draw(st.floats(1.15, 2), "spread"),
        intervals=data.draw(st.booleans(), "intervals"),
    )
    cell = SimulatedCell(plan, SeedTest(0.99, 2), step({1: threshold}))
    state, evidence = search(cell)
    assert rows(state) == cell.table()
    assert {key.value for key in evidence} <= set(axis)


@settings(max_examples=40)
@given(rising_cells(keep_within=None))
def test_an_error_to_be_small_is_the_mirror_of_a_score_to_be_large(cell: SimulatedCell) -> None:
    """An error of 1 - s against 1 - target has the same thresholds."""

    def error(arm: int, value: int, seed: int) -> float:
        return float(1 - Fraction(str(cell.score(arm, value, seed))))

    test = replace(cell.test, target=0.01, minimise=True, low=0.0, high=None)
    mirror = SimulatedCell(cell.plan, test, error)
    state, _ = search(mirror)
    assert rows(state) == mirror.table()
    assert {arm: row[:2] for arm, row in rows(state).items()} == {
        arm: row[:2] for arm, row in rows(search(cell)[0]).items()
    }
