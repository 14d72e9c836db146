"""Two studies side by side: pairs of cells, their ratios, and what differs."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.report import side_by_side
from rgr_dist.analysis.report.publish import comparison
from rgr_dist.study.from_yaml import parse_study
from tests.analysis import made_up

NAMES = ("one", "other")


def found(widths: dict[tuple[int, int], int], **search: Any) -> StudyResults:
    """A study of two heads with these d_k by (m, d_model); 0 is censored."""
    study = made_up.study_of(list(widths), heads=[2], **search)
    rows = []
    for cell, d_k in zip(study.cells, widths.values(), strict=True):
        ends = {"D_K_low": 2 * d_k - 2, "D_K_high": 2 * d_k + 2} if d_k else {}
        status = {} if d_k else {"status": "censored", "D_K_low": 99, "D_K_high": None}
        rows.append(made_up.threshold_row(cell, 2, d_k or None, **ends, **status))
    return made_up.results_of(study, [], rows)


@pytest.fixture
def pair() -> tuple[StudyResults, StudyResults]:
    first = {(64, 16): 10, (64, 32): 5, (128, 16): 20, (128, 32): 8, (256, 16): 40}
    second = {(64, 16): 20, (64, 32): 15, (128, 16): 20, (128, 32): 0, (512, 16): 90}
    return found(first), found(second, seeds=5)


def test_cells_of_both_are_paired_and_the_others_named(
    pair: tuple[StudyResults, StudyResults],
) -> None:
    section = side_by_side.cells(pair, NAMES)
    assert section is not None
    (table,) = section.shown
    rows = {row["short"]: row for row in table.rows}
    assert list(rows) == ["(64, 16)", "(64, 32)", "(128, 16)", "(128, 32)"]
    assert section.words == [
        "1 cell of one is not in other: (256, 16).",
        "1 cell of other is not in one: (512, 16).",
    ]
    ratios = {short: row["ratio"] for short, row in rows.items()}
    assert ratios == {"(64, 16)": 2, "(64, 32)": 3, "(128, 16)": 1, "(128, 32)": None}
    ends = (rows["(64, 16)"]["ratio_low"], rows["(64, 16)"]["ratio_high"])
    assert ends == pytest.approx((38 / 22, 42 / 18))
    assert {short for short, row in rows.items() if table.apart(row)} == {"(64, 16)", "(64, 32)"}
    assert rows["(128, 32)"]["words_b"] == "≥ 99"


def test_two_cells_make_no_law() -> None:
    two, three = (
        found({(64, 16): 10, (64, 32): 5}),
        found({(64, 16): 10, (64, 32): 5, (128, 32): 9}),
    )
    section = side_by_side.laws((two, three), NAMES)
    assert section is not None
    line = next(row for row in section.shown[0].rows if row["name"] == "D_K*, all cells")
    assert line["a"] == "no fit: 2 cells with a threshold; a fit needs 3 cells"
    assert line["b"].startswith("D_K* ≈ ")


def test_the_mean_ratio_is_geometric_with_its_interval_over_cells(
    pair: tuple[StudyResults, StudyResults],
) -> None:
    section = side_by_side.summary(pair, NAMES)
    logs = np.log([2, 3, 1])
    low, high = np.exp(stats.t.interval(0.95, 2, logs.mean(), stats.sem(logs)))
    assert section.words[0] == (
        f"other needs {math.exp(logs.mean()):#.3g} times the D_K* of one: the geometric mean over "
        f"3 cells, 95 % t-interval over these cells {low:#.3g} to {high:#.3g}."
    )
    assert section.words[1].startswith("The ratio goes from 1.00 at (m, d_model) = ")


def test_equal_thresholds_are_told_as_such(pair: tuple[StudyResults, StudyResults]) -> None:
    section = side_by_side.summary((pair[0], pair[0]), NAMES)
    assert section.words == ["D_K* is the same in 5 cells."]


def test_without_two_thresholds_there_is_no_ratio() -> None:
    one, censored = found({(64, 16): 10}), found({(64, 16): 0})
    for pair in ((one, censored), (censored, one)):
        section = side_by_side.cells(pair, NAMES)
        assert section is not None
        assert section.figures == []
        (table,) = section.shown
        (row,) = table.rows
        assert [row[name] for name in ("ratio", "ratio_low", "ratio_high", "ratio_words")] == [
            None
        ] * 4
        assert not table.apart(row)
        summary = side_by_side.summary(pair, NAMES)
        assert summary.words == ["No cell has a threshold in both."]


def test_one_ratio_has_no_interval() -> None:
    pair = found({(64, 16): 10}), found({(64, 16): 20})
    assert side_by_side.summary(pair, NAMES).words == [
        "other needs 2.00 times the D_K* of one, in 1 cell."
    ]


def test_only_what_differs_is_told(pair: tuple[StudyResults, StudyResults]) -> None:
    (table,) = side_by_side.differences(pair, NAMES).shown
    assert {row["name"]: (row["a"], row["b"]) for row in table.rows} == {
        "search.seeds": ("10", "5")
    }
    same = side_by_side.differences((pair[0], pair[0]), NAMES)
    assert same.words == ["Nothing: no setting, no origin."]


def test_studies_without_a_cell_in_common_have_a_page() -> None:
    first, second = found({(64, 16): 5}), found({(64, 32): 5})
    page, files = comparison(first, second, NAMES)
    text = re.sub(r"<[^>]+>", "", page)
    assert "We set one beside other: they have no cell in common." in text
    assert "same cells" not in text
    assert "where it was written." in text, "no figure is named"
    assert "No cell has a threshold in both." not in text
    assert {"best-a.csv", "best-b.csv", "study-a.yaml", "study-b.yaml"} == set(files)


def test_accuracies_are_compared_split_by_split() -> None:
    document = {"name": "made-up", "model": "transformer", "cells": [{"m": 64, "d_model": 16}]}
    search = {"mode": "grid", "D_K": [8, 16], "heads": [1, 2], "seeds": 2}
    study = parse_study({**document, "context": {"length": 8}, "search": search})
    (cell,) = study.cells

    def tables(scores: dict[tuple[int, int], float]) -> StudyResults:
        rows = [
            made_up.run_row(cell, h, D_K // h, seed, score, null_rate=0.0)
            for (h, D_K), score in scores.items()
            for seed in range(2)
        ]
        return made_up.results_of(study, rows, [])

    pair = tables({(1, 8): 0.5, (2, 8): 0.75}), tables({(1, 8): 0.625, (1, 16): 0.7})
    section = side_by_side.splits(pair, NAMES)
    assert section is not None
    (row,) = section.shown[0].rows
    assert (row["D_K"], row["h"], row["difference"]) == (8, 1, 0.125)
    assert side_by_side.summary(pair, NAMES).words[0] == (
        "The accuracy of other less that of one is +0.125 on average over 1 split."
    )
    assert side_by_side.cells(pair, NAMES) is None


def test_the_page_is_whole(pair: tuple[StudyResults, StudyResults], tmp_path: Path) -> None:
    page, files = comparison(pair[0], pair[1], NAMES)
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert {"side-by-side.svg", "best-a.csv", "best-b.csv"} <= set(files)
