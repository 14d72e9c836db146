"""One cell at several budgets: each has the thresholds that trying every value finds."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rgr_dist.search.old_portfolio import Portfolio
from rgr_dist.search.probe_verdict import SeedTest
from rgr_dist.search.protocol import Budget, CellPlan, Probe, ProbeKey
from tests.search.oracles import plans
from tests.search.simulated_cells import SimulatedCell, Workers, axes_to, table

TEST = SeedTest(0.99, 3)


def chained(plan: CellPlan, count: int) -> list[CellPlan]:
    """The plan at so many budgets: the smallest first, then the largest, then downwards."""
    names = [f"budget {at}" for at in range(count)]
    chain = [replace(plan, cell=name, budget=Budget(name)) for name in names]
    for at in range(1, count - 1):
        chain[at] = replace(chain[at], budget=Budget(names[at], longer=names[at + 1]))
    if count > 1:
        chain[-1] = replace(chain[-1], budget=Budget(names[-1], shorter=names[0]))
    return chain


@st.composite
def families(draw: st.DrawFn) -> list[SimulatedCell]:
    """A cell whose thresholds fall with the budget; a threshold beyond a limit never passes."""
    plan = draw(plans(largest=60, intervals=False))
    if draw(st.booleans()):
        plan = replace(plan, keep_arms=(next(iter(plan.axes)),))
    count = draw(st.integers(1, 4))
    thresholds = {arm: draw(st.integers(1, axis[-1] + 3)) for arm, axis in plan.axes.items()}
    cells = []
    for one in reversed(chained(plan, count)):  # the largest budget has the lowest thresholds
        passing = dict(thresholds)

        def score(arm: int, value: int, seed: int, passing: dict[int, int] = passing) -> float:
            return 1.0 if value >= passing[arm] else (0.5, 0.7, 0.9)[seed]

        cells.append(SimulatedCell(one, TEST, score))
        rise = {arm: draw(st.integers(0, 4)) for arm in thresholds}
        thresholds = {arm: value + rise[arm] for arm, value in thresholds.items()}
    return cells


@settings(max_examples=60)
@given(families(), st.integers(1, 5), st.integers(0, 99))
def test_every_budget_has_the_thresholds_of_trying_each_value(
    cells: list[SimulatedCell], slots: int, order: int
) -> None:
    plans = [cell.plan for cell in cells]
    portfolio = Portfolio(plans, TEST, slots)
    Workers(portfolio, cells, random.Random(order)).run()
    for cell in cells:
        assert table(portfolio, cell.plan.cell) == cell.table()


class Sharing(Workers):
    """Workers whose runs tell every smaller budget too, as those of an engine do."""

    def _finish(self, probe) -> None:
        own = [cell.plan.cell for cell in self.cells].index(probe.cell)
        for cell in self.cells[own + 1 :]:  # from the largest budget down
            for seed in probe.seeds:
                score = cell.score(probe.arm, probe.value, seed)
                self.portfolio.tell(cell.plan.cell, probe.arm, probe.value, seed, score)
        super()._finish(probe)


@settings(max_examples=60)
@given(families(), st.integers(1, 3), st.integers(0, 99))
def test_what_longer_runs_tell_saves_probes_and_changes_nothing(
    cells: list[SimulatedCell], slots: int, order: int
) -> None:
    chance = random.Random(order)
    plans = [cell.plan for cell in cells]
    alone, sharing = (Portfolio(plans, TEST, 1) for _ in range(2))
    apart = Workers(alone, cells, random.Random(order)).run()
    together = Sharing(sharing, cells, random.Random(order)).run()
    assert [table(sharing, plan.cell) for plan in plans] == [table(alone, p.cell) for p in plans]
    assert len(together.told) <= len(apart.told)
    many = Portfolio(plans, TEST, slots)
    Sharing(many, cells, chance).run()
    assert [table(many, plan.cell) for plan in plans] == [table(alone, p.cell) for p in plans]


def three_budgets(
    limits: dict[int, int], guess: float, thresholds: tuple[int, int, int]
) -> list[SimulatedCell]:
    """A cell at three budgets, the largest first: arm 1 passes from these on, the others never."""
    plan = CellPlan("cell", axes_to(limits), guess, intervals=False)
    return [
        SimulatedCell(one, TEST, lambda arm, v, seed, at=at: float(v >= at) if arm == 1 else 0.5)
        for at, one in zip(thresholds, chained(plan, 3)[::-1], strict=True)
    ]


def test_a_larger_budget_starts_where_the_smaller_one_passes() -> None:
    """At the smallest 20 passes; the largest probes there first, then the values below."""
    cells = three_budgets({1: 64}, 10.0, (16, 18, 20))
    portfolio = Portfolio([cell.plan for cell in cells], TEST)
    workers = Workers(portfolio, cells).run()
    assert workers.probes[0].cell == "budget 0"
    asked = [
        [(d.value, d.reason) for d in portfolio.state(f"budget {at}").decisions] for at in (1, 2)
    ]
    near = "look for a first pass at cost near {}".format
    assert asked[1][0] == (20, near(20))
    assert asked[0][:2] == [(16, near(16)), (18, near(18))]
    assert [portfolio.state(f"budget {at}").result(1).value for at in range(3)] == [20, 18, 16]


def test_until_the_search_that_it_follows_is_done_a_budget_needs_nothing() -> None:
    plan = CellPlan("large", axes_to({1: 64}), 10.0, budget=Budget(shorter="small"))
    portfolio = Portfolio([plan, CellPlan("small", axes_to({1: 64}), 10.0)], TEST)
    state = portfolio.state("large")
    assert (state.is_waiting, state.is_done, state.needs) == (True, False, ())
    portfolio.tell_failed("small", ProbeKey(1, 10), [0])
    assert not portfolio.is_done


def test_a_budget_whose_longer_one_passes_nowhere_is_censored_by_one_probe_for_each_arm() -> None:
    cells = three_budgets({1: 16, 2: 8}, 4.0, (99, 99, 99))
    portfolio = Portfolio([cell.plan for cell in cells], TEST)
    workers = Sharing(portfolio, cells).run()
    assert {table(portfolio, cell.plan.cell)[1][0] for cell in cells} == {"censored"}
    assert {told[0] for told in workers.told} == {"budget 0", "budget 2"}
    between = [(d.arm, d.value, d.reason) for d in portfolio.state("budget 1").decisions]
    assert between == [(1, 16, "fails at budget 2"), (2, 8, "fails at budget 2")]


def test_what_fails_with_more_steps_is_taken_over_up_to_the_margin() -> None:
    """Arm 1 passes from 10, 11 and 12 on; arm 2 nowhere, and near the best only 6 is asked."""
    cells = three_budgets({1: 16, 2: 8}, 4.0, (10, 11, 12))
    portfolio = Portfolio([cell.plan for cell in cells], TEST)
    Sharing(portfolio, cells).run()
    decided = portfolio.state("budget 1").decisions
    assert [(d.arm, d.value, d.verdict, d.reason) for d in decided] == [
        (1, 10, "fail", "look for a first pass at cost near 10"),
        (1, 11, "pass", "look for a first pass at cost near 12"),
        (2, 6, "fail", "fails at budget 2"),
    ]


@pytest.mark.parametrize("spread", [1.5, math.inf])
@pytest.mark.parametrize("values", [1, 4])
@pytest.mark.parametrize("slots", [1, 4])
def test_what_fails_to_the_end_with_more_steps_is_looked_ahead_of_too(
    spread: float, values: int, slots: int
) -> None:
    """The limit is tried first, and idle slots assume that it passes."""
    axes = {8: range(1, values + 1)}
    longer = CellPlan("longer", axes, 8.0, spread=spread)
    plan = CellPlan("cell", axes, 8.0, spread=spread, budget=Budget("1 step", longer="longer"))
    portfolio = Portfolio([longer, plan], SeedTest(0.9, 3), slots=slots, together=1)
    running: list[Probe] = []
    while True:
        while len(running) < slots and isinstance(probe := portfolio.ask(), Probe):
            running.append(probe)
        if not running:
            break
        probe = running.pop(0)
        portfolio.tell_probe(probe.cell, probe.key, dict.fromkeys(probe.seeds, 0.5))
        portfolio.release(probe)
    assert portfolio.is_done
    assert portfolio.state("cell").result(8).status == "censored"
