"""Thresholds as training lengthens, and the gain of several heads."""

from __future__ import annotations

from typing import Any

import pytest

from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.training_time import gains
from rgr_dist.cli.listing import plain
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import parse_study
from tests.analysis import made_up

STEPS = [1000, 2000, 4000, 8000, 16_000]


def study_of(sizes: list[tuple[int, int]], steps: list[int], heads: list[int]) -> Study:
    cells = [{"m": m, "d_model": d_model} for m, d_model in sizes]
    training, search = {"max_steps": steps}, {"heads": heads}
    return parse_study({"name": "x", "cells": cells, "training": training, "search": search})


def of_two(ends: dict[int, tuple[Any, Any]], status: str = "found") -> StudyResults:
    """One head at D_K = 24 and four at 16, the same at two limits."""
    study, rows = study_of([(64, 16)], [1000, 2000], [1, 4]), []
    for cell in study.cells:
        for h, d_k in ((1, 24), (4, 4)):
            more = dict(zip(("D_K_low", "D_K_high"), ends[h], strict=True))
            rows.append(made_up.threshold_row(cell, h, d_k, status=status, **more))
    return made_up.results_of(study, [], rows)


def test_the_best_head_count_stands_beside_one_head() -> None:
    study, rows = study_of([(64, 16)], STEPS, [1, 2, 4]), []
    d_k = {1: [None, 40, 30, 20, 12], 2: [30, 15, 9, 7, 6], 4: [9, 8, 8, 8, 8]}
    for at, cell in enumerate(study.cells):
        for h, widths in d_k.items():
            more = {} if widths[at] else {"status": "censored", "D_K_low": 97}
            rows.append(made_up.threshold_row(cell, h, widths[at], **more))
    table = gains(made_up.results_of(study, [], rows))
    assert table["max_steps"].tolist() == STEPS
    assert set(table["family"]) == {study.cells[-1].cell_id}
    assert table["D_K"].tolist() == [36, 30, 18, 14, 12]
    assert table["h_star"].tolist() == [4, 2, 2, 2, 1]
    told = plain(table)
    assert [row["D_K_one"] for row in told] == [None, 40, 30, 20, 12]
    assert [row["gain"] for row in told] == [None, 40 / 30, 30 / 18, 20 / 14, 1.0]
    assert told[0]["gain_low"] == 97 / 36
    assert table["one_status"].tolist() == ["censored", *["found"] * 4]


@pytest.mark.parametrize(
    ("of_one", "of_best", "low", "high"),
    [
        ((20, 30), (12, 16), 20 / 16, 30 / 12),
        ((None, 30), (12, 16), None, 30 / 12),
        ((20, None), (12, 16), 20 / 16, None),
        ((20, 30), (12, None), None, 30 / 12),
        ((None, None), (None, None), None, None),
    ],
)
def test_an_end_of_a_gain_is_known_if_both_that_it_divides_are(
    of_one: Any, of_best: Any, low: float | None, high: float | None
) -> None:
    row, _ = plain(gains(of_two({1: of_one, 4: of_best})))
    assert (row["gain"], row["gain_low"], row["gain_high"]) == (24 / 16, low, high)


def test_an_open_search_has_no_gain_yet() -> None:
    table = gains(of_two({1: (20, 30), 4: (12, 16)}, status="open"))
    assert table[["gain", "gain_low", "gain_high"]].isna().all().all()


def test_cells_of_one_limit_are_left_out() -> None:
    cells = [{"m": 64, "d_model": 16, "training": {"max_steps": [1000, 4000]}}]
    cells.append({"m": 32, "d_model": 16})
    study = parse_study({"name": "x", "cells": cells, "search": {"heads": [1]}})
    rows = [made_up.threshold_row(cell, 1, 20) for cell in study.cells]
    assert set(gains(made_up.results_of(study, [], rows))["m"]) == {64}
