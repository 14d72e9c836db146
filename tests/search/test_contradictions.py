"""A pass below a fail: when the search sees it, and what it says of it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from rgr_dist.search.cell_state import CellState
from rgr_dist.search.protocol import ArmResult
from tests.search.oracles import noisy_cells
from tests.search.simulated_cells import SimulatedCell, cell_of, search


def non_monotone(passing: set[int], **plan: object) -> tuple[ArmResult, CellState]:
    """One arm of limit 16 that passes at these values; a near miss elsewhere."""

    def score(arm: int, value: int, seed: int) -> float:
        return 1.0 if value in passing else (0.96, 0.97)[seed]

    plan = {"guess_cost": 8.0, "guess_arm": 1.0} | plan
    state, _ = search(cell_of({1: 16}, score, **plan))
    return state.result(1), state


def test_a_pass_below_a_fail_is_inconsistent_when_probes_show_it() -> None:
    result, state = non_monotone({4, *range(8, 17)}, intervals=True)
    assert {(d.value, d.verdict) for d in state.decisions} >= {
        (4, "pass"),
        (7, "fail"),
        (8, "pass"),
    }
    assert result.status == "inconsistent"
    assert result.value is None
    below, above = result.contradiction
    assert (below.value, below.mean_score) == (4, 1.0)
    assert (above.value, above.mean_score) == (7, pytest.approx(0.965))
    assert (result.cost_low, result.cost_high) == (4, 8)


def test_a_pass_below_a_fail_that_no_probe_shows_is_not_seen() -> None:
    result, state = non_monotone({2, *range(8, 17)}, intervals=False)
    assert 2 not in {d.value for d in state.decisions}
    assert (result.status, result.value) == ("found", 8)


@settings(max_examples=50)
@given(noisy_cells())
def test_noise_is_inconsistent_exactly_when_a_probed_pass_lies_below_a_fail(
    cell: SimulatedCell,
) -> None:
    state, _ = search(cell)
    for arm in cell.plan.axes:
        passed = [d.value for d in state.decisions if d.arm == arm and d.verdict == "pass"]
        failed = [d.value for d in state.decisions if d.arm == arm and d.verdict == "fail"]
        contradicts = bool(passed and failed and min(passed) < max(failed))
        result = state.result(arm)
        assert (result.status == "inconsistent") == contradicts
        if contradicts:
            shown = [probe.value for probe in result.contradiction]
            assert shown == [min(passed), max(failed)]


def test_a_grid_shows_every_contradiction() -> None:
    cell = cell_of(
        {1: 8}, lambda arm, value, seed: [0.9, 1.0][value in (3, 7, 8)], every_value=True
    )
    state, _ = search(cell)
    assert state.result(1).status == "inconsistent"
    assert [probe.value for probe in state.result(1).contradiction] == [3, 6]
