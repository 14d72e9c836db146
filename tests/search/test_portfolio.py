"""Many cells on any number of workers: the order of events changes no row."""

from __future__ import annotations

import pickle
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rgr_dist.search.portfolio import Portfolio, Probe, Signal
from rgr_dist.search.seed_test import SeedTest
from rgr_dist.search.threshold import Key, Plan
from tests.oracles.search_table import (
    SimulatedCell,
    Workers,
    everything,
    lagging_cells,
    noisy_cells,
    rising_cells,
    rows,
    sharp_cells,
    work,
)

ANY = st.one_of(sharp_cells(seeds=3), rising_cells(), noisy_cells(), lagging_cells())
ORDERS = st.integers(0, 2**32).map(random.Random)
LOSS = SeedTest(1.0, 4, minimise=True, low=None, high=None)  # takes every seed at once


@st.composite
def faulty_cells(draw: st.DrawFn) -> SimulatedCell:
    """Any cell, some of whose runs cannot be trained, whatever the other seeds do."""
    cell = draw(ANY)
    share, salt = draw(st.sampled_from([0.0, 0.02, 0.1, 0.4])), draw(st.integers(0, 99))

    def score(*run: int) -> float | None:
        return None if random.Random(f"{salt} {run}").random() < share else cell.score(*run)

    wanted = {
        "confirm_seeds": draw(st.sampled_from([0, 3])),
        "every_value": draw(st.sampled_from([False, False, True])),
    }
    return SimulatedCell(replace(cell.plan, **wanted), score)


@settings(max_examples=50)
@given(faulty_cells(), st.integers(2, 7), st.integers(0, 2**32), st.sampled_from([0, 8, 64]))
def test_slots_order_and_speculation_change_no_row(
    cell: SimulatedCell, slots: int, seed: int, look_ahead: int
) -> None:
    """Every step of ``Workers`` also asserts that no probe runs twice at once, or for nothing."""
    alone = work(cell).run().portfolio
    together = work(cell, slots, seed, look_ahead).run().portfolio
    assert everything(together) == everything(alone)


@settings(max_examples=40)
@given(ANY, st.integers(1, 5), st.lists(st.integers(0, 12), max_size=4), ORDERS)
def test_a_search_killed_at_any_time_ends_as_if_it_had_not_been(
    cell: SimulatedCell, slots: int, kills: list[int], order: random.Random
) -> None:
    undisturbed = work(cell).run().portfolio
    told: list = []
    for trials in [*kills, None]:
        portfolio = Portfolio({"cell": cell.plan}, slots, look_ahead=8)
        order.shuffle(told)
        for name, key, seed, score in told + told[::2]:
            portfolio.tell(name, key, {seed: score})
        # ``Workers`` asserts that nothing that was told is trained again.
        told = Workers(portfolio, {"cell": cell}, order, list(told)).run(trials).told
    assert everything(portfolio) == everything(undisturbed)


@settings(max_examples=20)
@given(st.lists(sharp_cells(), min_size=2, max_size=4), st.integers(1, 6), ORDERS)
def test_cells_that_share_workers_do_not_disturb_each_other(
    drawn: list[SimulatedCell], slots: int, order: random.Random
) -> None:
    cells = {f"cell {i}": cell for i, cell in enumerate(drawn)}
    portfolio = Portfolio({name: cell.plan for name, cell in cells.items()}, slots, look_ahead=8)
    Workers(portfolio, cells, order).run()
    for name, cell in cells.items():
        assert rows(portfolio.search(name)) == cell.table()


@given(ANY, st.integers(1, 6), st.integers(0, 3), st.data())
def test_what_is_handed_out_is_wanted_and_is_handed_out_once(
    cell: SimulatedCell, slots: int, confirm: int, data: st.DataObject
) -> None:
    """Fresh seeds too, and whatever else is trained in case a running probe passes or fails."""
    portfolio = Portfolio({"cell": replace(cell.plan, confirm_seeds=confirm)}, slots)
    running: list[Probe] = []
    handed_out: set[tuple[Key, int]] = set()
    while True:
        while len(running) < slots and isinstance(probe := portfolio.ask(), Probe):
            assert portfolio.is_wanted(probe)
            runs = {(probe.key, seed) for seed in probe.seeds}
            assert handed_out.isdisjoint(runs)
            handed_out |= runs
            running.append(probe)
        if not running:
            break
        probe = running.pop(data.draw(st.integers(0, len(running) - 1)))
        scores = {seed: cell.score(*probe.key, seed) for seed in probe.seeds}
        portfolio.tell(probe.cell, probe.key, scores)
        portfolio.release(probe)
    assert portfolio.is_done


@settings(max_examples=40)
@given(sharp_cells(intervals=False), st.integers(1, 4), st.integers(0, 2**32), st.data())
def test_probes_that_cannot_be_run_leave_their_arm_open_and_the_others_alone(
    cell: SimulatedCell, slots: int, seed: int, data: st.DataObject
) -> None:
    arms = data.draw(st.sets(st.sampled_from(sorted(cell.plan.axes))), "arms that fail")
    faulty = replace(
        cell, score=lambda arm, value, seed: None if arm in arms else cell.score(arm, value, seed)
    )
    found = rows(work(faulty, slots, seed).run().portfolio.search("cell"))
    rest = {arm: axis for arm, axis in cell.plan.axes.items() if arm not in arms}
    if rest:
        expected = replace(cell, plan=replace(cell.plan, axes=rest)).table()
        assert {arm: found[arm] for arm in rest} == expected
    assert all(found[arm][0] in ("open", "pruned") for arm in arms)


@pytest.mark.parametrize("score", [float("nan"), -0.001, 1.001, float("inf"), float("-inf")])
def test_a_score_that_is_none_is_refused_and_leaves_no_trace(score: float) -> None:
    portfolio = one_cell(SeedTest(0.99, 1))
    with pytest.raises(ValueError, match="score"):
        portfolio.tell("cell", Key(1, 4), {0: score})
    assert portfolio.search("cell").decisions == []


def one_cell(test: SeedTest, guess: float = 32.0, **options: int) -> Portfolio:
    """A portfolio of one cell with one arm, 1 … 64."""
    return Portfolio({"cell": plan_of(test, guess)}, **options)


def plan_of(test: SeedTest, guess: float = 32.0, largest: int = 64) -> Plan:
    return Plan({1: range(1, largest + 1)}, test, (1.0, guess), intervals=False)


def asked(portfolio: Portfolio, most: int = 99) -> list[tuple[int, tuple[int, ...]]]:
    """Value and seeds of the next probes, until there is none."""
    probes = []
    while len(probes) < most and isinstance(probe := portfolio.ask(), Probe):
        probes.append((probe.value, probe.seeds))
    return probes


def test_the_first_score_of_a_run_stays() -> None:
    portfolio = one_cell(SeedTest(0.99, 4))
    portfolio.tell("cell", Key(1, 32), {0: 1.0})
    portfolio.tell("cell", Key(1, 32), {0: 0.25})
    assert portfolio.scores("cell", Key(1, 32)) == {0: 1.0}
    assert portfolio.scores("cell", Key(1, 31)) == {}


@pytest.mark.parametrize(
    ("options", "handed_out"),
    [
        ({}, [(0, 1, 2, 3)]),
        ({"slots": 2}, [(0, 1), (2, 3)]),
        ({"slots": 3}, [(0, 1), (2, 3)]),
        ({"slots": 9}, [(0,), (1,), (2,), (3,)]),
        ({"together": 3}, [(0, 1, 2), (3,)]),
        ({"slots": 2, "together": 1}, [(0,), (1,), (2,), (3,)]),
    ],
)
def test_idle_slots_share_the_seeds_of_a_probe(options: dict, handed_out: list) -> None:
    portfolio = one_cell(LOSS, look_ahead=0, **options)
    assert asked(portfolio) == [(32, seeds) for seeds in handed_out]
    assert portfolio.ask() is Signal.WAIT


def test_seeds_that_were_released_are_handed_out_again_and_no_others() -> None:
    portfolio = one_cell(LOSS, slots=4, look_ahead=0)
    probes = [portfolio.ask() for _ in range(4)]
    portfolio.release(probes[1])
    assert asked(portfolio) == [(32, (1,))]


def test_idle_slots_take_the_other_seeds_first_and_then_the_nearest_outcomes() -> None:
    """After 32 comes 64 if it fails and 16 if it passes; a first look takes three seeds."""
    portfolio = one_cell(SeedTest(0.99, 4), slots=8)
    assert asked(portfolio, 9) == [
        (value, (seed,)) for value in (32, 64, 16) for seed in range(3)
    ]  # fmt: skip


def test_a_probe_that_will_hardly_pass_is_not_completed_ahead_of_need() -> None:
    portfolio = one_cell(SeedTest(0.99, 6), slots=9)
    portfolio.tell("cell", Key(1, 32), {0: 0.98, 1: 0.98})
    assert asked(portfolio, 3) == [(32, (2,)), (32, (3,)), (64, (0,))]  # four such are a fail


def test_ahead_of_need_a_cell_goes_by_its_own_target() -> None:
    """With the target 0.9 of its own, 0.95 looks like a pass, and the other seeds are run."""
    plans = {"a": plan_of(SeedTest(0.99, 6)), "b": plan_of(SeedTest(0.9, 6))}
    portfolio = Portfolio(plans, slots=9)
    for cell in plans:
        portfolio.tell(cell, Key(1, 32), {0: 0.95, 1: 0.95, 2: 0.95})
    first = [portfolio.ask() for _ in range(4)]
    assert next(one for one in first if one.cell == "b").value == 16  # 32 passes for now
    assert all(one.value != 32 for one in first if one.cell == "a")  # 32 has failed


def test_a_result_that_decides_the_probe_makes_what_ran_ahead_useless() -> None:
    portfolio = one_cell(SeedTest(0.99, 1))
    probes = {probe.value: probe for probe in (portfolio.ask() for _ in range(6))}
    assert all(portfolio.is_wanted(probe) for probe in probes.values())
    portfolio.tell("cell", Key(1, 32), {0: 1.0})
    assert portfolio.is_wanted(probes[16])
    assert not any(portfolio.is_wanted(one) for value, one in probes.items() if value >= 32)


def test_scores_that_are_taken_back_are_asked_for_again() -> None:
    portfolio = one_cell(SeedTest(0.99, 1), look_ahead=0)
    probe = portfolio.ask()
    portfolio.tell("cell", probe.key, {0: 0.5})
    portfolio.release(probe)
    assert portfolio.search("cell").decisions
    portfolio.forget(probe)
    portfolio.forget(replace(probe, value=7))  # of which nothing is known
    assert portfolio.scores("cell", probe.key) == {}
    assert portfolio.search("cell").decisions == []
    assert portfolio.ask() == probe


def test_a_copy_runs_ahead_as_its_original_does() -> None:
    portfolio = one_cell(SeedTest(0.99, 1))
    _, after_a_fail, _ = (portfolio.ask() for _ in range(3))
    for one in (pickle.loads(pickle.dumps(portfolio)), portfolio):
        one.release(after_a_fail)
        assert one.ask() == after_a_fail


def test_a_failed_run_frees_the_other_cells() -> None:
    plans = {name: plan_of(SeedTest(0.99, 1)) for name in "ab"}
    portfolio = Portfolio(plans, look_ahead=0)
    probe = portfolio.ask()
    portfolio.tell_failed("a", probe.key, probe.seeds)
    assert not portfolio.is_wanted(probe)
    portfolio.release(probe)
    assert portfolio.search("a").result(1).status == "open"
    assert portfolio.ask().cell == "b"
    assert portfolio.ask() is Signal.WAIT
    assert not portfolio.is_done
