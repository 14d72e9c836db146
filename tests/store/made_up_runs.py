"""Rows of runs that were never trained, for tests of the store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rgr_dist.store.schema import OF_LAYERS, RUNS
from rgr_dist.study.cell import Cell
from rgr_dist.study.run import Run

CELL = Cell(m=64, d_model=16)
NAMES = RUNS.names  # a new list each time
START = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def run_row(
    h: int = 4, d_k: int = 5, seed: int = 0, cell: Cell = CELL, minute: int = 0, **other: Any
) -> dict[str, Any]:
    """A row of ``RUNS``: trained to the end unless ``other`` says so."""
    run = Run(cell=cell, h=h, d_k=d_k, seed=seed)
    row = {
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
        "max_steps": cell.training.max_steps,
        "trained_to": cell.training.max_steps,
        "score": 0.99,
        "val_score": 0.991,
        "threshold_tau": 0.25,
        "null_rate": None,
        "steps": 12_500,
        "stop_reason": "converged",
        "error": None,
        "engine": "made up",
        "device": "cpu: made up",
        "seconds": 1.5,
        "finished_at": START + timedelta(minutes=minute),
        "versions": "rgr-dist=0.1.0",
        "git_revision": None,
        "config": run.config_json,
        **dict.fromkeys((*OF_LAYERS, "details")),
    }
    assert row.keys() == set(NAMES)
    assert other.keys() <= row.keys()
    return {name: row[name] for name in NAMES} | other


def failed_row(**run: Any) -> dict[str, Any]:
    """A run that could not be trained: no score, but the reason."""
    nothing = {"score": None, "val_score": None, "threshold_tau": None, "steps": 0}
    return run_row(**nothing, stop_reason="failed", error="MemoryError: 3 GB", **run)


def tree(root: Path) -> list[str]:
    """Everything below a folder, by its path there."""
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*"))
