"""The baselines: they find the same thresholds, and their steps are counted once."""

from __future__ import annotations

import optuna
import pytest
from hypothesis import given, settings

from rgr_dist.search.probe_verdict import SeedTest
from rgr_dist.search.protocol import CellPlan, ProbeKey
from tests.search.oracles import noisy_cells, sharp_cells
from tests.search.simulated_cells import SimulatedCell, axes_to
from threshold_search.baselines import CountedRuns, adaptive, exhaustive, least_cost
from threshold_search.optuna_asked import smallest_by_optuna
from threshold_search.simulate import SimulatedRun


def counted(cell: SimulatedCell) -> CountedRuns:
    """The cell's runs, a step each."""

    def run(key: ProbeKey, seed: int) -> SimulatedRun:
        return SimulatedRun(cell.score(key.arm, key.value, seed), 1.0, 1)

    return CountedRuns(run)


@settings(max_examples=50)
@given(noisy_cells())
def test_the_exhaustive_grid_finds_the_smallest_pass_with_its_certificate(
    cell: SimulatedCell,
) -> None:
    runs = counted(cell)
    results = exhaustive(cell.plan.axes, cell.test, runs)
    assert runs.steps == cell.test.seeds * sum(len(axis) for axis in cell.plan.axes.values())
    for arm, result in results.items():
        assert result.value == cell.threshold(arm)
        assert result.status == ("censored" if result.value is None else "found")
        if result.passed is not None:
            assert cell.passes(arm, result.passed.value)
            assert result.passed.mean_score == pytest.approx(
                sum(cell.scores(arm, result.passed.value)) / cell.test.seeds
            )
        if result.failed is not None:
            assert not cell.passes(arm, result.failed.value)
            assert result.failed.value == (result.value or result.failed.value + 1) - 1


@settings(max_examples=50)
@given(sharp_cells())
def test_the_adaptive_search_finds_the_same_for_less(cell: SimulatedCell) -> None:
    asked, everything = counted(cell), counted(cell)
    found = adaptive(cell.plan, cell.test, asked)
    truth = exhaustive(cell.plan.axes, cell.test, everything)
    assert least_cost(found) == least_cost(truth)
    assert all(truth[arm].value == r.value for arm, r in found.items() if r.status == "found")
    assert asked.steps <= everything.steps


def test_a_run_is_made_and_counted_once() -> None:
    made: list[tuple[ProbeKey, int]] = []

    def run(key: ProbeKey, seed: int) -> SimulatedRun:
        made.append((key, seed))
        return SimulatedRun(0.92, 1.0, 7)

    runs = CountedRuns(run)
    test = SeedTest(0.99, 10)
    key = ProbeKey(1, 3)
    assert runs.verdict_scores(key, test) == {0: 0.92, 1: 0.92}  # the other seeds are spared
    assert runs.verdict_scores(key, test) == {0: 0.92, 1: 0.92}
    assert made == [(key, 0), (key, 1)]
    assert runs.steps == 14


LEAST = SimulatedCell(
    CellPlan("cell", axes_to({1: 40, 2: 20, 4: 10}), 20),
    SeedTest(0.99, 3),
    lambda arm, value, seed: min(1.0, 0.5 + 0.5 * arm * value / {1: 20, 2: 12, 4: 16}[arm]),
)


@pytest.mark.parametrize("seed", range(4))
def test_optuna_reaches_the_smallest_cost_and_pays_for_no_probe_twice(seed: int) -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    runs = counted(LEAST)
    result = smallest_by_optuna(LEAST.plan.axes, LEAST.test, runs, 12, 400, seed)
    assert (result.cost, result.steps) == (12, runs.steps)
    assert result.trials < 400
    assert runs.steps <= 3 * 70  # every seed of every probe


def test_optuna_gives_back_what_it_has_when_its_trials_end() -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    runs = counted(LEAST)
    result = smallest_by_optuna(LEAST.plan.axes, LEAST.test, runs, 1, 30, 0)
    assert result.trials == 30
    passed = [
        arm * value
        for arm, axis in LEAST.plan.axes.items()
        for value in axis
        if (arm, value) in {(key.arm, key.value) for key, _ in runs._made}
        and LEAST.score(arm, value, 0) >= 0.99
    ]
    assert result.cost == min(passed)
    nothing = SimulatedCell(LEAST.plan, LEAST.test, lambda arm, value, seed: 0.5)
    assert smallest_by_optuna(LEAST.plan.axes, LEAST.test, counted(nothing), 1, 5, 0).cost is None
