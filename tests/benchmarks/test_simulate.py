"""A search on simulated workers: it finds what it finds alone, and the clock adds up."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rgr_dist.search.portfolio import Portfolio
from rgr_dist.search.probe_verdict import SeedTest
from rgr_dist.search.protocol import CellPlan, ProbeKey
from tests.search.oracles import noisy_cells, rising_cells, sharp_cells
from tests.search.simulated_cells import SimulatedCell, everything, table
from threshold_search.curves import SHAPES, SyntheticCurve
from threshold_search.simulate import (
    Curves,
    Simulated,
    SimulatedRun,
    needed_runs,
    probes_per_arm,
    simulate,
)

pytestmark = pytest.mark.slow  # of what benchmarks use alone

ANY = st.one_of(sharp_cells(seeds=3), rising_cells(), noisy_cells())


def timed(*cells: SimulatedCell) -> Curves:
    """The cells' scores, with run times drawn by chance and ten steps to a second."""
    by_name = {cell.plan.cell: cell for cell in cells}

    def run(cell: str, key: ProbeKey, seed: int) -> SimulatedRun:
        score = by_name[cell].score(key.arm, key.value, seed)
        assert score is not None
        seconds = random.Random(f"{cell} {key} {seed}").choice([0.1, 1.0, 1.5, 20.0])
        return SimulatedRun(score, seconds, round(10 * seconds))

    return run


def at_work(done: Simulated, moment: float) -> int:
    return sum(job.start <= moment < job.end for job in done.jobs)


@settings(max_examples=50)
@given(ANY)
def test_one_worker_does_what_is_needed_one_after_another(cell: SimulatedCell) -> None:
    portfolio = Portfolio([cell.plan], cell.test)
    done = simulate(portfolio, timed(cell), 1)
    runs = [timed(cell)(*run) for run in needed_runs(portfolio)]
    assert done.makespan == pytest.approx(math.fsum(run.seconds for run in runs))
    assert (done.runs, done.steps) == (len(runs), sum(run.steps for run in runs))
    assert done.useful == pytest.approx(1)
    assert done.utilisation(1.0) == pytest.approx(1)


@settings(max_examples=25)
@given(ANY, st.integers(2, 12), st.sampled_from([0.0, 0.02, 5.0]))
def test_workers_and_their_clocks_change_no_result(
    cell: SimulatedCell, workers: int, start: float
) -> None:
    alone, together = (Portfolio([cell.plan], cell.test) for _ in range(2))
    simulate(alone, timed(cell), 1)
    done = simulate(together, timed(cell), workers, start)
    assert everything(together) == everything(alone)
    trained = [(job.probe.cell, job.probe.key, s) for job in done.jobs for s in job.probe.seeds]
    assert len(trained) == len(set(trained)) <= done.runs
    assert set(needed_runs(together)) <= set(trained)


@settings(max_examples=25)
@given(sharp_cells(), st.integers(1, 8), st.sampled_from([0.0, 0.3]))
def test_the_clock_adds_up(cell: SimulatedCell, workers: int, start: float) -> None:
    done = simulate(Portfolio([cell.plan], cell.test), timed(cell), workers, start)
    moments = sorted({job.start for job in done.jobs} | {job.end for job in done.jobs})
    assert moments[-1] <= done.makespan
    assert all(at_work(done, moment) <= workers for moment in moments)
    starts = sorted(job.start for job in done.jobs)
    assert all(b - a >= start - 1e-9 for a, b in pairwise(starts))
    horizon = 0.9 * done.makespan
    ends = [0.0, *(m for m in moments if 0 < m < horizon), horizon]
    worked = sum(at_work(done, a) * (b - a) for a, b in pairwise(ends))
    assert done.utilisation() == pytest.approx(worked / (workers * horizon))
    assert 0 < done.useful <= 1


@settings(max_examples=10)
@given(st.lists(sharp_cells(seeds=2), min_size=2, max_size=3), st.integers(1, 6))
def test_cells_that_share_workers_each_get_their_own_result(
    cells: list[SimulatedCell], workers: int
) -> None:
    cells = [replace(c, plan=replace(c.plan, cell=f"cell {i}")) for i, c in enumerate(cells)]
    portfolio = Portfolio([cell.plan for cell in cells], cells[0].test)
    simulate(portfolio, timed(*cells), workers)
    for cell in cells:
        assert table(portfolio, cell.plan.cell) == cell.table()


def test_more_workers_end_a_bisection_sooner() -> None:
    """k workers try k values at once: a bracket shrinks by k + 1 in the time of one probe."""
    plan = CellPlan("cell", {1: range(1, 1025)}, 700, intervals=False)
    times = []
    for workers in (1, 3, 15):
        done = simulate(
            Portfolio([plan], SeedTest(0.99, 1)),
            lambda cell, key, seed: SimulatedRun(float(key.value >= 333), 1.0),
            workers,
        )
        times.append(done.makespan)
    assert times[0] > 1.5 * times[1] > 1.5 * times[2]


def test_probes_are_counted_over_the_arms_that_were_probed() -> None:
    plan = CellPlan("cell", {1: range(1, 65), 32: range(1, 3)}, 20, intervals=False)
    portfolio = Portfolio([plan], SeedTest(0.99, 1))
    simulate(portfolio, lambda c, key, s: SimulatedRun(float(key.value >= 20), 1.0), 1)
    used = portfolio.state("cell").used
    assert {key.arm for key in used} == {1}  # 32 arms start beyond the kept margin
    assert probes_per_arm(portfolio) == (len(used), 6 + 2)


def test_probes_of_the_found_arms_are_counted_apart() -> None:
    plan = CellPlan("cell", {1: range(1, 65), 4: range(1, 17)}, 20, intervals=False)
    portfolio = Portfolio([plan], SeedTest(0.99, 1))
    simulate(portfolio, lambda c, p, s: SimulatedRun(float(p.arm == 1 and p.value >= 20), 1.0), 1)
    used = [key.arm for key in portfolio.state("cell").used]
    assert (portfolio.state("cell").result(4).status, used.count(4)) == ("pruned", 1)
    assert probes_per_arm(portfolio, found=True) == (used.count(1), 6 + 2)
    assert probes_per_arm(portfolio) == (len(used) / 2, (8 + 6) / 2)


@pytest.mark.parametrize("shape", SHAPES)
def test_cells_of_every_shape_end_and_keep_their_workers_busy(shape: str) -> None:
    """As many workers as cells: 85 % of their time, until the last tenth, goes into training."""
    chance = random.Random(shape)
    plans, curves = [], {}
    for number in range(24):
        cost = chance.uniform(10, 60)
        axes = {arm: range(1, max(1, 120 // arm) + 1) for arm in (1, 2, 4)}
        plans.append(CellPlan(f"{number}", axes, cost * chance.uniform(0.7, 1.4), guess_arm=2))
        curves[f"{number}"] = SyntheticCurve(
            {arm: cost * worse / arm for arm, worse in ((1, 1.3), (2, 1.0), (4, 1.1))}, shape
        )
    portfolio = Portfolio(plans, SeedTest(0.99, 10))
    done = simulate(portfolio, lambda cell, key, seed: curves[cell].run(key, seed), 24)
    assert done.utilisation() >= 0.85
    for found in (False, True):
        probes, bisection = probes_per_arm(portfolio, found)
        assert probes <= bisection
    assert all(portfolio.state(plan.cell).best_cost for plan in plans)
