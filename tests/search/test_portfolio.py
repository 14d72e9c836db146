"""Many cells on any number of workers: the order of events changes no row."""

from __future__ import annotations

import pickle
import random
import sys
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rgr_dist.search.portfolio import Portfolio
from rgr_dist.search.probe_verdict import SeedTest
from rgr_dist.search.protocol import CellPlan, Probe, ProbeKey, Signal, Transition
from tests.search.oracles import lagging_cells, noisy_cells, rising_cells, sharp_cells
from tests.search.simulated_cells import SimulatedCell, Workers, axes_to, everything, table

ANY = st.one_of(sharp_cells(seeds=3), rising_cells(), noisy_cells())
ORDERS = st.integers(0, 2**32).map(random.Random)


def work(cell: SimulatedCell, slots: int = 1, seed: int = 0, look_ahead: int = 8) -> Workers:
    portfolio = Portfolio([cell.plan], cell.test, slots, look_ahead)
    return Workers(portfolio, [cell], random.Random(seed))


@st.composite
def faulty_cells(draw: st.DrawFn) -> SimulatedCell:
    """Any cell, some of whose runs cannot be trained, whatever the other seeds do."""
    cell = draw(ANY)
    share, salt = draw(st.sampled_from([0.0, 0.02, 0.1, 0.4])), draw(st.integers(0, 99))

    def score(*run: int) -> float | None:
        return None if random.Random(f"{salt} {run}").random() < share else cell.score(*run)

    wanted = {
        "unrunnable": draw(st.sampled_from(["open", "fail"])),
        "confirm_seeds": draw(st.sampled_from([0, 3])),
        "transition": Transition(draw(st.sampled_from([0, 4])), 0.2),
        "every_value": draw(st.sampled_from([False, False, True])),
    }
    test = replace(cell.test, extra=draw(st.sampled_from([0, 2])))
    return SimulatedCell(replace(cell.plan, **wanted), test, score)


@settings(max_examples=60)
@given(faulty_cells(), st.integers(2, 7), st.integers(0, 2**32), st.sampled_from([0, 8, 64]))
def test_slots_order_and_speculation_change_no_row(
    cell: SimulatedCell, slots: int, seed: int, look_ahead: int
) -> None:
    """Every step of ``Workers`` also asserts that no probe runs twice at once, or for nothing."""
    alone = work(cell).run().portfolio
    together = work(cell, slots, seed, look_ahead).run().portfolio
    assert everything(together) == everything(alone)


@given(ANY)
def test_what_one_slot_trains_is_what_the_finished_search_rests_on(cell: SimulatedCell) -> None:
    """Seeds that complete a probe later change nothing of what was decided before."""
    workers = work(cell).run()
    told = {(arm, value, seed) for _, arm, value, seed, _ in workers.told}
    asked = workers.portfolio.state("cell").asked
    assert told == {(*key, seed) for key, seeds in asked.items() for seed in range(seeds)}


@settings(max_examples=30)
@given(ANY, st.integers(1, 5), st.lists(st.integers(0, 12), max_size=4), ORDERS)
def test_a_search_killed_at_any_time_ends_as_if_it_had_not_been(
    cell: SimulatedCell, slots: int, kills: list[int], order: random.Random
) -> None:
    undisturbed = work(cell).run().portfolio
    told: list = []
    for trials in [*kills, None]:
        portfolio = Portfolio([cell.plan], cell.test, slots, look_ahead=8)
        order.shuffle(told)
        for run in told + told[::2]:
            portfolio.tell(*run)
        # ``Workers`` asserts that nothing that was told is trained again.
        told = Workers(portfolio, [cell], order, list(told)).run(trials).told
    assert everything(portfolio) == everything(undisturbed)


@settings(max_examples=20)
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


@settings(max_examples=30)
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


@settings(max_examples=20)
@given(sharp_cells(seeds=2), st.integers(1, 4), st.integers(0, 2**32), st.data())
def test_one_value_that_cannot_be_run_ends_the_search_of_its_arm_alone(
    cell: SimulatedCell, slots: int, seed: int, data: st.DataObject
) -> None:
    arm = data.draw(st.sampled_from(sorted(cell.plan.axes)))
    broken = arm, data.draw(st.sampled_from(cell.plan.axes[arm]))
    faulty = replace(cell, score=lambda *run: None if run[:2] == broken else cell.score(*run))
    workers = work(faulty, slots, seed).run()
    if workers.portfolio.state("cell").result(arm).status != "open":
        return
    fixed = Portfolio([cell.plan], cell.test)
    for run in workers.told:
        fixed.tell(*run)
    told = list(workers.told)
    Workers(fixed, [cell], random.Random(seed), told).run()
    assert table(fixed, "cell") == cell.table()


@pytest.mark.parametrize("score", [float("nan"), -0.001, 1.001, float("inf"), float("-inf")])
def test_a_score_that_is_none_is_refused_and_leaves_no_trace(score: float) -> None:
    portfolio = Portfolio([CellPlan("cell", axes_to({1: 8}), 4.0, 1.0)], SeedTest(0.99, 1))
    with pytest.raises(
        ValueError, match=rf"^cell, arm 1, value 4, seed 0: score {score}: not in 0…1$"
    ):
        portfolio.tell("cell", 1, 4, 0, score)
    assert portfolio.state("cell").needs[0].key.value == 4


def one_cell(test: SeedTest, guess_cost: float = 32.0, **options: int) -> Portfolio:
    """A portfolio of one cell with one arm, 1 … 64."""
    plan = CellPlan("cell", axes_to({1: 64}), guess_cost, intervals=False)
    return Portfolio([plan], test, **options)


def asked(portfolio: Portfolio, most: int = 99) -> list[tuple[int, tuple[int, ...]]]:
    """Value and seeds of the next probes, until there is none."""
    probes = []
    while len(probes) < most and isinstance(probe := portfolio.ask(), Probe):
        probes.append((probe.value, probe.seeds))
    return probes


LOSS = SeedTest(1.0, 4, minimise=True, low=None, high=None)  # takes every seed at once


def test_the_first_score_of_a_run_stays() -> None:
    portfolio = one_cell(SeedTest(0.99, 4))
    portfolio.tell("cell", 1, 32, 0, 1.0)
    portfolio.tell("cell", 1, 32, 0, 0.25)
    portfolio.scores("cell", ProbeKey(1, 32))[1] = 0.0
    assert portfolio.scores("cell", ProbeKey(1, 32)) == {0: 1.0}
    assert portfolio.scores("cell", ProbeKey(1, 31)) == {}


@pytest.mark.parametrize(
    ("options", "handed_out"),
    [
        ({}, [(0, 1, 2, 3)]),
        ({"slots": 2}, [(0, 1), (2, 3)]),
        ({"slots": 3}, [(0, 1), (2, 3)]),
        ({"slots": 4}, [(0,), (1,), (2,), (3,)]),
        ({"slots": 9}, [(0,), (1,), (2,), (3,)]),
        ({"together": 3}, [(0, 1, 2), (3,)]),
        ({"together": 1}, [(0,), (1,), (2,), (3,)]),
        ({"slots": 2, "together": 3}, [(0, 1), (2, 3)]),
    ],
)
def test_idle_slots_share_the_seeds_of_a_probe(options: dict, handed_out: list) -> None:
    portfolio = one_cell(LOSS, look_ahead=0, **options)
    assert asked(portfolio) == [(32, seeds) for seeds in handed_out]
    assert portfolio.ask() is Signal.WAIT


def test_slots_are_shared_among_the_cells_that_are_open() -> None:
    plans = [CellPlan(name, axes_to({1: 2}), 1.0, intervals=False) for name in "ab"]
    assert Portfolio(plans, replace(LOSS, extra=6)).together == 10, "all seeds of a retest"
    portfolio = Portfolio(plans, LOSS, slots=4, look_ahead=0)
    assert [portfolio.ask().seeds for _ in range(4)] == [(0, 1), (2, 3)] * 2
    portfolio = Portfolio(plans, LOSS, slots=4, look_ahead=0)
    for seed in range(4):
        portfolio.tell("a", 1, 1, seed, 0.5)
    assert portfolio.state("a").is_done
    assert not portfolio.is_done
    assert [portfolio.ask().seeds for _ in range(4)] == [(0,), (1,), (2,), (3,)]
    assert portfolio.ask() is Signal.WAIT


def test_seeds_that_were_released_are_handed_out_again_and_no_others() -> None:
    portfolio = one_cell(LOSS, slots=4, look_ahead=0)
    probes = [portfolio.ask() for _ in range(4)]
    portfolio.release(probes[1])
    assert asked(portfolio) == [(32, (1,))]
    for probe in probes:
        portfolio.release(probe)
    assert asked(portfolio) == [(32, (seed,)) for seed in range(4)]


def test_speculation_takes_the_other_seeds_first_and_then_the_nearest_outcomes() -> None:
    """After 32 comes 48 if it fails and 21 if it passes; a first look takes three seeds."""
    portfolio = one_cell(SeedTest(0.99, 4), slots=8)
    assert asked(portfolio, 9) == [
        *((32, (seed,)) for seed in range(3)),
        *((48, (seed,)) for seed in range(3)),
        *((21, (seed,)) for seed in range(3)),
    ]


def test_a_probe_that_will_hardly_pass_is_not_completed_ahead_of_need() -> None:
    portfolio = one_cell(SeedTest(0.99, 6), slots=9)
    portfolio.tell("cell", 1, 32, 0, 0.98)
    portfolio.tell("cell", 1, 32, 1, 0.98)
    assert asked(portfolio, 3) == [(32, (2,)), (32, (3,)), (48, (0,))]  # four such are a fail


def test_a_threshold_is_completed_ahead_of_need() -> None:
    portfolio = one_cell(SeedTest(0.99, 6), guess_cost=1.0, slots=2)
    for seed in range(3):
        portfolio.tell("cell", 1, 1, seed, 0.99)
    assert asked(portfolio, 2) == [(1, (3, 4)), (1, (5,))]


def test_look_ahead_is_the_number_of_outcomes_supposed() -> None:
    """Nothing, 32 fails, 32 passes; then what follows when 48 fails too."""
    one_seed = SeedTest(0.99, 1)
    values = {
        look_ahead: [value for value, _ in asked(one_cell(one_seed, look_ahead=look_ahead))]
        for look_ahead in range(5)
    }
    assert values == {0: [32], 1: [32], 2: [32, 48], 3: [32, 48, 21], 4: [32, 48, 21, 64]}


def test_a_result_that_decides_the_probe_makes_its_speculation_useless() -> None:
    """32 passes: 48, above it, tells nothing more; 21 is needed, and 10 may be."""
    portfolio = one_cell(SeedTest(0.99, 1))
    probes = {probe.value: probe for probe in (portfolio.ask() for _ in range(6))}
    assert all(portfolio.is_wanted(probe) for probe in probes.values())
    portfolio.tell("cell", 1, 32, 0, 1.0)
    wanted = {value for value, probe in probes.items() if portfolio.is_wanted(probe)}
    assert wanted == {value for value in probes if value < 32}
    portfolio.tell("cell", 1, 21, 0, 0.0)
    wanted = {value for value, probe in probes.items() if portfolio.is_wanted(probe)}
    assert wanted == {value for value in probes if 21 < value < 32}


def test_a_probe_is_wanted_until_its_verdict_is_known() -> None:
    portfolio = one_cell(SeedTest(0.99, 4))
    probe = Probe("cell", 1, 32, (2, 3))
    assert portfolio.is_wanted(probe)
    portfolio.tell("cell", 1, 32, 0, 0.97)
    portfolio.tell("cell", 1, 32, 2, 0.99)
    assert portfolio.is_wanted(probe)
    portfolio.tell("cell", 1, 32, 1, 0.9)  # the mean cannot reach 0.99 any more
    assert not portfolio.is_wanted(probe)


def test_a_probe_beyond_the_margin_is_not_wanted() -> None:
    """One arm is found at 4: two of 3 are one step above it, and two of 4 beyond that."""
    plan = CellPlan("cell", axes_to({1: 16, 2: 16}), 4.0, intervals=False)
    portfolio = Portfolio([plan], SeedTest(0.99, 1))
    for value in (1, 2, 3, 4):
        portfolio.tell("cell", 1, value, 0, float(value >= 4))
    probes = {value: Probe("cell", 2, value, (0,)) for value in (1, 2, 3, 4)}
    assert [portfolio.is_wanted(probe) for probe in probes.values()] == [True, True, True, False]
    portfolio.tell("cell", 2, 3, 0, 0.0)
    assert portfolio.state("cell").is_done
    assert [portfolio.is_wanted(probe) for probe in probes.values()] == [False] * 4


@given(
    st.one_of(ANY, lagging_cells()), st.integers(1, 6), st.integers(0, 3), st.booleans(), st.data()
)
def test_what_is_handed_out_is_wanted_and_is_handed_out_once(
    cell: SimulatedCell, slots: int, confirm: int, is_wide: bool, data: st.DataObject
) -> None:
    """Fresh seeds too, and whatever else is trained in case a running probe passes or fails."""
    plan = replace(cell.plan, confirm_seeds=confirm, transition=Transition(4 * is_wide, 0.5))
    portfolio = Portfolio([plan], cell.test, slots=slots)
    running: list[Probe] = []
    handed_out: set[tuple[int, int, int]] = set()
    while True:
        while len(running) < slots and isinstance(probe := portfolio.ask(), Probe):
            assert portfolio.is_wanted(probe)
            runs = {(probe.arm, probe.value, seed) for seed in probe.seeds}
            assert handed_out.isdisjoint(runs)
            handed_out |= runs
            running.append(probe)
        if not running:
            break
        probe = running.pop(data.draw(st.integers(0, len(running) - 1)))
        for seed in probe.seeds:
            score = cell.score(probe.arm, probe.value, seed)
            portfolio.tell(probe.cell, probe.arm, probe.value, seed, score)
        portfolio.release(probe)
    assert portfolio.is_done


def test_a_result_starts_speculation_anew() -> None:
    """Two outcomes are supposed at a time: nothing and 32 fails, then nothing and 48 fails."""
    portfolio = one_cell(SeedTest(0.99, 1), look_ahead=2)
    assert [portfolio.ask().value for _ in range(2)] == [32, 48]
    assert portfolio.ask() is Signal.WAIT
    portfolio.tell("cell", 1, 32, 0, 0.0)
    assert portfolio.ask().value == 64


def test_a_result_makes_room_for_the_next_need_before_its_probe_is_released() -> None:
    portfolio = one_cell(SeedTest(0.99, 1), look_ahead=0)
    assert portfolio.ask().value == 32
    assert portfolio.ask() is Signal.WAIT
    portfolio.tell("cell", 1, 32, 0, 0.0)
    assert portfolio.ask().value == 48


def test_a_guess_that_was_released_is_handed_out_again_and_a_copy_takes_guesses_anew() -> None:
    portfolio = one_cell(SeedTest(0.99, 1))
    _, after_a_fail, after_a_pass = (portfolio.ask() for _ in range(3))
    assert (after_a_fail.value, after_a_pass.value) == (48, 21)
    for one in (pickle.loads(pickle.dumps(portfolio)), portfolio):
        one.release(after_a_fail)
        assert one.ask() == after_a_fail


def test_every_cell_has_guesses_of_its_own() -> None:
    plans = [CellPlan(name, axes_to({1: 64}), 32.0, intervals=False) for name in "ab"]
    portfolio = Portfolio(plans, SeedTest(0.99, 1), look_ahead=2)
    handed_out = [portfolio.ask() for _ in range(4)]
    assert [(p.cell, p.value) for p in handed_out] == [("a", 32), ("b", 32), ("a", 48), ("b", 48)]
    assert portfolio.ask() is Signal.WAIT


def test_a_failed_run_frees_the_other_cells() -> None:
    plans = [CellPlan(name, axes_to({1: 64}), 32.0, intervals=False) for name in "ab"]
    portfolio = Portfolio(plans, SeedTest(0.99, 1), look_ahead=0)
    probe = portfolio.ask()
    portfolio.tell_failed("a", probe.key, probe.seeds)
    assert not portfolio.is_wanted(probe)
    portfolio.release(probe)
    assert portfolio.state("a").result(1).because == "a run failed"
    assert portfolio.ask().cell == "b"
    assert portfolio.ask() is Signal.WAIT
    assert not portfolio.is_done
    assert Portfolio(plans, SeedTest(0.99, 1), look_ahead=0).ask() == probe, "opened anew"


def test_a_failed_run_of_a_wide_axis_is_taken_in_at_once() -> None:
    """Nothing may go through an axis value by value; this one would take for ever."""
    plan = CellPlan("a", {1: range(1, sys.maxsize)}, 2.0**60, intervals=False)
    portfolio = Portfolio([plan], SeedTest(0.99, 1), look_ahead=0)
    portfolio.tell_probe("a", portfolio.ask().key, {0: 0.0})
    probe = portfolio.ask()
    portfolio.tell_failed("a", probe.key, probe.seeds)
    assert portfolio.state("a").result(1).because == "a run failed"


def test_an_unknown_cell_and_a_cell_named_twice_are_refused() -> None:
    plan = CellPlan("cell", axes_to({1: 8}), 4.0, 1.0)
    with pytest.raises(KeyError):
        Portfolio([plan], SeedTest(0.99, 1)).tell("other", 1, 4, 0, 1.0)
    with pytest.raises(ValueError, match=r"^two plans name the same cell$"):
        Portfolio([plan, plan], SeedTest(0.99, 1))


@given(ANY, st.integers(1, 4))
def test_when_to_look_first_only_the_search_decides(cell: SimulatedCell, look: int) -> None:
    told = replace(cell, test=replace(cell.test, look=look))
    assert everything(work(told).run().portfolio) == everything(work(cell).run().portfolio)
