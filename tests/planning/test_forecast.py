"""What a study still needs, where probes have more seeds, or fail further up, than expected."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import product
from typing import Any

import pytest

from rgr_dist.planning.bracket_signs import Sign, accuracy_sign
from rgr_dist.planning.forecast import (
    PROJECTIONS,
    STEP_COST,
    Forecast,
    forecast,
    step_cost,
)
from rgr_dist.planning.search_of import expected
from rgr_dist.search.portfolio import Portfolio, Probe
from rgr_dist.study.cell import Cell
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import parse_study
from tests.planning.made_up_runs import opened, study_of
from tests.store.made_up_runs import run_row


def with_verdicts(study: Study, passes_from: int) -> Portfolio:
    """The search of one cell of one head, once every verdict that it needs is known."""
    (cell,) = study.cells
    rows: list[dict[str, Any]] = []
    while True:
        portfolio = opened(study, rows)
        if portfolio.search(cell.cell_id).needs[0].want not in ("look", "verdict"):
            return portfolio
        probe = portfolio.ask()
        assert isinstance(probe, Probe)
        score = 1.0 if probe.value >= passes_from else 0.5
        rows += [run_row(1, probe.value, seed, cell, score=score) for seed in probe.seeds]


def test_seeds_beyond_those_that_a_fail_takes_save_no_run_of_other_probes() -> None:
    """Of 10 seeds, neither 2 nor 5 at 0.985 decide against 0.99; a fail takes 2 as a rule."""
    study = study_of(heads=[1], seeds=10, confirm_seeds=0)
    (cell,) = study.cells
    first = opened(study).ask()
    assert isinstance(first, Probe)
    assert first.value > 1
    known = [run_row(1, first.value, seed, cell) for seed in range(10)]
    below = opened(study, known).ask()
    assert isinstance(below, Probe)
    assert below.value < first.value
    left = []
    for count in (2, 5):
        rows = [run_row(1, below.value, seed, cell, score=0.985) for seed in range(count)]
        left += forecast(study, opened(study, known + rows))
    assert left[0] == left[1]
    assert left[0].runs >= 0


def test_a_width_below_one_that_failed_is_expected_to_fail() -> None:
    """The law expects a threshold of a few; 19 has failed, and its last two go to the limit."""
    study = study_of(heads=[1], seeds=3, confirm_seeds=0)
    (cell,) = study.cells
    portfolio = with_verdicts(study, passes_from=20)
    (left,) = forecast(study, portfolio)
    assert (left.runs, left.steps, left.at_least) == (2, 2 * cell.training.max_steps, True)


@pytest.mark.parametrize("schedule", ["constant", "cosine"])
def test_runs_that_no_longer_limit_brings_along_are_left(schedule: str) -> None:
    training = {"max_steps": [1000, 2000, 4000], "schedule": schedule}
    study = study_of([{"m": 16, "d_model": 8, "training": training}])
    left = forecast(study, opened(study))
    middle = left[[cell.training.max_steps for cell in study.cells].index(2000)]
    assert (middle.runs > 0) == (middle.steps > 0) == (schedule == "cosine")


def test_fresh_seeds_are_forecast_beside_those_that_selected() -> None:
    study = study_of(heads=[1], seeds=1, confirm_seeds=5)
    portfolio = with_verdicts(study, passes_from=3)
    (left,) = forecast(study, portfolio)
    assert left.runs == 5


@pytest.mark.parametrize(
    ("seeds", "sign"),
    [(range(10), Sign("1.000 (3)", "found")), ([7, 8], Sign("·", "untried"))],
)
def test_a_means_sign_counts_the_seeds_of_its_study_at_the_largest_width(
    seeds: Iterable[int], sign: Sign
) -> None:
    study = study_of(heads=[1, 2], seeds=3)
    (cell,) = study.cells
    rows = [run_row(1, 4, seed, cell, score=float(seed < 3)) for seed in seeds]
    rows += [run_row(2, 6, 0, cell, score=0.2), run_row(1, 5, 7, cell, score=0.2)]
    rows += [run_row(1, 3, 0, cell, score=0.2)] if len(rows) > 9 else []
    state = opened(study, rows).search(cell.cell_id)
    assert accuracy_sign(state, 1) == sign


@pytest.mark.parametrize(
    ("h", "iterations", "each"), [(1, 7, 7), (16, 7, 7), (1, 700, 700), (16, 700, PROJECTIONS)]
)
def test_projections_take_all_steps_where_they_fail_and_a_hundred_where_they_pass(
    h: int, iterations: int, each: int
) -> None:
    model = {"construction": "ours", "iterations": iterations}
    search = {"heads": [h], "mode": "grid", "D_K": [8 * h], "seeds": 3}
    document = {"name": "x", "model": model, "cells": [{"m": 16, "d_model": 8}], "search": search}
    study = parse_study(document)
    (left,) = forecast(study, opened(study))
    (cell,) = study.cells
    assert (left.probes, left.runs, left.steps) == (1, 3, 3 * each)
    assert left.work == left.steps * step_cost(cell, h * cell.d_model)


@pytest.mark.parametrize("known", [0, 1, 3])
def test_of_a_grid_wide_heads_converge_halfway_and_narrow_ones_go_on_to_the_limit(
    known: int,
) -> None:
    """Half as much again is expected of D_K for each factor of two from the best head count."""
    heads, widths = [1, 2, 8], [8, 16, 24, 32, 64]
    study = study_of(mode="grid", heads=heads, D_K=widths, max_D_K=None, seeds=3)
    (cell,) = study.cells
    rows = [run_row(1, 64, seed, cell) for seed in range(known)]
    (left,) = forecast(study, opened(study, rows))
    (best_h, best_D_K), limit = expected(cell), cell.training.max_steps
    steps = dict.fromkeys(widths, 0.0)
    for h, D_K in product(heads, widths):
        needed = best_D_K * (1 + abs(math.log2(h / best_h)) / 2)
        seeds = 3 - known * ((h, D_K) == (1, 64))
        steps[D_K] += seeds * limit * (0.5 if D_K // h >= math.ceil(needed / h) else 1.0)
    work = sum(step_cost(cell, D_K) * taken for D_K, taken in steps.items())
    assert left == Forecast(
        15 - (known == 3), 45 - known, sum(steps.values()), pytest.approx(work), False
    )


@pytest.mark.parametrize(
    ("cell", "multiply_adds"),
    [
        ({"m": 64, "d_model": 16, "context": {"length": 5}}, 6 * 5 * 16 * 32 + STEP_COST),
        ({"m": 64, "d_model": 16, "model": "ours"}, 2 * 64**2 * 32),
        ({"m": 64, "d_model": 2, "model": "one-head"}, 4000 * 64**2 * 2 + 4 * 2**6),
        ({"m": 16, "d_model": 64, "model": "one-head"}, 4000 * 16**2 * 64 + 4 * 64**6),
        (
            {"m": 64, "d_model": 16, "model": "transformer"}
            | {"training": {"batch_size": 7, "weight_decay": 0.1}},
            7 * (6 * 16 * (32 + 16) + 2 * 64 * 16),
        ),
    ],
)
def test_a_step_costs_the_products_of_its_model(cell: dict[str, Any], multiply_adds: int) -> None:
    assert step_cost(Cell.model_validate(cell), 32) == multiply_adds
