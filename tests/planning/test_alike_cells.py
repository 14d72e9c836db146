"""Cells of one size in one study, at several step limits: one run tells of all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from rgr_dist.planning.budgets import trained_steps
from rgr_dist.planning.portfolio import stored_search
from rgr_dist.store.store import Store
from rgr_dist.study.study_file import parse_study
from tests.run_here import thresholds_here
from tests.small_study import SMALL

LIMITS = (400, 800)
SHORT: dict[str, Any] = {
    **SMALL,
    "training": {**SMALL["training"], "max_steps": LIMITS[0]},
    "search": {**SMALL["search"], "retest_steps": LIMITS[1] // LIMITS[0]},
}


def cell(max_steps: int) -> dict[str, Any]:
    return {"m": 16, "d_model": 8, "training": {"max_steps": max_steps}}


def own(rows: list[dict[str, Any]]) -> list[list[Any]]:
    """What a threshold is; of a pruned head a search may know more or less."""
    names = ["h", "max_steps", "status", "d_k", "D_K_high", "mean_score", "n_seeds"]
    low = [row["D_K_low"] if row["status"] == "found" else None for row in rows]
    return [[*(row[name] for name in names), end] for row, end in zip(rows, low, strict=True)]


def test_they_have_the_thresholds_that_each_has_alone(tmp_path: Path) -> None:
    both = parse_study({**SHORT, "cells": [cell(limit) for limit in LIMITS]})
    limits = [one.training.max_steps for one in both.cells]
    assert limits == [400, 800, 1600]
    store = Store(tmp_path / "both")
    together = thresholds_here(both, store)
    assert stored_search(both, store).portfolio.is_done
    alone, runs = [], []
    for limit in limits:
        one = parse_study({**SMALL, "cells": [cell(limit)]})
        alone += thresholds_here(one, Store(tmp_path / str(limit)))
        runs.append(Store(tmp_path / str(limit)).runs())
    assert own(together) == own(alone)
    assert {row["status"] for row in together} >= {"found"}
    assert "budget" in {row["limited_by"] for row in together}

    # Rows read off longer runs are those of separate ones, to the bit.
    shared = store.runs()
    assert len(shared) == len(shared["run_id"].unique())
    compared = ["run_id", "score", "val_score", "threshold_tau", "steps", "stop_reason", "config"]
    common = shared[compared].merge(pd.concat(runs)[compared], on="run_id", suffixes=("", "_alone"))
    assert len(common) > 50
    for name in compared[1:]:
        assert common[name].equals(common[f"{name}_alone"]), name
    read_off = shared["trained_to"] != shared["max_steps"]
    assert read_off.sum() > 20
    assert (shared[read_off]["seconds"] == 0).all()
    assert trained_steps(shared).sum() < shared["steps"].sum()
