"""Stored tables made up for the tests: a search of known thresholds with seeded noise."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.report.publish import write_report
from rgr_dist.paper import IMPLIED
from rgr_dist.store.schema import OF_FACTS, RUNS, THRESHOLDS
from rgr_dist.study.cell import Cell, Run
from rgr_dist.study.from_yaml import parse_study
from rgr_dist.study.study import Study

HEADS = [1, 2, 4, 8, 16, 32, 64]


def study_of(places: Sequence[tuple[int, int]], **search: Any) -> Study:
    """A study with one cell per (m, d_model)."""
    cells = [{"m": m, "d_model": d_model} for m, d_model in places]
    return parse_study(
        {"name": "made-up", "cells": cells, "search": {"heads": HEADS, "seeds": 10, **search}}
    )


def run_row(cell: Cell, h: int, d_k: int, seed: int, score: float | None, **other: Any) -> dict:
    """A row of ``RUNS``."""
    run = Run(cell=cell, h=h, d_k=d_k, seed=seed)
    limit = cell.training.max_steps
    done = score is not None and score > 0.995
    steps = limit // 4 if done else limit
    row = {
        **dict.fromkeys(OF_FACTS),
        "run_id": run.run_id,
        "cell_id": cell.cell_id,
        "model": cell.model,
        "graph": cell.graph.family,
        "degree": cell.graph.degree,
        "embedding": cell.embedding.family,
        "m": cell.m,
        "d_model": cell.d_model,
        "h": h,
        "d_k": d_k,
        "D_K": h * d_k,
        "seed": seed,
        "context_length": cell.context.length,
        "positive_rate": cell.context.positive_rate,
        "max_steps": limit,
        "trained_to": limit,
        "score": score,
        "val_score": score,
        "threshold_tau": 0.5,
        "null_rate": None,
        "steps": steps,
        "stop_reason": "converged" if done else "max_steps",
        "error": None,
        "engine": "lanes",
        "device": "cpu: made up",
        "seconds": steps * 4e-5,
        "finished_at": pd.Timestamp("2026-01-02T03:04:05Z"),
        "versions": "rgr-dist 0.1.0",
        "git_revision": "0123abc",
        "config": run.config_json,
    } | other
    return {name: row[name] for name in RUNS.names}


def threshold_row(cell: Cell, h: int, d_k: int | None, **other: Any) -> dict:
    """A row of ``THRESHOLDS``."""
    D_K = None if d_k is None else h * d_k
    certificate = None
    if d_k is not None:
        certificate = {"pass": {"d_k": d_k, "D_K": D_K, "mean_score": 0.996, "n_seeds": 10}}
        below = {"d_k": d_k - 1, "D_K": h * (d_k - 1), "mean_score": 0.94, "n_seeds": 2}
        certificate["fail"] = below if d_k > 1 else None
    return {
        "cell_id": cell.cell_id,
        "model": cell.model,
        "graph": cell.graph.family,
        "degree": cell.graph.degree,
        "m": cell.m,
        "d_model": cell.d_model,
        "h": h,
        "d_k": d_k,
        "D_K": D_K,
        "D_K_low": D_K,
        "D_K_high": D_K,
        "status": "open" if d_k is None else "found",
        "mean_score": None if d_k is None else 0.996,
        "n_seeds": None if d_k is None else 10,
        "certificate": json.dumps(certificate) if certificate else None,
        "n_edges": cell.n_edges,
    } | other


def frame(rows: Sequence[dict], schema: pa.Schema) -> pd.DataFrame:
    """Rows as the store hands them over: through Parquet's types."""
    return pa.Table.from_pylist(list(rows), schema=schema).to_pandas()


def results_of(study: Study, runs: Sequence[dict], thresholds: Sequence[dict]) -> StudyResults:
    """The study with these rows."""
    return StudyResults(study, frame(runs, RUNS), frame(thresholds, THRESHOLDS))


class MadeUpCell:
    """A cell whose heads pass from known widths on, searched as the real ones are."""

    def __init__(self, cell: Cell, study: Study) -> None:
        self.cell, self.study = cell, study
        self.D_K, self.best_h = IMPLIED.get((cell.m, cell.d_model), (24, 2))
        self.rows: dict[tuple[int, int, int], dict] = {}

    def score(self, h: int, d_k: int, seed: int) -> float:
        """F1 of one run: sharp in D_K, the seed's luck being the same at every width."""
        off = math.log2(h / self.best_h)
        width = self.D_K * (1 + 0.05 * off**2)
        luck = np.random.default_rng([seed, self.cell.m, self.cell.d_model, h]).normal(0, 0.12)
        shortfall = 10 ** (-2.1 - 6 * math.log2(h * d_k / width) + luck)
        plateau = 0.06 if off < -2 else 0.0
        return 1 - min(0.55, shortfall + plateau) if shortfall > 2e-5 else 1.0 - plateau

    def probe(self, h: int, d_k: int, waves: Sequence[int] = (2, 5, 10)) -> tuple[float, int]:
        """Run waves of seeds until the verdict is certain; the mean and the seeds that ran."""
        allowed = self.study.search.seeds * (1 - self.study.search.target)
        for n in waves:
            scores = [self.score(h, d_k, seed) for seed in range(n)]
            for seed, score in enumerate(scores):
                self.rows.setdefault((h, d_k, seed), run_row(self.cell, h, d_k, seed, score))
            if sum(1 - score for score in scores) > allowed:
                break
        return float(np.mean(scores)), n

    def threshold(self, h: int, cap: int) -> dict:
        """Grow, bisect, certify and top up around the threshold of one head count."""
        target, low, high = self.study.search.target, 0, max(1, round(0.6 * self.D_K / h))
        while self.probe(h, high)[0] < target:
            if h * high >= cap:
                low_bound = {"status": "censored", "D_K_low": h * (high + 1), "D_K_high": None}
                return threshold_row(self.cell, h, None, **low_bound)
            low, high = high, min(2 * high, max(high + 1, cap // h))
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.probe(h, middle)[0] >= target else (middle, high)
        mean, n = self.probe(h, high)
        fail = None
        if low:
            below, seeds = self.probe(h, low)
            fail = {"d_k": low, "D_K": h * low, "mean_score": below, "n_seeds": seeds}
        passed = {"d_k": high, "D_K": h * high, "mean_score": mean, "n_seeds": n}
        return threshold_row(
            self.cell,
            h,
            high,
            D_K_low=h * max(1, high - (mean < 0.992)),
            D_K_high=h * (high + (mean < 0.993)),
            mean_score=mean,
            certificate=json.dumps({"pass": passed, "fail": fail}),
        )

    def thresholds(self) -> list[dict]:
        """Every head, best first, the others pruned beyond the kept margin."""
        rows, best = [], 4 * self.D_K
        for h in sorted(self.study.search.heads, key=lambda h: abs(math.log2(h / self.best_h))):
            cap = int(best * 1.1) if rows else 8 * self.D_K
            row = self.threshold(h, max(h, cap))
            if rows and (row["D_K"] is None or row["D_K"] > cap):
                row = threshold_row(
                    self.cell, h, None, status="pruned", D_K_low=cap // h * h + h, D_K_high=None
                )
            best = min(best, row["D_K"] or best)
            rows.append(row)
        return sorted(rows, key=lambda row: row["h"])


SEARCHED: dict[str, StudyResults] = {}


def search_all(study: Study) -> StudyResults:
    """The study finished: every cell searched, once in a session."""
    key = study.to_yaml()
    if key not in SEARCHED:
        SEARCHED[key] = _search_all(study)
    return SEARCHED[key]


def _search_all(study: Study) -> StudyResults:
    cells = [MadeUpCell(cell, study) for cell in study.cells]
    thresholds = [row for cell in cells for row in cell.thresholds()]
    runs = [row for cell in cells for row in cell.rows.values()]
    return results_of(study, runs, thresholds)


@pytest.fixture(scope="session")
def made_up() -> SimpleNamespace:
    """What this file offers, for the tests beside it."""
    return SimpleNamespace(
        study_of=study_of,
        run_row=run_row,
        threshold_row=threshold_row,
        results_of=results_of,
        search_all=search_all,
    )


@pytest.fixture(scope="session")
def six_cells(tmp_path_factory: pytest.TempPathFactory) -> tuple[StudyResults, Path]:
    """The results and the report folder of six searched cells."""
    results = search_all(study_of([(m, d_model) for m in (64, 128) for d_model in (16, 32, 64)]))
    folder = tmp_path_factory.mktemp("six-cells")
    write_report(results, folder)
    return results, folder
