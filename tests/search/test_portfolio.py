"""Many cells on any number of workers: the order of events changes no row."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from search.portfolio import Portfolio
from search.protocol import CellPlan, Probe, Signal
from search.seed_test import SeedTest
from tests.search.oracles import noisy_cells, rising_cells, sharp_cells
from tests.search.simulated_cells import SimulatedCell, Workers, axes_to, everything, table

ANY = st.one_of(sharp_cells(seeds=3), rising_cells(), noisy_cells())
ORDERS = st.integers(0, 2**32).map(random.Random)


def work(cell: SimulatedCell, slots: int = 1, seed: int = 0, look_ahead: int = 8) -> Workers:
    portfolio = Portfolio([cell.plan], cell.test, slots, look_ahead)
    return Workers(portfolio, [cell], random.Random(seed))


@settings(max_examples=60)
@given(ANY, st.integers(2, 7), st.integers(0, 2**32), st.sampled_from([0, 8, 64]))
def test_slots_order_and_speculation_change_no_row(
    cell: SimulatedCell, slots: int, seed: int, look_ahead: int
) -> None:
    """Every step of ``Workers`` also asserts that no probe runs twice at once, or for nothing."""
    alone = work(cell).run().portfolio
    together = work(cell, slots, seed, look_ahead).run().portfolio
    assert everything(together) == everything(alone)


@settings(max_examples=60)
@given(st.one_of(sharp_cells(), rising_cells()), st.integers(1, 6), st.integers(0, 2**32))
def test_workers_find_what_trying_every_value_finds(
    cell: SimulatedCell, slots: int, seed: int
) -> None:
    assert table(work(cell, slots, seed).run().portfolio, "cell") == cell.table()


@settings(max_examples=60)
@given(ANY, st.integers(1, 5), st.lists(st.integers(0, 12), max_size=4), ORDERS)
def test_a_search_killed_at_any_time_ends_as_if_it_had_not_been(
    cell: SimulatedCell, slots: int, kills: list[int], order: random.Random
) -> None:
    undisturbed = work(cell).run().portfolio
    told: list = []
    for trials in [*kills, None]:
        portfolio = Portfolio([cell.plan], cell.test, slots, look_ahead=8)
        order.shuffle(told)
        for run in told:
            portfolio.tell(*run)
        # ``Workers`` asserts that nothing that was told is trained again.
        told = Workers(portfolio, [cell], order, list(told)).run(trials).told
    assert everything(portfolio) == everything(undisturbed)


@settings(max_examples=40)
@given(ANY, ORDERS, st.data())
def test_order_and_repetition_of_telling_change_nothing(
    cell: SimulatedCell, order: random.Random, data: st.DataObject
) -> None:
    told = work(cell).run().told
    told = told[: data.draw(st.integers(0, len(told)), "told so far")]
    portfolios = []
    for runs in (told, order.sample(told, len(told)), told + told[::-1]):
        portfolio = Portfolio([cell.plan], cell.test)
        for run in runs:
            portfolio.tell(*run)
            if order.random() < 0.3:
                assert portfolio.state("cell").plan == cell.plan  # a look changes nothing either
        portfolios.append(portfolio)
    first, *others = portfolios
    assert [everything(other) for other in others] == [everything(first)] * 2
    assert {other.is_done for other in others} == {first.is_done}


@settings(max_examples=40)
@given(st.lists(sharp_cells(seeds=2), min_size=2, max_size=4), st.integers(1, 6), ORDERS)
def test_cells_that_share_workers_do_not_disturb_each_other(
    cells: list[SimulatedCell], slots: int, order: random.Random
) -> None:
    cells = [
        replace(cell, plan=replace(cell.plan, cell=f"cell {i}")) for i, cell in enumerate(cells)
    ]
    portfolio = Portfolio([cell.plan for cell in cells], cells[0].test, slots, look_ahead=8)
    Workers(portfolio, cells, order).run()
    for cell in cells:
        assert table(portfolio, cell.plan.cell) == cell.table()


@settings(max_examples=60)
@given(sharp_cells(), st.integers(1, 4), st.integers(0, 2**32), st.data())
def test_probes_that_cannot_be_run_leave_their_arm_open_and_the_others_alone(
    cell: SimulatedCell, slots: int, seed: int, data: st.DataObject
) -> None:
    arms = data.draw(st.sets(st.sampled_from(sorted(cell.plan.axes))), "arms that fail")
    faulty = replace(
        cell, score=lambda arm, value, seed: None if arm in arms else cell.score(arm, value, seed)
    )
    found = table(work(faulty, slots, seed).run().portfolio, "cell")
    rest = {arm: axis for arm, axis in cell.plan.axes.items() if arm not in arms}
    expected = replace(cell, plan=replace(cell.plan, axes=rest)).table()
    assert {arm: found[arm] for arm in rest} == expected
    assert all(found[arm][:2] in (("open", None), ("pruned", None)) for arm in arms)


@settings(max_examples=40)
@given(sharp_cells(seeds=2), st.integers(1, 4), st.integers(0, 2**32), st.data())
def test_one_value_that_cannot_be_run_ends_the_search_of_its_arm_alone(
    cell: SimulatedCell, slots: int, seed: int, data: st.DataObject
) -> None:
    arm = data.draw(st.sampled_from(sorted(cell.plan.axes)))
    broken = arm, data.draw(st.sampled_from(cell.plan.axes[arm]))
    faulty = replace(cell, score=lambda *run: None if run[:2] == broken else cell.score(*run))
    workers = work(faulty, slots, seed).run()
    assert everything(workers.portfolio) == everything(work(faulty).run().portfolio)
    if workers.portfolio.state("cell").result(arm).status != "open":
        return
    fixed = Portfolio([cell.plan], cell.test)
    for run in workers.told:
        fixed.tell(*run)
    told = list(workers.told)
    Workers(fixed, [cell], random.Random(seed), told).run()
    assert table(fixed, "cell") == cell.table()


def test_a_failed_probe_is_not_handed_out_again_until_the_study_is_opened_anew() -> None:
    plan = CellPlan("cell", axes_to({1: 8}), 4.0, 1.0)
    portfolio = Portfolio([plan], SeedTest(0.99, 2))
    probe = portfolio.ask()
    portfolio.tell_failed(probe.cell, probe.key)
    assert not portfolio.is_wanted(probe)
    portfolio.release(probe)
    assert portfolio.ask() is Signal.DONE
    assert Portfolio([plan], SeedTest(0.99, 2)).ask() == probe


def test_a_released_probe_is_handed_out_again_without_the_seeds_that_have_a_score() -> None:
    portfolio = Portfolio([CellPlan("cell", axes_to({1: 8}), 4.0, 1.0)], SeedTest(0.99, 3))
    probe = portfolio.ask()
    portfolio.tell("cell", 1, probe.value, 1, 0.995)
    portfolio.release(probe)
    assert portfolio.ask() == replace(probe, seeds=(0,))


def test_idle_slots_take_what_either_outcome_would_need() -> None:
    plan = CellPlan("cell", axes_to({1: 64}), 32.0, 1.0, intervals=False)
    portfolio = Portfolio([plan], SeedTest(0.99, 1))
    first, *others = [portfolio.ask() for _ in range(3)]
    assert (first.value, first.speculative) == (32, False)
    needed = set()
    for score in (0.0, 1.0):
        after = Portfolio([plan], SeedTest(0.99, 1))
        after.tell("cell", 1, 32, 0, score)
        needed.add(after.ask().value)
    assert {probe.value for probe in others} == needed
    assert all(probe.speculative for probe in others)


def test_without_speculation_idle_slots_wait() -> None:
    plan = CellPlan("cell", axes_to({1: 64}), 32.0, 1.0)
    portfolio = Portfolio([plan], SeedTest(0.99, 1), look_ahead=0)
    assert isinstance(portfolio.ask(), Probe)
    assert portfolio.ask() is Signal.WAIT


def test_needed_probes_of_any_cell_go_before_speculation() -> None:
    plans = [CellPlan(name, axes_to({1: 64}), 32.0, 1.0) for name in "ab"]
    portfolio = Portfolio(plans, SeedTest(0.99, 1))
    asked = [portfolio.ask() for _ in range(4)]
    assert [(p.cell, p.speculative) for p in asked[:2]] == [("a", False), ("b", False)]
    assert all(p.speculative for p in asked[2:])


@pytest.mark.parametrize("score", [float("nan"), -0.001, 1.001, float("inf"), float("-inf")])
def test_a_score_that_is_none_is_refused_and_leaves_no_trace(score: float) -> None:
    portfolio = Portfolio([CellPlan("cell", axes_to({1: 8}), 4.0, 1.0)], SeedTest(0.99, 1))
    with pytest.raises(ValueError, match=r"cell, arm 1, value 4, seed 0: score .* not in 0…1"):
        portfolio.tell("cell", 1, 4, 0, score)
    assert portfolio.state("cell").needs[0].key.value == 4


def test_an_unknown_cell_and_a_cell_named_twice_are_refused() -> None:
    plan = CellPlan("cell", axes_to({1: 8}), 4.0, 1.0)
    with pytest.raises(KeyError):
        Portfolio([plan], SeedTest(0.99, 1)).tell("other", 1, 4, 0, 1.0)
    with pytest.raises(ValueError, match="name the same cell"):
        Portfolio([plan, plan], SeedTest(0.99, 1))
