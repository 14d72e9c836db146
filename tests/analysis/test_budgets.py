"""Thresholds as the training budget grows, and the gain of several heads."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from rgr_dist.analysis.budgets.figures import cell_title, gain_words
from rgr_dist.analysis.budgets.section import section
from rgr_dist.analysis.budgets.step_limits import gains, headline, limits, verdict
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import parse_study
from tests.analysis import made_up

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


@pytest.mark.parametrize(
    ("short", "without"),
    [
        ("(64, 16, 20,000 steps)", "(64, 16)"),
        ("(64, 16, 20,000 steps, patience 5)", "(64, 16, patience 5)"),
        ("(64, 16, length 8, 20,000 steps)", "(64, 16, length 8)"),
        ("(64, 16, length 8, 500 steps, patience 5)", "(64, 16, length 8, patience 5)"),
        ("(64, 16, r = 2, 20,000 steps)", "(64, 16, r = 2)"),
    ],
)
def test_a_cell_is_named_without_its_step_limit(short: str, without: str) -> None:
    assert cell_title({"short": short}) == without


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
    study = study_of([(64, 16)], [1000, 2000], heads=[1, 4])
    rows = []
    for cell in study.cells:
        rows.append(made_up.threshold_row(cell, 1, 24, D_K_low=20, D_K_high=30))
        rows.append(made_up.threshold_row(cell, 4, 4, D_K_low=12, D_K_high=20))
    row = gains(made_up.results_of(study, [], rows)).iloc[0]
    assert (row["gain"], row["gain_low"], row["gain_high"]) == (24 / 16, 20 / 20, 30 / 12)


@pytest.mark.parametrize(
    ("of_one", "of_best", "low", "high", "words"),
    [
        ((20, 30), (12, 16), 20 / 16, 30 / 12, "1.50 [1.25–2.50]"),
        ((None, 30), (12, 16), None, 30 / 12, "1.50 [?–2.50]"),
        ((20, None), (12, 16), 20 / 16, None, "1.50 [1.25–?]"),
        ((20, 30), (12, None), None, 30 / 12, "1.50 [?–2.50]"),
        ((None, None), (None, None), None, None, "1.50"),
    ],
)
def test_an_end_of_a_gain_is_known_if_both_that_it_divides_are(
    of_one: tuple[int | None, int | None],
    of_best: tuple[int | None, int | None],
    low: float | None,
    high: float | None,
    words: str,
) -> None:
    study, rows = study_of([(64, 16)], [1000, 2000], heads=[1, 4]), []
    for cell in study.cells:
        for h, d_k, ends in ((1, 24, of_one), (4, 4, of_best)):
            more = dict(zip(("D_K_low", "D_K_high"), ends, strict=True))
            rows.append(made_up.threshold_row(cell, h, d_k, **more))
    results = made_up.results_of(study, [], rows)
    row = gains(results).astype("object").where(lambda table: table.notna(), None).iloc[0]
    assert (row["gain_low"], row["gain_high"]) == (low, high)
    assert gain_words(row) == words
    assert limits(results)["gain"].tolist() == ["cannot tell" if low is None else "stays"]


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        ([2.0, 1.8, 1.5], [2.4, 2.2, 1.9], "shrinks"),
        ([2.0, 1.8, 1.5], [2.4, 2.2, 2.1], "stays"),
        ([1.2, 1.5, 3.0], [1.3, 1.8, None], "stays"),
        ([2.0, 1.8, 1.0], [2.4, 2.2, 1.2], "ends"),
        ([0.9, 1.0, 1.0], [1.1, 1.2, 1.0], "none"),
        ([2.0, 1.8, None], [2.4, 2.2, None], "cannot tell"),
        ([None, 1.8, 1.0], [2.4, 2.2, 1.2], "ends"),
        ([None, 1.0, 1.0], [2.4, 1.2, 1.0], "cannot tell"),
    ],
)
def test_what_becomes_of_the_gain(low: list[Any], high: list[Any], said: str) -> None:
    table = pd.DataFrame({"gain_low": low, "gain_high": high}, dtype="float64")
    assert verdict(table) == said


@pytest.mark.parametrize("open_at", [1000, 2000])
def test_what_an_unfinished_search_has_so_far_decides_nothing(open_at: int) -> None:
    """Of one limit the search of four heads, which would need least, is still to come."""
    study, rows = study_of([(64, 16)], [1000, 2000], heads=[1, 4]), []
    for cell in study.cells:
        is_open = cell.training.max_steps == open_at
        rest = {"D_K_low": 4, "D_K_high": None} if is_open else {}
        rows.append(made_up.threshold_row(cell, 1, 40))
        rows.append(made_up.threshold_row(cell, 4, None if is_open else 4, **rest))
    results = made_up.results_of(study, [], rows)
    table = gains(results).set_index("max_steps")
    assert table["D_K"][open_at] == 40
    assert table.loc[open_at, ["gain", "gain_low", "gain_high"]].isna().all()
    (row,) = limits(results).to_dict("records")
    assert (row["falls"], row["limited_by"] in (None, "unknown")) == (None, True)
    assert row["gain"] == ("stays" if open_at == 1000 else "cannot tell")
    assert headline(results) == []
    shown = section(results)
    assert shown is not None
    points = [point for figure in shown.figures for one in figure.panels for point in one.points]
    best = [point for point in points if point.h != 1 or point.x == open_at]
    assert {point.x for point in best if point.hollow} == {open_at}
    assert all(("so far" in point.text) == (point.x == open_at) for point in points)
    words = [
        table.columns[1].shown(table.rows[0])
        for table in shown.shown
        if table.name == "table-limits"
    ]
    assert words == ["16" if open_at == 1000 else "40, so far"]
