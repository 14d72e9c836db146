"""Score against width: intervals against scipy, and which runs count."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from rgr_dist.analysis.transitions.probes import probes as curves
from tests.analysis import made_up

PLACES = [(64, 16)]


def test_a_probe_is_one_row_with_its_seeds_steps_and_seconds() -> None:
    study = made_up.study_of(PLACES, seeds=3)
    cell = study.cells[0]
    scores = [0.99, 0.97, 0.98]
    runs = [made_up.run_row(cell, 4, 5, seed, score) for seed, score in enumerate(scores)]
    runs.append(made_up.run_row(cell, 2, 9, 0, 0.5))
    table = curves(made_up.results_of(study, runs, []).runs, study)
    assert list(zip(table["h"], table["d_k"], table["D_K"], strict=True)) == [
        (2, 9, 18),
        (4, 5, 20),
    ]
    lone, full = table.to_dict("records")
    assert (lone["n_seeds"], lone["complete"]) == (1, False)
    assert math.isnan(lone["low"])
    assert math.isnan(lone["high"])
    assert full["complete"]
    assert full["mean_score"] == pytest.approx(0.98)
    expected = stats.t.interval(0.95, 2, np.mean(scores), stats.sem(scores))
    assert (full["low"], full["high"]) == pytest.approx(expected)
    assert full["steps"] == 3 * cell.training.max_steps
    assert full["seconds"] == pytest.approx(3 * cell.training.max_steps * 4e-5)


def test_only_the_studys_cells_heads_and_seeds_count() -> None:
    wide = made_up.study_of([(64, 16), (64, 32)], seeds=4)
    study = made_up.study_of(PLACES, seeds=2, heads=[4], extra_seeds=0)
    runs = [
        made_up.run_row(cell, h, 5, seed, 0.9)
        for cell in wide.cells
        for h in (2, 4)
        for seed in range(4)
    ]
    table = curves(made_up.results_of(wide, runs, []).runs, study)
    assert table[["cell_id", "h", "n_seeds"]].values.tolist() == [[study.cells[0].cell_id, 4, 2]]


def test_a_retest_counts_all_its_seeds() -> None:
    study = made_up.study_of(PLACES, seeds=2, extra_seeds=3, confirm_seeds=2)
    cell, scores = study.cells[0], [1.0, 1.0, 0.7, 0.8, 0.9, 0.1, 0.1]
    runs = [made_up.run_row(cell, 4, 5, seed, score) for seed, score in enumerate(scores)]
    runs.append(made_up.run_row(cell, 4, 6, 0, 0.9))
    table = curves(made_up.results_of(study, runs, []).runs, study)
    assert table["n_seeds"].tolist() == [5, 1]
    assert table["mean_score"].tolist() == pytest.approx([0.88, 0.9])


def test_a_diverged_run_scores_zero_and_a_failed_one_is_left_out() -> None:
    study = made_up.study_of(PLACES, seeds=3)
    cell = study.cells[0]
    runs = [
        made_up.run_row(cell, 4, 5, 0, 0.9),
        made_up.run_row(cell, 4, 5, 1, None, stop_reason="diverged"),
        made_up.run_row(cell, 4, 5, 2, None, stop_reason="failed", error="out of memory"),
    ]
    (row,) = curves(made_up.results_of(study, runs, []).runs, study).to_dict("records")
    assert (row["n_seeds"], row["mean_score"]) == (2, pytest.approx(0.45))


def test_no_runs_give_an_empty_table_of_the_same_columns() -> None:
    study = made_up.study_of(PLACES)
    empty = curves(made_up.results_of(study, [], []).runs, study)
    full = curves(made_up.search_all(study).runs, study)
    assert empty.empty
    assert empty.dtypes.drop("cell_id").equals(full.dtypes.drop("cell_id"))


def test_a_table_of_curves_known_by_hand() -> None:
    study = made_up.study_of([(64, 16)], heads=[2], seeds=2)
    (cell,) = study.cells
    runs = [
        made_up.run_row(cell, 2, 5, 0, 0.9, steps=100, seconds=1.5),
        made_up.run_row(cell, 2, 4, 0, 0.8, steps=100, seconds=1.0),
        made_up.run_row(cell, 2, 4, 1, 0.6, steps=300, seconds=2.5),
    ]
    low, high = stats.t.interval(0.95, 1, 0.7, stats.sem([0.8, 0.6]))
    expected = pd.DataFrame(
        {
            "cell_id": [cell.cell_id] * 2,
            "m": [64] * 2,
            "d_model": [16] * 2,
            "degree": [1] * 2,
            "h": [2, 2],
            "d_k": [4, 5],
            "D_K": [8, 10],
            "n_seeds": [2, 1],
            "mean_score": [0.7, 0.9],
            "low": [low, np.nan],
            "high": [high, np.nan],
            "steps": [400, 100],
            "seconds": [3.5, 1.5],
            "complete": [True, False],
        }
    )
    table = curves(made_up.results_of(study, runs, []).runs, study)
    pd.testing.assert_frame_equal(
        table[list(expected)].astype({"cell_id": "object"}), expected.astype({"cell_id": "object"})
    )
    empty = curves(made_up.results_of(study, [], []).runs, study)
    pd.testing.assert_series_equal(empty.dtypes[1:], table.dtypes[1:])
