"""Studies whose score is an error: lower is better, in tables, figures and words."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from rgr_dist.analysis.thresholds.best_heads import best_of
from rgr_dist.analysis.transitions.probes import probes_of
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import parse_study
from tests.analysis import made_up
from tests.analysis.written_page import write_report


def value_study(**search: Any) -> Study:
    cells = [{"m": 64, "d_model": 16}]
    search = {"heads": [1, 4, 8], "seeds": 3, "target": 0.5, **search}
    return parse_study({"name": "errors", "model": "value", "cells": cells, "search": search})


def some_results(study: Study, means: dict[int, float]) -> Any:
    """Every head at D_K = 32 with these mean errors; those of at most the target are found.

    One run, of eight heads, diverged.
    """
    (cell,) = study.cells
    runs = [made_up.run_row(cell, 8, 3, 0, None, stop_reason="diverged")]
    thresholds = []
    for h, mean in means.items():
        for seed in range(3):
            row = made_up.run_row(cell, h, 32 // h, seed, mean + 0.01 * (seed - 1))
            runs.append(row | {"threshold_tau": None})
        passed = mean <= study.search.target
        own = {"mean_score": mean, "n_seeds": 3} if passed else {"status": "censored"}
        thresholds.append(made_up.threshold_row(cell, h, 32 // h if passed else None, **own))
    return made_up.results_of(study, runs, thresholds)


def test_a_diverged_run_has_the_worst_error_there_is() -> None:
    study = value_study()
    (cell,) = study.cells
    runs = [
        made_up.run_row(cell, 4, 5, 0, 0.3),
        made_up.run_row(cell, 4, 5, 1, None, stop_reason="diverged"),
    ]
    (row,) = probes_of(made_up.results_of(study, runs, [])).to_dict("records")
    assert (row["n_seeds"], row["mean_score"]) == (2, math.inf)
    assert (row["low"], row["high"]) == (math.inf, math.inf)


def test_a_tie_goes_to_the_smaller_error() -> None:
    study = value_study()
    results = some_results(study, {1: 0.49, 4: 0.42, 8: 0.45})
    (row,) = best_of(results).to_dict("records")
    assert (row["D_K"], row["h_star"], row["mean_score"]) == (32, 4, 0.42)


def test_the_report_says_that_lower_is_better(tmp_path: Path) -> None:
    study = value_study()
    results = some_results(study, {1: 0.7, 4: 0.42, 8: 0.45})
    page = write_report(results, tmp_path).read_text()
    assert "a mean test error (MSE) of at most 0.5" in page
    assert 'id="curves-figure"' in page
    assert 'id="law-figure"' not in page, "one point shows no law"
    assert "widens towards 1" not in page
    assert "lower is better, and the axis is logarithmic" in page
