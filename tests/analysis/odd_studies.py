"""Results that a page must tell of though there is little or nothing to show."""

from __future__ import annotations

import json
from pathlib import Path

from rgr_dist.analysis.load import StudyResults
from rgr_dist.study.study_file import parse_study
from tests.analysis.made_up import results_of, run_row, search_all, study_of, threshold_row

GRID = [(m, d_model) for m in (64, 128) for d_model in (16, 32, 64)]
CENSORED = {"status": "censored", "D_K_low": 97, "D_K_high": None}


def empty(folder: Path) -> StudyResults:
    return results_of(study_of(GRID), [], [])


def half_done(folder: Path) -> StudyResults:
    study = study_of(GRID[:4], heads=[1, 2])
    first = study.cells[0]
    known = threshold_row(first, 2, None, D_K_low=14, D_K_high=24)
    runs = [run_row(first, 2, 7, seed, 0.8) for seed in range(2)]
    return results_of(study, runs, [threshold_row(first, 1, 21), known])


def all_censored(folder: Path) -> StudyResults:
    study = study_of(GRID[:4], heads=[1])
    rows = [threshold_row(cell, 1, None, **CENSORED) for cell in study.cells]
    runs = [run_row(cell, 1, 96, seed, 0.9) for cell in study.cells for seed in range(2)]
    return results_of(study, runs, rows)


def inconsistent(folder: Path) -> StudyResults:
    study = study_of(GRID[:2], heads=[1])
    ends = {"pass": {"d_k": 6, "D_K": 6, "mean_score": 0.991, "n_seeds": 10},
            "fail": {"d_k": 8, "D_K": 8, "mean_score": 0.98, "n_seeds": 10}}  # fmt: skip
    crossed = {"status": "inconsistent", "D_K_low": 6, "D_K_high": 9}
    rows = [threshold_row(study.cells[0], 1, None, **CENSORED)]
    rows.append(threshold_row(study.cells[1], 1, None, **crossed, certificate=json.dumps(ends)))
    return results_of(study, [], rows)


def one_cell(folder: Path) -> StudyResults:
    return search_all(study_of(GRID[:1]))


def one_seed(folder: Path) -> StudyResults:
    return search_all(study_of(GRID[:4], seeds=1))


def diverged(folder: Path) -> StudyResults:
    study = study_of(GRID[:1], heads=[1])
    runs = [run_row(study.cells[0], 1, 8, seed, None) for seed in range(3)]
    failed = {"stop_reason": "failed", "error": "out of <b>memory</b>"}
    return results_of(study, [*runs, run_row(study.cells[0], 1, 8, 3, None, **failed)], [])


def limited(folder: Path) -> StudyResults:
    """One threshold would be lower with more training, two would not."""
    study = study_of(GRID[:2], heads=[2, 4], retest_steps=4)
    one, _, other, _ = study.cells
    rows = [
        threshold_row(one, 2, 10, limited_by="budget"),
        threshold_row(one, 4, 6, limited_by="unknown"),
        threshold_row(other, 2, 4, limited_by="budget"),
        threshold_row(other, 4, None, status="pruned"),
    ]
    return results_of(study, [], rows)


def dense(folder: Path) -> StudyResults:
    """Cells that differ in their degree alone."""
    graph = {"family": "regular", "degree": [1, 4, 8, 32]}
    search = {"heads": [1, 2], "seeds": 10}
    cells = [{"m": 128, "d_model": 32}]
    study = parse_study({"name": "made-up", "cells": cells, "graph": graph, "search": search})
    rows = []
    for cell, d_k in zip(study.cells, (9, 30, 50, 96), strict=True):
        rows.append(threshold_row(cell, 2, d_k))
        rows.append(threshold_row(cell, 1, None, status="pruned", D_K_low=3 * d_k))
    return results_of(study, [], rows)


def html_in_names(folder: Path) -> StudyResults:
    graphs = []
    for i in range(2):
        file = folder / f"<img src=x onerror=alert({i})><b>&\"'.csv"
        file.write_text(f"0,1\n1,{i + 2}\n")
        graphs.append({"family": "edges", "file": str(file)})
    cells = [{"m": 16, "d_model": 8, "graph": graph} for graph in graphs]
    search = {"heads": [1], "seeds": 2}
    study = parse_study({"name": "made-up", "cells": cells, "search": search}, folder)
    markup = {"engine": "<script>alert(2)</script>", "device": "<img src=y onerror=alert(3)>"}
    runs = [run_row(cell, 1, 3, 0, 0.999, **markup) for cell in study.cells]
    return results_of(study, runs, [threshold_row(cell, 1, 3) for cell in study.cells])


ODD = {
    "empty": empty,
    "half done": half_done,
    "all censored": all_censored,
    "inconsistent": inconsistent,
    "one cell": one_cell,
    "one seed": one_seed,
    "diverged": diverged,
    "limited": limited,
    "dense": dense,
    "HTML in names": html_in_names,
}
