"""The words of the search: what a plan refuses, and what follows from a probe or an arm."""

from __future__ import annotations

import pytest

from search.protocol import ArmResult, CellPlan, Probe, ProbeKey


def test_a_probe_is_named_by_arm_value_and_budget() -> None:
    probe = Probe("cell", 2, 8, (0, 1), speculative=False, reason="because")
    assert probe.key == ProbeKey(2, 8)


def test_an_arm_costs_its_value_times_the_arm() -> None:
    assert ArmResult(3, "found", 5, None, None, "").cost == 15
    assert ArmResult(3, "open", None, None, None, "").cost is None


def test_the_limit_of_an_arm_is_the_last_of_its_axis() -> None:
    plan = CellPlan("cell", {1: (2, 4, 8), 3: range(1, 5)}, 4.0)
    assert (plan.limit(1), plan.limit(3)) == (8, 4)


@pytest.mark.parametrize("axes", [{1: []}, {1: range(4), 2: range(0)}])
def test_an_empty_axis_is_refused(axes: dict) -> None:
    with pytest.raises(ValueError, match=r"^cell: axes: give every arm at least one value$"):
        CellPlan("cell", axes, 4.0)


@pytest.mark.parametrize(
    "fault", [{"guess_cost": 0.0}, {"guess_cost": -3.0}, {"guess_arm": 0.0}, {"spread": 1.0}]
)
def test_a_plan_that_could_never_end_is_refused(fault: dict[str, float]) -> None:
    with pytest.raises(
        ValueError, match=r"^cell: guesses must be positive, and the spread above 1$"
    ):
        CellPlan("cell", {1: range(1, 9)}, **{"guess_cost": 4.0, **fault})


def test_small_guesses_and_a_small_spread_are_plans() -> None:
    CellPlan("cell", {1: (7,)}, guess_cost=0.01, guess_arm=0.01, spread=1.01)
