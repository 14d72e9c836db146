"""A finished study and its report, for the tests that read it."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from rgr_dist.analysis.load import StudyResults
from rgr_dist.study.study_file import parse_study
from tests.analysis import made_up
from tests.analysis.made_up import search_all, study_of
from tests.analysis.written_page import write_report


@pytest.fixture(scope="session")
def six_cells(tmp_path_factory: pytest.TempPathFactory) -> tuple[StudyResults, Path]:
    """The results and the report folder of six searched cells."""
    results = search_all(study_of([(m, d_model) for m in (64, 128) for d_model in (16, 32, 64)]))
    folder = tmp_path_factory.mktemp("six-cells")
    write_report(results, folder)
    return results, folder


@pytest.fixture(scope="session")
def many() -> StudyResults:
    """Seventy-two cells, of which 36 are drawn, as if all had been searched."""
    study = parse_study(
        {
            "name": "many",
            "cells": [{"m": [64, 128, 256, 512], "d_model": [16, 32, 64]}],
            "training": {"learning_rate": [1e-3, 3e-4, 3e-3], "max_steps": [20_000, 160_000]},
            "search": {"heads": made_up.HEADS, "seeds": 2},
        }
    )
    runs, thresholds = [], []
    for cell in study.cells:
        for h in made_up.HEADS:
            d_k = max(3, math.ceil(1.5 * cell.m * math.log2(cell.m) / cell.d_model / h))
            thresholds.append(made_up.threshold_row(cell, h, d_k))
            scores = {(h, d_k - 1): [0.7, 0.8], (h, d_k): [0.992, 0.996], (h, d_k + 2): [1.0, 1.0]}
            runs += made_up.probe_rows(cell, scores)
    return made_up.results_of(study, runs, thresholds)
