"""Arms that are any settings, with a cost of their own: against trying every value of each."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rgr_dist.search.old_portfolio import Portfolio
from rgr_dist.search.probe_verdict import SeedTest
from rgr_dist.search.protocol import CellPlan
from tests.search.oracles import step
from tests.search.simulated_cells import SimulatedCell, Workers, cell_of, everything, search


@st.composite
def settings_with_costs(draw: st.DrawFn, **fixed: Any) -> SimulatedCell:
    """Up to six settings on axes with gaps; costs rise with the value, each at its own pace."""
    steps = st.lists(st.integers(1, 9), min_size=1, max_size=12)
    axes, price, thresholds = {}, {}, {}
    for arm in range(1, draw(st.integers(1, 6)) + 1):
        gaps = draw(steps)
        axes[arm] = [sum(gaps[: n + 1]) for n in range(len(gaps))]
        cost = draw(st.floats(0.001, 1000))
        for value in axes[arm]:
            price[arm, value] = cost
            cost *= draw(st.sampled_from([1.0, 1.01, 1.1, 2.0, 50.0]))
        thresholds[arm] = draw(st.sampled_from([*axes[arm], axes[arm][-1] + 1]))
    keep = draw(st.sampled_from([None, 0.0, 0.1, 1.0]))
    plan = CellPlan(
        "cell",
        axes,
        guess_cost=draw(st.floats(0.0001, 1e5)),
        cost=lambda arm, value: price[arm, value],
        **{"keep_within": keep, "intervals": False, **fixed},
    )
    return SimulatedCell(plan, SeedTest(0.99, 2), step(thresholds))


def expected(cell: SimulatedCell) -> dict[int, tuple[str, int | None]]:
    """Status and value of every arm: pruned is what costs more than the margin and one step."""
    plan, rows = cell.plan, {}
    found = {arm: value for arm in plan.axes if (value := cell.threshold(arm)) is not None}
    best = min((plan.cost_of(arm, value) for arm, value in found.items()), default=None)
    for arm, axis in plan.axes.items():
        within = list(axis)
        if best is not None and plan.keep_within is not None:
            most = Fraction(best) * (1 + Fraction(str(plan.keep_within)))
            cheap = [value for value in axis if plan.cost_of(arm, value) <= best]
            near = [value for value in axis if plan.cost_of(arm, value) <= most]
            within = max(near, list(axis)[: len(cheap) + 1] if cheap else [], key=len)
        if found.get(arm) in within:
            rows[arm] = ("found", found[arm])
        else:
            rows[arm] = ("censored" if within == list(axis) else "pruned", None)
    return rows


@settings(max_examples=60)
@given(settings_with_costs(), st.integers(1, 5), st.integers(0, 2**32))
def test_the_threshold_of_every_setting_and_the_best_by_cost(
    cell: SimulatedCell, slots: int, seed: int
) -> None:
    portfolio = Portfolio([cell.plan], cell.test, slots, look_ahead=8)
    Workers(portfolio, [cell], random.Random(seed)).run()
    state, plan = portfolio.state("cell"), cell.plan
    results = {arm: state.result(arm) for arm in plan.axes}
    assert {arm: (r.status, r.value) for arm, r in results.items()} == expected(cell)
    costs = {arm: plan.cost_of(arm, r.value) for arm, r in results.items() if r.value}
    assert {arm: r.cost for arm, r in results.items() if r.value} == costs
    if costs:
        assert state.best is not None
        assert (state.best.cost, state.best.arm) == min((cost, arm) for arm, cost in costs.items())


def test_a_margin_spares_the_probes_of_dear_settings() -> None:
    def cost(arm: int, value: int) -> float:
        return 1.5 * arm + value

    free = cell_of({1: 64, 2: 64, 9: 64}, step({1: 40, 2: 20, 9: 30}), cost=cost, keep_within=None)
    kept = replace(free, plan=replace(free.plan, keep_within=0.1))
    runs = {cell.plan.keep_within: len(search(cell)[0].used) for cell in (free, kept)}
    assert runs[0.1] < runs[None] - 5
    state = search(kept)[0]
    assert state.best is not None
    assert (state.best.arm, state.best.value, state.best.cost) == (2, 20, 23.0)
    pruned = state.result(1)
    assert (pruned.status, pruned.cost_low) == ("pruned", 1.5 + 24)
    assert "near the best, cost = 23 (" in pruned.because


# ----- Probes that cannot be run


@st.composite
def partly_unrunnable(draw: st.DrawFn, holes: bool) -> tuple[SimulatedCell, set[tuple[int, int]]]:
    """Arms of which the smallest or the largest values cannot be run, or both and any others."""
    limits = {arm: draw(st.integers(1, 40)) for arm in range(1, draw(st.integers(1, 3)) + 1)}
    bad: set[tuple[int, int]] = set()
    for arm, limit in limits.items():
        small, large = draw(st.integers(0, limit)), draw(st.integers(1, limit + 1))
        if not holes:
            small, large = draw(st.sampled_from([(small, limit + 1), (0, large)]))
        bad |= {(arm, value) for value in range(1, limit + 1) if value <= small or value >= large}
        if holes:
            bad |= {(arm, value) for value in draw(st.sets(st.integers(1, limit)))}
    thresholds = {arm: draw(st.integers(1, limit + 1)) for arm, limit in limits.items()}
    good = step(thresholds)
    fixed = {"guess_cost": draw(st.floats(0.1, 100)), "guess_arm": 1.0, "unrunnable": "fail"}
    fixed["keep_within"] = draw(st.sampled_from([None, 0.1])) if not holes else None
    cell = cell_of(
        limits, lambda arm, value, seed: None if (arm, value) in bad else good(arm, value, seed),
        **fixed,
    )  # fmt: skip
    return cell, bad


def run(cell: SimulatedCell, slots: int = 1, seed: int = 0) -> Portfolio:
    portfolio = Portfolio([cell.plan], cell.test, slots, look_ahead=8)
    return Workers(portfolio, [cell], random.Random(seed)).run().portfolio


@settings(max_examples=60)
@given(partly_unrunnable(holes=False), st.integers(1, 4), st.integers(0, 2**32))
def test_values_too_small_or_too_large_to_be_run_hide_no_threshold(
    drawn: tuple[SimulatedCell, set[tuple[int, int]]], slots: int, seed: int
) -> None:
    cell, bad = drawn
    portfolio = run(cell, slots, seed)
    assert everything(portfolio) == everything(run(cell))
    state, least = portfolio.state("cell"), []
    for arm, axis in cell.plan.axes.items():
        passing = [d for d in axis if (arm, d) not in bad and cell.passes(arm, d)]
        least += [arm * d for d in passing[:1]]
        result = state.result(arm)
        if cell.plan.keep_within is None:
            assert (result.status, result.value) == (
                ("found", passing[0]) if passing else ("censored", None)
            )
        if result.status == "found":
            below = (arm, result.value - 1) in bad
            assert (result.failed is None) == (below or result.value == 1)
            assert ("could not be run" in result.because) == below
    assert (state.best.cost if state.best else None) == min(least, default=None)


@settings(max_examples=40)
@given(partly_unrunnable(holes=True))
def test_with_holes_what_is_found_still_passes_above_a_fail(
    drawn: tuple[SimulatedCell, set[tuple[int, int]]],
) -> None:
    cell, bad = drawn
    state = run(cell).state("cell")
    for arm in cell.plan.axes:
        result = state.result(arm)
        assert result.status in ("found", "censored")
        if result.value is not None:
            assert (arm, result.value) not in bad
            assert cell.passes(arm, result.value)
            below = result.value - 1
            assert not below or (arm, below) in bad or not cell.passes(arm, below)


def test_what_could_not_be_run_is_told() -> None:
    cell = cell_of({1: 8}, lambda arm, value, seed: None if value > 2 else 0.5, unrunnable="fail")
    result = run(cell).state("cell").result(1)
    assert (result.status, result.failed) == ("censored", None)
    told = "no pass up to the largest value allowed, 8; could not be run at value = "
    assert result.because.startswith(told)
    cell = cell_of({1: 8}, lambda arm, v, seed: None if v > 4 else float(v >= 3), unrunnable="fail")
    state = run(cell).state("cell")
    assert [(d.value, d.verdict, d.reason) for d in state.decisions] == [
        (8, "open", "look for a first pass at cost near 16"),
        (5, "open", "look below 8, which could not be run"),
        (3, "pass", "look below 5, which could not be run"),
        (1, "fail", "walk down: passes at 3, no fail known below"),
        (2, "fail", "bisect: fails at 1, passes at 3"),
    ]
    assert state.result(1).because == "passes at value = 3, fails at 2"
