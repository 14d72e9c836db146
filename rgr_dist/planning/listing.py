"""What ``rgr plan`` and ``rgr status`` list: no training, no Ray."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pandas as pd

from rgr_dist.planning.budgets import records, smaller_limits, trained_steps
from rgr_dist.planning.forecast import (
    BYTES_PER_RUN,
    Forecast,
    forecast,
    seconds_per_work,
    work_done,
)
from rgr_dist.planning.memory import check_memory, machine_memory
from rgr_dist.planning.portfolio import (
    left_by_failures,
    open_cells,
    shown_arms,
    stored_runs,
    stored_search,
)
from rgr_dist.store.schema import OF_LAYERS
from rgr_dist.store.store import Store
from rgr_dist.study.cell import Cell
from rgr_dist.study.study import Study

Rows = list[dict[str, Any]]

MORE = (
    "; it may be several times more if they lie elsewhere, or if intervals, retests or "
    "confirmation need more seeds"
)
"""What may be left beyond a plan, unless every width is trained anyhow."""


def plan_study(study: Study, store: Store) -> tuple[Rows, dict[str, Any]]:
    """One row per cell with where its search stands and what it still needs; and the totals.

    Runs, steps and times assume that every threshold lies where the law expects it: fewer are left
    where nothing passes, and several times as many where thresholds are elsewhere. ``at_least`` is
    true if the seeds next to a threshold decide how many more are wanted.

    Raises:
        UserError: a run that is left would not fit in the memory of this machine.
    """
    search = stored_search(study, store)
    runs, portfolio = search.runs, search.portfolio
    check_memory(study, open_cells(study, portfolio), machine_memory(), "this machine")
    pace, stored = seconds_per_work(runs, study), Counter(runs["cell_id"])
    stored.subtract(row["cell_id"] for row in search.implied)  # which are not stored yet
    is_searched = not all(plan.every_value for plan in portfolio.plans.values())
    rows, total, rows_to_store, sizes = [], Forecast(), 0, study.search.sizes
    for cell, left in zip(study.cells, forecast(study, portfolio), strict=True):
        state = portfolio.state(cell.cell_id)
        total += left
        rows_to_store += left.runs * (1 + len(smaller_limits(study, cell)))
        first = state.needs[0] if state.needs else None
        rows.append(
            {
                **sizes_of(study, cell),
                sizes.arms_key: len(state.plan.axes),
                f"max_{sizes.total}": max(
                    sizes.width(arm, axis[-1]) for arm, axis in state.plan.axes.items()
                ),
                f"next_{sizes.shown_arm}": first.key.arm if first else None,
                f"next_{sizes.value}": first.key.value if first else None,
                "stored_runs": stored[cell.cell_id],
                "probes_left": left.probes,
                "runs_left": left.runs,
                "steps_left": round(left.steps),
                "core_seconds_left": round(left.work * pace),
            }
        )
    facts = {
        "stored_runs": stored.total(),
        "runs_failed": int((runs["stop_reason"] == "failed").sum()),
        "runs_to_retry": left_by_failures(study, search),
        "runs_left": total.runs,
        "steps_left": round(total.steps),
        "core_seconds_left": round(total.work * pace),
        "cores_here": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "bytes_left": rows_to_store * BYTES_PER_RUN,
        "at_least": total.at_least,
        "supposing": "thresholds lie where the law expects them" + MORE * is_searched,
        "pace_from": "stored runs"
        if work_done(runs, study)
        else "a rough guess, since none of its runs is stored yet",
    }
    return rows, facts


def study_status(study: Study, store: Store) -> tuple[Rows, dict[str, Any]]:
    """One row per setting of a cell with its bracket; and runs done, failed and left."""
    search = stored_search(study, store)
    runs, portfolio = search.runs, search.portfolio
    rows, sizes = [], study.search.sizes
    left = sum(forecast(study, portfolio), Forecast())
    has_failed = runs["stop_reason"] == "failed"
    counted = [
        Counter(zip(some["cell_id"], some[sizes.arm].tolist(), strict=True))
        for some in (runs[~has_failed], runs[has_failed])
    ]
    for cell in study.cells:
        state = portfolio.state(cell.cell_id)
        for arm in shown_arms(state):
            bracket = state.brackets[arm]
            done, failed = (count[cell.cell_id, arm] for count in counted)
            rows.append(
                {
                    **sizes_of(study, cell),
                    sizes.shown_arm: arm,
                    "status": state.result(arm).status,
                    "fails_at": bracket.low or None,
                    "passes_at": bracket.high,
                    "runs_done": done,
                    "runs_failed": failed,
                }
            )
    failed, to_retry = int(has_failed.sum()), left_by_failures(study, search)
    facts: dict[str, Any] = {
        "finished": portfolio.is_done and not to_retry,
        "runs_done": len(runs) - failed,
        "runs_failed": failed,
        "runs_left": left.runs,
        "steps_done": int(trained_steps(runs).sum()),
    }
    if failed:
        facts |= {"runs_to_retry": to_retry, "failures": failures(runs)}
    if diverged := divergence(runs):
        facts["diverged"] = diverged
    return rows, facts


RUN_KEYS = (
    "run_id", "cell_id", "model", "graph", "degree", "embedding", "m", "d_model", "h", "d_k",
    "D_K", "seed", "max_steps", "trained_to", "stop_reason", "score", "val_score", "steps",
    "seconds", "engine", "error",
)  # fmt: skip


RUN_KEYS_OF_FACTS = (
    "run_id", "cell_id", "model", "graph", "m", "d_model", "h", "d_k", "d_vo", "D_V", "seed",
    "max_steps", "trained_to", "stop_reason", "score", "val_score", "argmax_accuracy",
    "softmax_accuracy", "rank_logits", "rank_argmax", "by_tau", "steps", "seconds", "engine",
    "error",
)  # fmt: skip
WHOLE = ("d_vo", "D_V", "rank_logits", "rank_argmax", *OF_LAYERS)
"""Columns of whole numbers that are missing in some rows."""


def run_keys(study: Study) -> tuple[str, ...]:
    """The columns that are listed for a study's runs."""
    if study.search.axis == "d_vo":
        return RUN_KEYS_OF_FACTS
    own = any(cell.layer is not None for cell in study.cells)
    return (*RUN_KEYS, *OF_LAYERS) if own else RUN_KEYS


def run_rows(
    study: Study,
    store: Store,
    cell: Cell | None = None,
    heads: Sequence[int] = (),
) -> tuple[Rows, bool]:
    """The study's own stored runs, and whether it has any at all.

    Args:
        cell, heads: list the runs of these alone.
    """
    runs = stored_runs(study, store)
    known = not runs.empty
    order = {one.cell_id: i for i, one in enumerate(study.cells)}
    sizes = study.search.sizes
    kept = runs[runs["cell_id"] == cell.cell_id] if cell is not None else runs
    kept = kept[kept[sizes.arm].isin(heads)] if heads else kept
    kept = kept.assign(_order=kept["cell_id"].map(order))
    kept = kept.sort_values(["_order", sizes.arm, sizes.value, "seed"])
    keys = run_keys(study)
    whole = {key: "Int64" for key in keys if key in WHOLE}
    return [
        {"study": study.name, "cell": study.cell_names[row["cell_id"]]}
        | {sizes.shown(key): value for key, value in row.items()}
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
    if cell.database is not None:
        return {"cell": study.name_of(cell), "facts": cell.m, "d_model": cell.d_model}
    sizes = {"m": cell.m, "d_model": cell.d_model, "degree": cell.graph.degree}
    return {"cell": study.name_of(cell), **sizes} if study.has_alike_cells else sizes
