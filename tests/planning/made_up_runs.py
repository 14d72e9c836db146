"""A study of made-up cells, and the rows of its runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pyarrow as pa

from rgr_dist.planning.search_of import Feed, open_portfolio
from rgr_dist.search.portfolio import Portfolio, Probe
from rgr_dist.store.schema import RUNS
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import parse_study
from tests.store.made_up_runs import run_row

WIDTHS = {1: 9, 2: 4, 8: 2}
"""Smallest passing width of each setting of the made-up cells."""
Rows = list[dict[str, Any]]


def study_of(cells: Rows | None = None, **search: Any) -> Study:
    search = {"heads": [1, 2, 8], "seeds": 2, "max_D_K": 24, "keep_within": None} | search
    cells = cells or [{"m": 16, "d_model": 8}]
    return parse_study({"name": "made-up", "cells": cells, "search": search})


def runs_of(rows: Rows) -> pd.DataFrame:
    return pa.Table.from_pylist(rows, schema=RUNS).to_pandas()


def opened(study: Study, rows: Rows | None = None) -> Portfolio:
    """The search of a study that has these rows, or none."""
    return open_portfolio(study, runs_of(rows or []))


def trained(
    study: Study,
    rows: Rows | None = None,
    passes: Callable[[Probe], bool] = lambda probe: probe.value >= WIDTHS[probe.arm],
) -> Rows:
    """These rows and those of every run that the study asks for beyond them, a minute apart."""
    rows, portfolio = list(rows or []), opened(study, rows)
    feed = Feed(study, portfolio)
    while isinstance(probe := portfolio.ask(), Probe):
        score = 1.0 if passes(probe) else 0.5
        for run in feed.runs_of(probe):
            more = {"score": score, "steps": 1000, "graph": run.cell.family}
            row = run_row(run.h, run.d_k, run.seed, run.cell, len(rows), **more)
            assert not feed.knows(row)
            feed.tell(row)
            assert feed.knows(row)
            rows.append(row)
        portfolio.release(probe)
    return rows
