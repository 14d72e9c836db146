"""Score against width: intervals against scipy, and which runs count."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from analysis.curves import curves

PLACES = [(64, 16)]


def test_a_probe_is_one_row_with_its_seeds_steps_and_seconds(made_up: SimpleNamespace) -> None:
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


def test_only_the_studys_cells_heads_and_seeds_count(made_up: SimpleNamespace) -> None:
    wide = made_up.study_of([(64, 16), (64, 32)], seeds=4)
    study = made_up.study_of(PLACES, seeds=2, heads=[4])
    runs = [
        made_up.run_row(cell, h, 5, seed, 0.9)
        for cell in wide.cells
        for h in (2, 4)
        for seed in range(4)
    ]
    table = curves(made_up.results_of(wide, runs, []).runs, study)
    assert table[["cell_id", "h", "n_seeds"]].values.tolist() == [[study.cells[0].cell_id, 4, 2]]


def test_a_diverged_run_scores_zero_and_a_failed_one_is_left_out(made_up: SimpleNamespace) -> None:
    study = made_up.study_of(PLACES, seeds=3)
    cell = study.cells[0]
    runs = [
        made_up.run_row(cell, 4, 5, 0, 0.9),
        made_up.run_row(cell, 4, 5, 1, None, stop_reason="diverged"),
        made_up.run_row(cell, 4, 5, 2, None, stop_reason="failed", error="out of memory"),
    ]
    (row,) = curves(made_up.results_of(study, runs, []).runs, study).to_dict("records")
    assert (row["n_seeds"], row["mean_score"]) == (2, pytest.approx(0.45))


def test_no_runs_give_an_empty_table_of_the_same_columns(made_up: SimpleNamespace) -> None:
    study = made_up.study_of(PLACES)
    empty = curves(made_up.results_of(study, [], []).runs, study)
    full = curves(made_up.search_all(study).runs, study)
    assert empty.empty
    assert empty.dtypes.drop("cell_id").equals(full.dtypes.drop("cell_id"))
