"""The benchmarks of the search: made-up cells say the truth, and rules are judged by it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from faults import Ledger
from rgr_dist.search.threshold import Key
from search_statistics import FIGURES, curve_rows, over_all
from tests.store.made_up_runs import run_row
from threshold_search.made_up_cells import CURVES, TEST, MadeUpCell
from threshold_search.rules import RULES, CountedRuns, adaptive, exhaustive


@pytest.mark.parametrize("cell", CURVES.values(), ids=lambda cell: cell.name)
def test_the_true_mean_is_that_of_many_draws(cell: MadeUpCell) -> None:
    h, d_k = cell.best
    draws = [cell.draw(np.random.default_rng(seed)) for seed in range(100)]
    scores = [draw.run(cell.best, seed)[0] for draw in draws for seed in range(64)]
    error = 5 * np.std(scores) / np.sqrt(len(scores) / 10)  # seeds of a draw share luck
    assert abs(np.mean(scores) - cell.true_means[h][d_k - 1]) < error
    assert cell.true_means[h][d_k - 1] >= TEST.target


def test_without_noise_every_rule_finds_the_truth_and_the_search_with_the_fewest_steps() -> None:
    cell = MadeUpCell("sharp", (64, 16), {1: 200, 2: 8.6, 4: 4.4, 8: 2.7}, slope=30, spread=1e-6)
    plan, draw = cell.plan(np.random.default_rng(0)), cell.draw(np.random.default_rng(1))
    steps = {}
    for rule, search in RULES.items():
        runs = CountedRuns(draw.run)
        assert search(plan, runs).winner == cell.best == Key(2, 9)
        steps[rule] = runs.steps
    assert steps["adaptive"] < steps["bisection"] < steps["exhaustive"]
    assert steps["curtailed"] <= steps["bisection"]


def test_the_exhaustive_rule_sees_a_pass_below_a_fail() -> None:
    cell = CURVES["dips"]
    draw, plan = cell.draw(np.random.default_rng(0)), cell.plan(np.random.default_rng(0))
    assert exhaustive(plan, CountedRuns(draw.run)).winner == cell.best
    found = adaptive(plan, CountedRuns(draw.run)).winner
    assert found is not None
    assert found.arm * found.value >= cell.best.arm * cell.best.value


def test_rows_have_every_figure_and_a_mean_over_curves() -> None:
    rows = curve_rows("like (64, 16)", 2) + curve_rows("dips", 2)
    table = pd.DataFrame(rows + over_all(rows)).set_index(["rule", "curve"])
    assert set(FIGURES) <= set(table)
    steps = table["steps"].unstack()
    assert (steps["all"] == (steps["dips"] + steps["like (64, 16)"]) / 2).all()
    assert table.loc["exhaustive", "share_of_exhaustive"].tolist() == [1, 1, 1]


def test_a_ledger_notices_rows_that_are_lost_or_trained_again(tmp_path) -> None:
    from rgr_dist.store.store import Store

    def written(*seeds: int, **changed: object) -> None:
        Store(tmp_path).append([run_row(seed=seed, **changed) for seed in seeds])

    ledger = Ledger(tmp_path)
    written(0, 1)
    assert ledger.look() == 2
    written(2, stop_reason="failed", score=None)
    assert ledger.look() == 2
    ledger.tear(ledger.parts()[0], 100)
    written(0, finished_at=pd.Timestamp("2031-01-01", tz="UTC"))
    assert (ledger.look(), ledger.lost, ledger.twice) == (1, set(), set())
    written(0, finished_at=pd.Timestamp("2032-01-01", tz="UTC"))
    ledger.look()
    assert len(ledger.twice) == 1
    for part in ledger.parts():
        part.unlink()
    ledger.look()
    assert len(ledger.lost) == 1
