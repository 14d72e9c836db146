"""Thresholds as the training budget grows, and the gain of several heads."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import optimize

from rgr_dist.analysis.budgets.section import section
from rgr_dist.analysis.budgets.step_limits import families, gains, limit_of, limits, verdict
from rgr_dist.study.from_yaml import parse_study
from rgr_dist.study.study import Study
from tests.analysis import made_up
from tests.analysis.page_numbers.reading import paragraphs

STEPS = [1000, 2000, 4000, 8000, 16_000]


def study_of(sizes: list[tuple[int, int]], steps: list[int] = STEPS, **search: Any) -> Study:
    cells = [{"m": m, "d_model": d_model} for m, d_model in sizes]
    training = {"max_steps": steps}
    search = {"heads": [1, 2, 4]} | search
    return parse_study({"name": "x", "cells": cells, "training": training, "search": search})


def results_of(study: Study, d_k: dict[int, list[int | None]]) -> Any:
    """Of every head the d_k at each limit; None where no width passes."""
    rows = []
    for at, cell in enumerate(study.cells):
        for h, widths in d_k.items():
            width = widths[at % len(STEPS)]
            more = {"status": "censored", "D_K_low": 97} if width is None else {}
            rows.append(made_up.threshold_row(cell, h, width, **more))
    return made_up.results_of(study, [], rows)


def test_the_best_head_count_stands_beside_one_head() -> None:
    study = study_of([(64, 16)])
    d_k = {1: [None, 40, 30, 20, 12], 2: [30, 15, 9, 7, 6], 4: [9, 8, 8, 8, 8]}
    table = gains(results_of(study, d_k))
    assert table["max_steps"].tolist() == STEPS
    assert table["D_K"].tolist() == [36, 30, 18, 14, 12]
    assert table["h_star"].tolist() == [4, 2, 2, 2, 1]
    assert table["D_K_one"].tolist() == [pd.NA, 40, 30, 20, 12]
    assert table["gain"].tolist()[1:] == [40 / 30, 30 / 18, 20 / 14, 1.0]
    assert math.isnan(table["gain"][0])
    assert table["gain_low"][0] == 97 / 36
    assert table["one_status"].tolist() == ["censored", *["found"] * 4]


def test_a_gain_has_the_ends_of_both_intervals() -> None:
    study = study_of([(64, 16)], [1000, 2000])
    rows = []
    for cell in study.cells:
        rows.append(made_up.threshold_row(cell, 1, 24, D_K_low=20, D_K_high=30))
        rows.append(made_up.threshold_row(cell, 4, 4, D_K_low=12, D_K_high=20))
    row = gains(made_up.results_of(study, [], rows)).iloc[0]
    assert (row["gain"], row["gain_low"], row["gain_high"]) == (24 / 16, 20 / 20, 30 / 12)


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        ([2.0, 1.8, 1.5], [2.4, 2.2, 1.9], "shrinks"),
        ([2.0, 1.8, 1.5], [2.4, 2.2, 2.1], "survives"),
        ([1.2, 1.5, 3.0], [1.3, 1.8, None], "survives"),
        ([2.0, 1.8, 1.0], [2.4, 2.2, 1.2], "vanishes"),
        ([0.9, 1.0, 1.0], [1.1, 1.2, 1.0], "none"),
        ([2.0, 1.8, None], [2.4, 2.2, None], "cannot tell"),
    ],
)
def test_what_becomes_of_the_gain(low: list[Any], high: list[Any], said: str) -> None:
    table = pd.DataFrame({"gain_low": low, "gain_high": high}, dtype="float64")
    assert verdict(table) == said


def test_what_limits_a_cell_and_what_an_endless_budget_would_need() -> None:
    study = study_of([(64, 16), (64, 32)])
    d_k = {1: [80, 40, 30, 25, 24], 2: [20, 12, 9, 8, 8], 4: [None, 9, 6, 5, 4]}
    results = results_of(study, d_k)
    table = limits(results)
    assert [len(family) for family in families(study)] == [5, 5]
    assert table["cell_id"].tolist() == [study.cells[4].cell_id, study.cells[9].cell_id]
    assert table["limited_by"].tolist() == ["capacity", "capacity"]
    assert table["gain"].tolist() == ["shrinks", "shrinks"]  # from 80 / 40 to 24 / 16
    falls, survives = paragraphs(section(results))
    assert "falls between the two largest step limits at 0 of 2 cells" in falls
    assert "survives, with its whole interval, at 2 of 2 cells." in survives
    d_k[4][-1] = 3
    results = results_of(study, d_k)
    assert limits(results)["limited_by"].tolist() == ["budget", "budget"]
    assert "at 2 of 2 cells" in paragraphs(section(results))[0]


def curve(limit: float, a: float, b: float, n: int = 8) -> tuple[list[float], list[float]]:
    steps = [5000.0 * 2**i for i in range(n)]
    return steps, [limit + a * (step / 5000) ** -b for step in steps]


def test_a_known_limit_is_found_as_by_scipys_curve_fit() -> None:
    steps, D_K = curve(14.0, 30.0, 1.0)
    rounded = [float(math.ceil(value)) for value in D_K]
    limit = limit_of(steps, rounded, [v - 1 for v in rounded], [v + 1 for v in rounded])

    def law(t: Any, end: float, a: float, b: float) -> Any:
        return end + a * (t / 5000) ** -b

    (end, _, _), _ = optimize.curve_fit(law, steps, rounded, p0=(10, 30, 1))
    assert abs(limit.D_K - end) < 0.3
    assert limit.low < 14.5 < limit.high
    assert (limit.n, limit.reason) == (8, None)


def test_where_the_curve_does_not_level_off_nothing_is_extrapolated() -> None:
    steps, D_K = curve(0.0, 60.0, 0.3)
    limit = limit_of(steps, D_K, [v - 1 for v in D_K], [v + 1 for v in D_K])
    assert (limit.D_K, limit.reason) == (None, "the curve does not level off within the budgets")
    few = limit_of(steps[:3], D_K[:3], D_K[:3], D_K[:3])
    assert (few.D_K, few.reason) == (None, "fewer than 4 budgets have a threshold")
    jumps = [20.0, 60.0, 20.0, 60.0, 20.0]
    bad = limit_of(steps[:5], jumps, jumps, jumps)
    assert (bad.D_K, bad.reason) == (None, "D_K does not fall as a power of the budget")


def test_the_interval_covers_the_limit_as_often_as_it_says() -> None:
    """Normal noise of known size about a known curve: 95 % of some hundred intervals cover."""
    chance = random.Random(1)
    steps, D_K = curve(20.0, 40.0, 0.8)
    covered = []
    for _ in range(150):
        noisy = [value + chance.gauss(0, 1) for value in D_K]
        limit = limit_of(steps, noisy, [v - 2 for v in noisy], [v + 2 for v in noisy])
        if limit.low is not None:
            covered.append(limit.low <= 20.0 <= limit.high)
    assert len(covered) > 100
    assert 0.9 <= np.mean(covered) <= 1.0


def test_thresholds_of_many_heads_are_rounded_up_and_the_limit_is_not_above_what_passes() -> None:
    """Thresholds rounded up to multiples of h: 48 at the last three limits, 45.4 without rounding.

    Taken as they are, their curve would level off above 48, which passes.
    """
    steps, D_K = curve(45.0, 30.0, 0.9)
    heads = [32, 16, 8, 8, 8, 4, 4, 4]
    rounded = [math.ceil(value / h) * h for value, h in zip(D_K, heads, strict=True)]
    assert rounded[-3:] == [48, 48, 48]
    low = [value - h for value, h in zip(rounded, heads, strict=True)]
    limit = limit_of(steps, rounded, low, rounded, heads)
    assert limit.low <= 45.0 <= limit.high <= 48.0
    assert limit.low > 40
