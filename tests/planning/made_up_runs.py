"""A study of made-up cells, and the rows of its runs that the search reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pyarrow as pa

from rgr_dist.planning.portfolio import open_portfolio
from rgr_dist.search.protocol import Probe
from rgr_dist.store.schema import RUNS
from rgr_dist.study.cell import Cell
from rgr_dist.study.run import Run
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import parse_study

WIDTHS = {1: 9, 2: 4, 8: 2}
"""Smallest passing d_k of each head of the made-up cells."""


def study_of(cells: list[dict[str, Any]] | None = None, **search: Any) -> Study:
    search = {"heads": [1, 2, 8], "seeds": 2, "max_D_K": 24, "keep_within": None} | search
    cells = cells or [{"m": 16, "d_model": 8}]
    return parse_study({"name": "made-up", "cells": cells, "search": search})


def run_row(cell: Cell, h: int, d_k: int, seed: int, **other: Any) -> dict[str, Any]:
    """What the search reads of a run."""
    run = Run(cell=cell, h=h, d_k=d_k, seed=seed)
    row = {"run_id": run.run_id, "cell_id": cell.cell_id, "h": h, "d_k": d_k, "seed": seed}
    return row | {"score": 1.0, "stop_reason": "converged"} | other


def runs_of(rows: list[dict[str, Any]]) -> pd.DataFrame:
    return pa.Table.from_pylist(rows, schema=RUNS).to_pandas()


def trained(
    study: Study,
    rows: list[dict[str, Any]] | None = None,
    passes: Callable[[Probe], bool] = lambda probe: probe.value >= WIDTHS[probe.arm],
) -> list[dict[str, Any]]:
    """Rows of every run that the study asks for beyond these rows."""
    rows = list(rows or [])
    cells = {cell.cell_id: cell for cell in study.cells}
    while isinstance(probe := open_portfolio(study, runs_of(rows)).ask(), Probe):
        score = 1.0 if passes(probe) else 0.5
        rows += [
            run_row(cells[probe.cell], probe.arm, probe.value, seed, score=score)
            for seed in probe.seeds
        ]
    return rows
