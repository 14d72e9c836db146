"""Which arm is the best: the rule, and the search's own answer against trying every arm."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from rgr_dist.search.best_arm import rank
from rgr_dist.search.probe_verdict import SeedTest
from rgr_dist.search.protocol import CellPlan
from tests.search.oracles import rising_cells, sharp_cells
from tests.search.simulated_cells import SimulatedCell, axes_to, search


def test_cost_comes_before_the_mean_and_the_mean_before_the_arm() -> None:
    arms = [(9, None, 1), (9, 0.9, 2), (9, 0.5, 1), (9, 0.9, 1), (8, 0.2, 4)]
    best_first = [(8, 0.2, 4), (9, 0.9, 1), (9, 0.9, 2), (9, 0.5, 1), (9, None, 1)]
    assert sorted(arms, key=lambda arm: rank(*arm)) == best_first


def test_of_errors_the_smaller_mean_is_the_better_one() -> None:
    assert rank(9, 0.1, 2, minimise=True) < rank(9, 0.5, 1, minimise=True)
    assert rank(9, 0.5, 1, minimise=True) < rank(9, None, 1, minimise=True)


@settings(max_examples=50)
@given(st.one_of(sharp_cells(), rising_cells()))
def test_the_best_arm_is_that_of_trying_every_value(cell: SimulatedCell) -> None:
    state, _ = search(cell)
    costs = {arm: row[1] and arm * row[1] for arm, row in cell.table().items()}
    found = {arm: cost for arm, cost in costs.items() if cost is not None}
    assert (state.best is None) == (not found)
    if state.best is not None:
        assert state.best.cost == min(found.values()) == state.best_cost
        tied = [state.result(arm) for arm, cost in found.items() if cost == state.best.cost]
        assert state.best in tied
        assert all(one.passed.mean_score <= state.best.passed.mean_score for one in tied)


def test_of_arms_that_tie_the_smaller_error_wins() -> None:
    def error(arm: int, value: int, seed: int) -> float:
        return 0.5 if arm * value < 8 else 0.05 if arm == 1 else 0.01

    plan = CellPlan("cell", axes_to({1: 16, 2: 8}), 16.0, intervals=False)
    state, _ = search(SimulatedCell(plan, SeedTest(0.1, 2, minimise=True), error))
    assert {state.result(arm).cost for arm in (1, 2)} == {8}
    assert state.best == state.result(2)
