"""The words of the search: what a plan refuses, and what follows from a probe or an arm."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rgr_dist.search.protocol import CellPlan

NONE = (None, None)


def test_an_arm_costs_its_value_times_the_arm_unless_the_plan_says_otherwise() -> None:
    axes = {3: (2, 5, 9)}
    plan = CellPlan("cell", axes, 4.0)
    assert (plan.cost_of(3, 5), plan.cost_if_known(3, 10), plan.value_at(3, 27)) == (15, 30, 9)
    own = CellPlan("cell", axes, 4.0, cost=lambda arm, value: 10.0 * arm + value)
    assert (own.cost_of(3, 5), own.cost_if_known(3, 10), own.cost_if_known(3, None)) == (35, *NONE)
    assert [own.value_at(3, cost) for cost in (16, 32, 34.9, 35, 99)] == [1, 2, 2, 5, 9]


def test_near_the_best_is_the_share_or_one_step_of_the_axis() -> None:
    costs = {2: 100.0, 5: 104.0, 9: 112.0, 20: 300.0}
    plan = CellPlan("cell", {1: tuple(costs)}, 4.0, cost=lambda arm, value: costs[value])
    kept = {best: plan.largest_kept(best, 1) for best in (80, 91, 99, 100, 104, 280)}
    assert kept == {80: 0, 91: 2, 99: 5, 100: 5, 104: 9, 280: 21}
    assert replace(plan, keep_within=None).largest_kept(100, 1) is None


def test_every_arm_takes_the_usual_cost() -> None:
    with pytest.raises(ValueError, match=r"^cell: every_arm takes a cost of arm × value$"):
        CellPlan("cell", {1: (7,)}, 4.0, every_arm=True, cost=lambda arm, value: 1.0)


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
