"""Scores against D_K: known by hand, intervals by scipy; and noise, by hand and by its limits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.noise import noise
from rgr_dist.analysis.probes import probes
from rgr_dist.cli.listing import plain
from tests.analysis import made_up


def test_a_table_of_probes_known_by_hand() -> None:
    study = made_up.study_of([(64, 16)], heads=[2], seeds=2)
    (cell,) = study.cells
    runs = [
        made_up.run_row(cell, 2, 5, 0, 0.9, steps=100, seconds=1.5),
        made_up.run_row(cell, 2, 4, 0, 0.8, steps=100, seconds=1.0),
        made_up.run_row(cell, 2, 4, 1, 0.6, steps=300, seconds=2.5),
        made_up.run_row(cell, 2, 6, 0, 1.0, steps=1, seconds=1.0),
        made_up.run_row(cell, 2, 6, 1, 0.991, steps=1, seconds=1.0),
        made_up.run_row(cell, 2, 6, 2, 0.1, steps=1, seconds=1.0),  # a seed that is not asked for
        made_up.run_row(cell, 2, 5, 1, None, stop_reason="failed", steps=0, seconds=0.0),
    ]
    four, five, six = plain(probes(made_up.results_of(study, runs, [])))
    low, high = stats.t.interval(0.95, 1, 0.7, stats.sem([0.8, 0.6]))
    assert (low, high) != (max(low, 0), min(high, 1))  # cut
    size = {"cell_id": cell.cell_id, "m": 64, "d_model": 16, "degree": 1, "h": 2}
    assert four == size | {
        "d_k": 4, "D_K": 8, "n_seeds": 2, "mean_score": pytest.approx(0.7),
        "low": 0.0, "high": 1.0, "passing": 0, "diverged": 0, "failed": 0,
        "complete": True, "steps": 400, "seconds": 3.5,
    }  # fmt: skip
    told = ("n_seeds", "mean_score", "low", "complete", "failed")
    assert [five[name] for name in told] == [1, 0.9, None, False, 1]
    assert (six["n_seeds"], six["passing"], six["high"]) == (2, 2, 1.0)
    low, _ = stats.t.interval(0.95, 1, 0.9955, stats.sem([1.0, 0.991]))
    assert six["low"] == pytest.approx(low)


def test_a_study_without_runs_has_an_empty_table_with_every_column() -> None:
    study = made_up.study_of([(64, 16)])
    table = probes(made_up.results_of(study, [], []))
    assert table.empty
    assert {"n_seeds", "mean_score", "complete"} <= {*table}


def bracketed(below: list[float], at: list[float], seeds: int = 10) -> StudyResults:
    """One cell of 4 heads with d_k = 5 found, and the scores of 4 and 5 by seed."""
    study = made_up.study_of([(64, 16)], heads=[4], seeds=seeds)
    (cell,) = study.cells
    runs = made_up.probe_rows(cell, {(4, 4): below, (4, 5): at, (4, 6): [1.0] * seeds})
    return made_up.results_of(study, runs, [made_up.threshold_row(cell, 4, 5)])


def test_where_seeds_agree_noise_is_that_of_whole_numbers() -> None:
    (told,) = noise(bracketed([0.5] * 10, [0.999] * 10))
    assert told == pytest.approx(math.log(20 / 16) / math.sqrt(12))


def test_noise_is_what_drawing_the_seeds_again_gives() -> None:
    rng = np.random.default_rng(5)
    at = [*rng.permutation([0.97] * 2 + [0.9999] * 8)]
    (told,) = noise(bracketed([0.5] * 10, at))
    draws = rng.choice(at, (20_000, 10)).mean(axis=1) >= 0.99
    ends = np.where(draws, (math.log(16) + math.log(20)) / 2, (math.log(20) + math.log(24)) / 2)
    assert told == pytest.approx(math.hypot(ends.std(), math.log(20 / 16) / math.sqrt(12)), rel=0.1)


def test_one_seed_or_no_fail_tells_no_noise() -> None:
    assert noise(bracketed([0.5], [0.999], seeds=1)).isna().all()
    study = made_up.study_of([(64, 16)], heads=[4])
    narrowest = [made_up.threshold_row(study.cells[0], 4, 1)]
    runs = made_up.probe_rows(study.cells[0], {(4, 1): [1.0] * 10})
    assert noise(made_up.results_of(study, runs, narrowest)).isna().all()
