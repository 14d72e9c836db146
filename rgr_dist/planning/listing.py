"""What ``rgr plan`` and ``rgr runs`` list: no training, no Ray."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pandas as pd

from rgr_dist.planning.budgets import records
from rgr_dist.planning.forecast import Forecast, forecast, seconds_per_work, work_done
from rgr_dist.planning.search_of import stored_runs, stored_search
from rgr_dist.store.schema import OF_LAYERS
from rgr_dist.store.store import Store
from rgr_dist.study.cell import Cell
from rgr_dist.study.study import Study

Rows = list[dict[str, Any]]


def plan_study(study: Study, store: Store) -> tuple[Rows, dict[str, Any]]:
    """One row per cell with what is done, failed and left; and the totals.

    What is left assumes that every threshold lies where the law expects it: less is left where
    nothing passes, and several times as much where thresholds are elsewhere.
    """
    search = stored_search(study, store)
    runs = search.runs
    pace, failed = seconds_per_work(runs, study), runs["stop_reason"] == "failed"
    done, lost = Counter(runs.loc[~failed, "cell_id"]), Counter(runs.loc[failed, "cell_id"])
    done.subtract(row["cell_id"] for row in search.implied)  # which are not stored yet
    rows, total = [], Forecast()
    for cell, left in zip(study.cells, forecast(study, search.portfolio), strict=True):
        total += left
        rows.append(
            {
                **sizes_of(study, cell),
                "n_edges": cell.n_edges,
                "runs_done": done[cell.cell_id],
                "runs_failed": lost[cell.cell_id],
                "runs_left": left.runs,
                "steps_left": round(left.steps),
                "core_seconds_left": round(left.work * pace, 1),
            }
        )
    facts = {
        "runs_done": done.total(),
        "runs_failed": lost.total(),
        "runs_left": total.runs,
        "steps_left": round(total.steps),
        "core_seconds_left": round(total.work * pace, 1),
        "cores_here": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1,
        "is_measured": bool(work_done(runs, study)),
    }
    return rows, facts


RUN_KEYS = (
    "run_id", "cell_id", "model", "graph", "degree", "embedding", "m", "d_model", "h", "d_k",
    "D_K", "seed", "max_steps", "trained_to", "stop_reason", "score", "val_score", "steps",
    "seconds", "engine", "error",
)  # fmt: skip


def run_keys(study: Study) -> tuple[str, ...]:
    """The columns that are listed for a study's runs."""
    if study.record.room is not None:
        return (*RUN_KEYS, "details")
    own = any(cell.layer is not None for cell in study.cells)
    return (*RUN_KEYS, *OF_LAYERS) if own else RUN_KEYS


def run_rows(
    study: Study, store: Store, cell: Cell | None = None, heads: Sequence[int] = ()
) -> tuple[Rows, bool]:
    """The study's own stored runs, and whether it has any at all.

    Args:
        cell, heads: list the runs of these alone.
    """
    runs = stored_runs(study, store)
    known = not runs.empty
    order = {one.cell_id: i for i, one in enumerate(study.cells)}
    kept = runs[runs["cell_id"] == cell.cell_id] if cell is not None else runs
    kept = kept[kept["h"].isin(heads)] if heads else kept
    kept = kept.assign(_order=kept["cell_id"].map(order))
    kept = kept.sort_values(["_order", "h", "d_k", "seed"])
    keys = run_keys(study)
    whole = {key: "Int64" for key in keys if key in OF_LAYERS}
    return [
        {"study": study.name, "cell": study.cell_names[row["cell_id"]], **row}
        for row in records(kept[list(keys)].astype(whole))
    ], known


def failures(runs: pd.DataFrame, most: int = 3) -> list[str]:
    """Why runs failed, the most frequent reason first: ``3 runs failed: out of memory``."""
    errors = runs.loc[runs["stop_reason"] == "failed", "error"].fillna("no reason stored")
    counts = errors.map(reason).value_counts()
    return [
        f"{count} run{'s' if count > 1 else ''} failed: {error}"
        for error, count in counts.head(most).items()
    ]


def divergence(runs: pd.DataFrame) -> str | None:
    """A sentence on how many runs diverged and count as the worst score; None if none did."""
    diverged = int((runs["stop_reason"] == "diverged").sum())
    if not diverged:
        return None
    return (
        f"{diverged:,} of {len(runs):,} runs diverged: their loss was no longer finite, and each "
        "counts as the worst score; is training.learning_rate too high?"
    )


def reason(error: str) -> str:
    """The last line of a stored error, which says what was wrong, cut short."""
    return error.strip().splitlines()[-1][:200] if error.strip() else "no reason stored"


def sizes_of(study: Study, cell: Cell) -> dict[str, Any]:
    """What tells a cell from the study's others: its sizes, and its name if they do not suffice."""
    sizes = {"m": cell.m, "d_model": cell.d_model, "degree": cell.graph.degree}
    return {"cell": study.name_of(cell), **sizes} if study.has_alike_cells else sizes
