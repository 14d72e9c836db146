"""What a search does on request: extra seeds, every arm."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from rgr_dist.search.probe_verdict import SeedTest
from rgr_dist.search.protocol import CellPlan, ProbeKey
from tests.search.oracles import noisy_cells, step
from tests.search.simulated_cells import SimulatedCell, axes_to, rows, search


def test_extra_seeds_settle_a_contradiction_that_was_bad_luck() -> None:
    """Of its first two seeds, value 4 was lucky; with more it fails, and 8 is the threshold."""

    def score(arm: int, value: int, seed: int) -> float:
        if value >= 8:
            return 1.0
        return 0.995 if value == 4 and seed < 2 else (0.96, 0.99)[seed % 2]

    plan = CellPlan("cell", axes_to({1: 16}), 8.0, intervals=True)
    state, _ = search(SimulatedCell(plan, SeedTest(0.99, 2), score))
    assert state.result(1).status == "inconsistent"
    state, evidence = search(SimulatedCell(plan, SeedTest(0.99, 2, extra=6), score))
    assert (state.result(1).status, state.result(1).value) == ("found", 8)
    assert state.result(1).contradiction is None
    assert [len(evidence[ProbeKey(1, d)]) for d in (4, 7)] == [8, 8]
    assert [d.n_seeds for d in state.decisions if d.reason.startswith("retest")] == [8, 8]


def test_a_contradiction_that_stays_is_reported_with_the_extra_seeds() -> None:
    def score(arm: int, value: int, seed: int) -> float:
        return 1.0 if value == 4 or value >= 8 else (0.96, 0.99)[seed % 2]

    plan = CellPlan("cell", axes_to({1: 16}), 8.0, intervals=True)
    state, _ = search(SimulatedCell(plan, SeedTest(0.99, 2, extra=6), score))
    result = state.result(1)
    assert result.status == "inconsistent"
    assert [(probe.value, probe.n_seeds) for probe in result.contradiction] == [(4, 8), (7, 8)]
    assert (result.cost_low, result.cost_high) == (4, 8)


@given(noisy_cells(), st.integers(1, 5))
def test_noise_with_extra_seeds_ends_and_keeps_its_certificates(
    cell: SimulatedCell, extra: int
) -> None:
    noisy = SimulatedCell(cell.plan, replace(cell.test, extra=extra), cell.score)
    state, _ = search(noisy)
    for arm in state.plan.axes:
        result = state.result(arm)
        if result.status == "found":
            assert state.contradiction(arm) is None
        if result.status == "inconsistent":
            assert all(probe.n_seeds == cell.test.seeds + extra for probe in result.contradiction)


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
