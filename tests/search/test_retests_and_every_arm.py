"""What a search does on request: extra seeds, every arm."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from rgr_dist.search.cell_search import replay
from rgr_dist.search.probe_verdict import SeedTest
from rgr_dist.search.protocol import CellPlan, ProbeKey
from tests.search.oracles import noisy_cells, step
from tests.search.simulated_cells import SimulatedCell, axes_to, rows, search


@settings(max_examples=60)
@given(noisy_cells(), st.integers(0, 5))
def test_noise_is_inconsistent_exactly_when_the_last_verdicts_of_its_probes_contradict(
    cell: SimulatedCell, extra: int
) -> None:
    state, _ = search(SimulatedCell(cell.plan, replace(cell.test, extra=extra), cell.score))
    for arm in cell.plan.axes:
        last = {d.value: d.verdict for d in state.decisions if d.arm == arm}
        passed = [value for value, verdict in last.items() if verdict == "pass"]
        failed = [value for value, verdict in last.items() if verdict == "fail"]
        result = state.result(arm)
        contradicts = bool(passed and failed and min(passed) < max(failed))
        assert (result.status == "inconsistent") == contradicts
        if contradicts:
            low, high = (probe.value for probe in result.contradiction)
            if extra:
                assert low < high
                assert (last[low], last[high]) == ("pass", "fail")
                seeds = {probe.n_seeds for probe in result.contradiction}
                assert seeds == {cell.test.seeds + extra}
            else:
                assert (low, high) == (min(passed), max(failed))


@st.composite
def every_arm_cells(draw: st.DrawFn) -> SimulatedCell:
    """Any cell where what passes also passes at a larger value or arm."""
    largest = draw(st.integers(1, 60), "largest cost")
    axes = {arm: range(1, largest // arm + 1) for arm in range(1, largest + 1)}
    least = draw(st.integers(1, largest + 3), "threshold of one arm")
    thresholds = {}
    for arm in axes:
        thresholds[arm] = least
        least = draw(st.integers(1, least)) if draw(st.booleans()) else least
    plan = CellPlan(
        "cell",
        axes,
        guess_cost=draw(st.floats(0.5, 120)),
        guess_arm=draw(st.floats(1, 60)),
        keep_within=draw(st.sampled_from([0.0, 0.1, 0.5])),
        intervals=False,
        every_arm=True,
    )
    return SimulatedCell(plan, SeedTest(0.99, 2), step(thresholds))


@settings(max_examples=25)
@given(every_arm_cells())
def test_every_arm_is_searched_as_by_trying_each(cell: SimulatedCell) -> None:
    state, _ = search(cell)
    assert rows(state) == cell.table()


def test_few_of_all_arms_are_tried() -> None:
    """450 is the best cost, at 50 arms of 9; about one corner of each value is tried."""
    axes = {arm: range(1, 1200 // arm + 1) for arm in range(1, 1201)}
    plan = CellPlan("cell", axes, 400.0, 40.0, intervals=False, every_arm=True)
    cell = SimulatedCell(plan, SeedTest(0.99, 2), lambda arm, d, seed: float(arm >= 50 and d >= 9))
    state, evidence = search(cell)
    assert state.result(50).value == 9
    assert {arm: r[:2] for arm, r in rows(state).items()} == {
        arm: r[:2] for arm, r in cell.table().items()
    }
    assert len(evidence) < 2 * math.sqrt(495) + 25


def test_what_lies_in_the_store_is_not_told_of_an_arm_that_was_never_tried() -> None:
    """The largest arm fails at its limit, which rules out the others."""
    plan = CellPlan("cell", {arm: range(1, 5) for arm in range(1, 9)}, 4.0, every_arm=True)
    plan, test = replace(plan, guess_arm=1.0, intervals=False), SeedTest(0.9, 3)
    state, evidence = search(SimulatedCell(plan, test, lambda arm, value, seed: 0.2))
    (untried, *_) = (arm for arm in plan.axes if arm not in state.tried)
    known = {**evidence, ProbeKey(untried, 4): {0: 1.0}}
    found = replay(plan, test, known).result(untried)
    assert found == state.result(untried)
    assert (found.status, found.failed) == ("censored", None)


def test_a_contradicted_arm_bounds_no_other() -> None:
    """One arm passes by a freak at 5 alone; the cell's threshold is that of the others."""

    def score(arm: int, value: int, seed: int) -> float:
        if arm > 1:
            return float(arm * value >= 24)
        return (0.988, 0.995)[seed % 2] if value == 5 else (0.96, 0.99)[seed % 2]

    plan = CellPlan("cell", axes_to({1: 30, 2: 15, 4: 8}), 5.0, intervals=True)
    state, _ = search(SimulatedCell(plan, SeedTest(0.99, 2, extra=2), score))
    assert state.result(1).status == "inconsistent"
    assert {arm: state.result(arm).value for arm in (2, 4)} == {2: 12, 4: 6}
    assert state.bound == 24
