"""Studies made up for the tests: tables row by row, or a real search on made-up scores."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from rgr_dist.analysis.load import StudyResults, open_results
from rgr_dist.paper import IMPLIED
from rgr_dist.planning.budgets import at_larger_limits
from rgr_dist.planning.search_of import Feed, open_portfolio, stored_runs
from rgr_dist.search.portfolio import Probe
from rgr_dist.store.schema import RUNS
from rgr_dist.store.store import Store
from rgr_dist.study.cell import Cell
from rgr_dist.study.run import Run
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import parse_study
from tests.store import made_up_runs

Row = dict[str, Any]
Score = Callable[[Run], Row]
"""What differs in the row of a run from that of another."""

HEADS = [1, 2, 4, 8, 16, 32, 64]


def study_of(places: Sequence[tuple[int, int]], **search: Any) -> Study:
    """A study with one cell per (m, d_model)."""
    cells = [{"m": m, "d_model": d_model} for m, d_model in places]
    return parse_study(
        {"name": "made-up", "cells": cells, "search": {"heads": HEADS, "seeds": 10, **search}}
    )


def ended(cell: Cell, score: float | None) -> Row:
    """How a run ended: it converged if it came close to the target; without a score it diverged."""
    limit = cell.training.max_steps
    converged = score is not None and score > 0.995
    steps = limit // 4 if converged else limit
    reason = "converged" if converged else "diverged" if score is None else "max_steps"
    told = {"score": score, "val_score": score, "steps": steps, "seconds": steps * 4e-5}
    return told | {"stop_reason": reason}


def run_row(cell: Cell, h: int, d_k: int, seed: int, score: float | None, **other: Any) -> Row:
    """A row of ``RUNS``."""
    return made_up_runs.run_row(h, d_k, seed, cell, **ended(cell, score) | other)


def probe_rows(cell: Cell, scores: Mapping[tuple[int, int], Sequence[float | None]]) -> list[Row]:
    """Runs of a cell by (h, d_k), a seed after another."""
    return [
        run_row(cell, h, d_k, seed, score)
        for (h, d_k), own in scores.items()
        for seed, score in enumerate(own)
    ]


def threshold_row(cell: Cell, h: int, d_k: int | None, **other: Any) -> Row:
    """A row of ``threshold_rows``."""
    D_K = None if d_k is None else h * d_k
    certificate, n_seeds = None, other.get("n_seeds", 10)
    if d_k is not None:
        certificate = {"pass": {"d_k": d_k, "D_K": D_K, "mean_score": 0.996, "n_seeds": n_seeds}}
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
        "fails_above": [],
        "certificate": json.dumps(certificate) if certificate else None,
        "n_edges": cell.n_edges,
    } | other


WHOLE = ["degree", "m", "d_model", "h", "d_k", "D_K", "D_K_low", "D_K_high", "n_seeds", "n_edges"]
WHOLE += ["max_steps", "fresh_seeds", "D_K_first"]
REAL, TEXT = ["mean_score", "fresh_mean"], ["cell_id", "model", "graph", "status", "certificate"]
THRESHOLDS = pa.schema(
    {
        **dict.fromkeys([*TEXT, "because"], pa.string()),
        **dict.fromkeys(WHOLE, pa.int64()),
        **dict.fromkeys(REAL, pa.float64()),
        "fails_above": pa.list_(pa.int64()),
        "confirmed": pa.bool_(),
    }
)
"""The columns of ``planning.tables.threshold_rows``."""


def frame(rows: Sequence[Row], schema: pa.Schema) -> pd.DataFrame:
    """Rows as the store hands them over: through Parquet's types."""
    return pa.Table.from_pylist(list(rows), schema=schema).to_pandas()


def results_of(study: Study, runs: Sequence[Row], thresholds: Sequence[Row]) -> StudyResults:
    """The study with these rows."""
    return StudyResults(study, frame(runs, RUNS), frame(thresholds, THRESHOLDS))


def trained(study: Study, store: Store, score: Score, probes: int | None = None) -> list[Row]:
    """Rows of so many probes, or of all, that the study's search asks for beyond the store's."""
    portfolio = open_portfolio(study, stored_runs(study, store))
    feed, rows = Feed(study, portfolio), []
    while probes != 0 and isinstance(probe := portfolio.ask(), Probe):
        probes = None if probes is None else probes - 1
        for run in feed.runs_of(probe):
            row = made_up_runs.run_row(run.h, run.d_k, run.seed, run.cell, **score(run))
            rows.append(row)
            for told in (row, *at_larger_limits(study, row)):
                feed.tell(told)
        portfolio.release(probe)
    return rows


@cache
def luck(m: int, d_model: int, h: int) -> np.ndarray:
    """Of each seed, the same at every width."""
    return np.random.default_rng([m, d_model, h]).normal(0, 0.35, 64)


def as_the_paper(run: Run) -> Row:
    """Where cells need the paper's widths: few heads stay below the target, two runs go astray."""
    cell, at = run.cell, (run.cell.m, run.cell.d_model, run.h)
    D_K, best_h = IMPLIED[at[:2]]
    off = math.log2(run.h / best_h)
    width = D_K * (1 + 0.04 * off**2)
    lacks = 10 ** (-2.2 - 2.5 * math.log2(run.D_K / width) + luck(*at)[run.seed])
    astray = {(128, 16, 1, 2): None, (64, 16, 16, 3): 0.1}
    score = astray.get((*at, run.seed), 1 - min(0.6, lacks + (0.06 if off < -2 else 0.0)))
    return ended(cell, score) | {"engine": f"made by {run.h % 2}"}


SEARCHED: dict[str, StudyResults] = {}


def search_all(study: Study) -> StudyResults:
    """A study of the paper's cells, finished: searched once in a process."""
    key = study.to_yaml()
    if key not in SEARCHED:
        with tempfile.TemporaryDirectory() as folder:
            store = Store(folder)
            store.append(trained(study, store, as_the_paper))
            SEARCHED[key] = open_results(study, store)
    return SEARCHED[key]
