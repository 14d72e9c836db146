"""The transformer's report: gains paired by seed, the collapse to NULL, and what the page says."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.splits.accuracy import splits_of
from rgr_dist.analysis.splits.findings import collapses, headline
from rgr_dist.store.schema import RUNS
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import parse_study
from tests.analysis import made_up

ALONE, FOUR = [0.50, 0.56, 0.61], [0.70, 0.74, 0.84]


def study_of(**parts: object) -> Study:
    document = {
        "name": "made-up",
        "model": "transformer",
        "cells": [{"m": 64, "d_model": 16}],
        "context": {"length": 8},
        "search": {"mode": "grid", "D_K": [8, 16], "heads": [1, 2, 4], "seeds": 3},
    }
    return parse_study({**document, **parts})


def rows_of(
    study: Study,
    scores: Mapping[tuple[int, int], list[float | None]],
    nulls: Mapping[tuple[int, int], list[float]] | None = None,
) -> StudyResults:
    """Runs of the study's first cell by (h, D_K); a score of None is a run that diverged."""
    rows = []
    for (h, D_K), values in scores.items():
        rates = (nulls or {}).get((h, D_K), [0.0] * len(values))
        for seed, (score, null_rate) in enumerate(zip(values, rates, strict=True)):
            end = {"stop_reason": "diverged", "null_rate": None} if score is None else {}
            row = made_up.run_row(study.cells[0], h, D_K // h, seed, score, null_rate=null_rate)
            rows.append(row | {"stop_reason": "max_steps"} | end)
    return StudyResults(study, pd.DataFrame(rows, columns=RUNS.names), pd.DataFrame())


def test_a_table_of_splits_known_by_hand() -> None:
    study = study_of()
    (cell,) = study.cells
    scores: dict[tuple[int, int], list[float | None]] = {(1, 8): [*ALONE], (2, 8): [0.75, 0.05]}
    runs = rows_of(study, scores, {(1, 8): [0.0, 0.2, 0.4], (2, 8): [0.5, 0.1]})
    table = splits_of(runs)
    one = stats.t.interval(0.95, 2, np.mean(ALONE), stats.sem(ALONE))
    gain = stats.t.interval(0.95, 1, -0.13, stats.sem([0.25, -0.51]))
    expected = pd.DataFrame(
        {
            "cell_id": [cell.cell_id] * 2,
            "m": [64] * 2,
            "d_model": [16] * 2,
            "D_K": [8] * 2,
            "h": [1, 2],
            "d_k": [8, 4],
            "n_seeds": [3, 2],
            "accuracy": [np.mean(ALONE), 0.4],
            "low": [one[0], 0.0],  # of two seeds the interval ends where an accuracy does
            "high": [one[1], 1.0],
            "collapsed": [0, 1],
            "null_rate": [0.2, 0.3],
            "null_runs": [0, 1],
            "n_pairs": [0, 2],
            "gain": [np.nan, -0.13],
            "gain_low": [np.nan, gain[0]],
            "gain_high": [np.nan, gain[1]],
        }
    ).astype({"cell_id": "object"})
    pd.testing.assert_frame_equal(table, expected)
    empty = splits_of(rows_of(study, {}))
    pd.testing.assert_series_equal(empty.dtypes, expected.dtypes)


def test_a_run_that_diverged_answers_nothing_right_and_has_no_null_share() -> None:
    study = study_of()
    runs = rows_of(study, {(1, 8): [0.6, None, 0.6]}, {(1, 8): [0.1, 0.0, 0.3]})
    (row,) = splits_of(runs).to_dict("records")
    assert row["accuracy"] == pytest.approx(0.4)
    assert row["null_rate"] == pytest.approx(0.2)
    assert (row["collapsed"], row["null_runs"]) == (1, 0)


def test_collapsed_runs_and_those_that_answer_null_are_counted_and_placed() -> None:
    study = study_of()  # l = 8: a guess among the context's 16 items is right 0.0625 of the time
    scores = {(1, 16): [0.0, 0.8, 0.0624], (2, 16): [0.9, 0.0625, 0.9]}
    table = splits_of(rows_of(study, scores, {(1, 16): [1.0, 0.0, 0.49]}))
    assert table["collapsed"].tolist() == [2, 0]
    assert table["null_runs"].tolist() == [1, 0]
    assert collapses(table) == (
        "2 of 6 runs collapsed: they score below a random guess among the context's items. "
        "Of all runs, 1 answered mostly NULL."
    )


def test_the_headline_is_the_best_split_and_its_gain_over_one_head() -> None:
    study = study_of()
    scores = {
        (1, 8): ALONE,
        (2, 8): [0.4] * 3,
        (4, 8): FOUR,
        (1, 16): [0.9] * 3,
        (2, 16): [0.8] * 3,
    }
    text, _ = headline(splits_of(rows_of(study, scores)))
    low, high = stats.ttest_rel(FOUR, ALONE).confidence_interval(0.95)
    assert text == "At m = 64, d_model = 16, accuracy is at best 0.900, with 1 head at D_K = 16."
    at_8 = {split: scores[split] for split in scores if split[1] == 8}
    narrow, _ = headline(splits_of(rows_of(study, at_8)))
    assert narrow == (
        "At m = 64, d_model = 16, accuracy is at best 0.760, with 4 heads at D_K = 8: +0.203 over "
        f"one head (95 % interval {low:+.3f} to {high:+.3f})."
    )
    only_four = splits_of(rows_of(study, {(4, 8): FOUR}))
    assert headline(only_four)[0].endswith("accuracy is at best 0.760, with 4 heads at D_K = 8.")
    assert headline(splits_of(rows_of(study, {}))) == ["No run yet."]
