"""Score against width: intervals against scipy, and which runs count."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from rgr_dist.analysis.transitions.probes import probes_of
from tests.analysis import made_up

PLACES = [(64, 16)]


def test_a_retest_counts_all_its_seeds() -> None:
    study = made_up.study_of(PLACES, seeds=2, extra_seeds=3, confirm_seeds=2)
    cell, scores = study.cells[0], [1.0, 1.0, 0.7, 0.8, 0.9, 0.1, 0.1]
    runs = [made_up.run_row(cell, 4, 5, seed, score) for seed, score in enumerate(scores)]
    runs.append(made_up.run_row(cell, 4, 6, 0, 0.9))
    table = probes_of(made_up.results_of(study, runs, []))
    assert table["n_seeds"].tolist() == [5, 1]
    assert table["mean_score"].tolist() == pytest.approx([0.88, 0.9])


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
    table = probes_of(made_up.results_of(study, runs, []))
    pd.testing.assert_frame_equal(
        table[list(expected)].astype({"cell_id": "object"}), expected.astype({"cell_id": "object"})
    )
    empty = probes_of(made_up.results_of(study, [], []))
    pd.testing.assert_series_equal(empty.dtypes[1:], table.dtypes[1:])
