"""The search against the exhaustive grid, on a cell of the paper: every width of every head."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from rgr_dist.engines import make_engine
from rgr_dist.replay import open_portfolio, threshold_rows
from rgr_dist.results.store import Store
from rgr_dist.study import Run, Study
from rgr_dist.study_file import parse_study
from rgr_dist.trainable import train_rows
from search.protocol import Probe, Signal

HEADS = [1, 2, 4, 8, 16, 32, 64]
LARGEST = 64
SEEDS = 10


def study_of(d_model: int, **search: Any) -> Study:
    return parse_study(
        {
            "name": "exhaustive",
            "cells": [{"m": 64, "d_model": d_model}],
            "search": {"heads": HEADS, "seeds": SEEDS, **search},
        }
    )


def run_here(study: Study, store: Store) -> list[dict[str, Any]]:
    """Run a study in this process, one probe at a time; returns its thresholds."""
    engine = make_engine("fused", threads=2)
    portfolio = open_portfolio(study, store.runs())
    cells = {cell.cell_id: cell for cell in study.cells}
    while (probe := portfolio.ask()) is not Signal.DONE:
        assert isinstance(probe, Probe)
        cell = cells[probe.cell]
        runs = [Run(cell=cell, h=probe.h, d_k=probe.d_k, seed=seed) for seed in probe.seeds]
        rows = train_rows(engine, runs)
        store.append(rows)
        for row in rows:
            portfolio.tell(probe.cell, probe.h, probe.d_k, row["seed"], row["score"])
        portfolio.release(probe)
    return threshold_rows(study, portfolio)


@pytest.mark.slow
@pytest.mark.parametrize("d_model", [16, 32])
def test_the_search_finds_what_the_exhaustive_grid_finds(d_model: int, tmp_path: Path) -> None:
    store = Store(tmp_path)
    every_width = list(range(1, LARGEST + 1))
    run_here(study_of(d_model, mode="grid", D_K=every_width), store)
    runs = store.runs()
    means = runs.groupby(["h", "d_k"])["score"].agg(["mean", "count"])
    assert len(means) == sum(LARGEST // h for h in HEADS)
    assert (means["count"] == SEEDS).all()
    smallest = {}
    for h in HEADS:
        mean = means.loc[h]["mean"]
        smallest[h] = min(mean.index[mean >= 0.99], default=None)
    best = min(h * d_k for h, d_k in smallest.items() if d_k is not None)

    for keep_within in (0.10, 0.5, None):
        alone = Store(tmp_path / f"{keep_within}")
        study = study_of(d_model, max_D_K=LARGEST, keep_within=keep_within, intervals=False)
        found = {row["h"]: row for row in run_here(study, alone)}
        margin = math.inf if keep_within is None else math.floor(best * (1 + keep_within))
        for h, d_k in smallest.items():
            if d_k is not None and h * d_k <= margin:
                assert (found[h]["status"], found[h]["d_k"]) == ("found", d_k)
            elif keep_within is None:
                assert found[h]["status"] == "censored"
            else:
                assert found[h]["status"] == "pruned"
        trained = alone.runs().merge(runs, on="run_id", suffixes=("", "_grid"))
        assert (trained["score"] == trained["score_grid"]).all()
        assert len(alone.runs()) < len(runs)
