"""The bench with known truth: its truth is true, and rules that must find it do."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest

from rgr_dist.search.protocol import ProbeKey
from threshold_search.baselines import CountedRuns
from threshold_search.made_up_cells import CURVES, SEEDS
from threshold_search.noisy_bisection import expected_entropy, probabilistic_bisection
from threshold_search.search_rules import RULES, Outcome, exhaustive_grid
from threshold_search.truth import Judged, judge, summary

pytestmark = pytest.mark.slow  # of what benchmarks use alone

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "search_statistics.py"
EASY = replace(CURVES["like (128,32)"], spread=0.15, moves=0)


def statistics(*options: str) -> list[dict[str, Any]]:
    """What the benchmark prints as JSON."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *options, "--format", "json"],
        capture_output=True,
        text=True,
        check=True,
    )
    rows: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    return rows


@pytest.mark.parametrize("curve", ["heavy noise", "plateau"])
def test_a_true_mean_is_that_of_very_many_seeds(curve: str) -> None:
    cell = replace(CURVES[curve], moves=0)
    draws = [cell.repeat(number)[1] for number in range(150)]
    for h, d_k in ((4, 6), (4, 10), (8, 8), (16, 3)):
        key = ProbeKey(h, d_k)
        scores = [draw.run(key, seed).score for draw in draws for seed in range(SEEDS)]
        error = stdev(scores) / math.sqrt(len(scores))
        assert abs(fmean(scores) - cell.true_means[h][d_k - 1]) < 4 * error


def test_the_truth_is_the_least_of_the_smallest_widths_that_pass() -> None:
    dips = CURVES["dips"]
    assert dips.true_thresholds[4] == 8  # though 9 and 12 fail
    assert dips.true_means[4][8] < 0.99 < dips.true_means[4][7]
    assert dips.true_D_K == 32
    assert dips.true_heads == frozenset({4})


def test_seeds_are_the_same_for_every_rule_and_differ_between_repeats() -> None:
    (cell, draw), (_, again), (_, other) = (EASY.repeat(number) for number in (3, 3, 4))
    key = ProbeKey(2, cell.true_thresholds[2])
    assert draw.run(key, 5) == again.run(key, 5)
    assert draw.run(key, 5).score != other.run(key, 5).score
    assert len({draw.run(key, seed).score for seed in range(SEEDS)}) == SEEDS


def test_the_grid_finds_the_truth_where_seeds_are_many() -> None:
    outcomes = {}
    for seeds in (2, SEEDS):
        cell = CURVES["like (512,64)"]
        outcomes[seeds] = [
            judge(moved, exhaustive_grid(seeds, moved, CountedRuns(draw.run), 0), 0, 0)
            for moved, draw in map(cell.repeat, range(6))
        ]
    few, many = (fmean(abs(one.error or 0) for one in ones) for ones in outcomes.values())
    assert many < few
    cell, draw = EASY.repeat(0)
    outcome = exhaustive_grid(SEEDS, cell, CountedRuns(draw.run), 0)
    assert judge(cell, outcome, 0, 0).error == 0


@pytest.mark.parametrize("rule", RULES)
def test_without_noise_every_rule_finds_the_truth(rule: str) -> None:
    cell, draw = replace(EASY, spread=0.0).repeat(0)
    runs = CountedRuns(draw.run)
    outcome = RULES[rule](cell, runs, 0)
    judged = judge(cell, outcome, runs.trainings, runs.steps)
    assert runs.trainings > 0
    if rule == "tpe":  # sixty probes by chance may miss it, but none passes below
        assert judged.below_target is False
        return
    assert (judged.error, judged.is_best, judged.below_target) == (0, True, False)
    assert judged.covers in (True, None)


@pytest.mark.parametrize("search", [probabilistic_bisection, expected_entropy])
@pytest.mark.parametrize("threshold", [0, 1, 11, 23, 24])
def test_beliefs_end_at_the_threshold_wherever_it_is(search: Any, threshold: int) -> None:
    assert search(24, lambda at: at >= threshold) == threshold


def test_figures_are_means_with_their_errors() -> None:
    ones = [Judged(10, 100, error=error, covers=error < 3) for error in (-1.0, 1.0, 3.0)]
    row = summary([*ones, Judged(50, 500)])
    assert row["bias"] == 1
    assert row["bias_se"] == pytest.approx(2 / math.sqrt(3))
    assert row["rmse"] == pytest.approx(math.sqrt(11 / 3))
    assert (row["covers"], row["covers_se"]) == (pytest.approx(2 / 3), pytest.approx(1 / 3))
    assert (row["below_target"], row["below_target_se"]) == (None, None)
    assert (row["trainings"], row["steps"], row["found"]) == (20, 200, 0.75)


def test_a_winner_is_held_against_the_truth() -> None:
    short = judge(EASY, Outcome(ProbeKey(2, 7), 14, None, frozenset({2, 4})), 1, 2)
    assert EASY.true_D_K == 16
    assert short.error == pytest.approx(100 * math.log(14 / 16))
    assert (short.below_target, short.above_truth, short.within_step) == (True, False, True)
    assert (short.covers, short.covers_heads, short.heads) == (True, True, 2)
    wide = judge(EASY, Outcome(ProbeKey(4, 5), 18, 20, frozenset({4})), 1, 2)
    assert (wide.below_target, wide.above_truth, wide.is_best) == (False, True, False)
    assert (wide.covers, wide.covers_heads) == (False, False)


def test_the_benchmark_prints_a_row_for_each_rule_and_curve() -> None:
    options = ["--repeats", "3", "--rules", "bisection", "--rules", "today"]
    options += ["--curves", "like (64,16)", "--curves", "dips"]
    rows = statistics(*options)
    assert [(row["curve"], row["rule"]) for row in rows] == [
        ("like (64,16)", "bisection"),
        ("like (64,16)", "today"),
        ("dips", "bisection"),
        ("dips", "today"),
    ]
    first = ["rule", "curve", "bias", "rmse", "below_target", "above_truth", "covers"]
    assert list(rows[0])[:9] == [*first, "trainings", "steps"]
    assert {f"{name}_se" for name in list(rows[0])[2:9]} <= set(rows[0])
    assert [row["covers"] is None for row in rows] == [True, False, True, False]
    assert rows[2]["above_truth"] == 1  # halving leaps over a pass below a fail
    assert statistics(*options, "--processes", "1") == rows
