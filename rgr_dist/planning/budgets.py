"""What runs at one step limit tell about the same runs at others.

The randomness of a run does not depend on its limit, so a run at a smaller limit is the beginning
of the run at a larger one. An engine tells how a run ends at every smaller limit on its way. A run
that converged or diverged is the same at every larger limit too; one that was given up might have
passed there. So no run is paid for twice, except where the learning rate looks ahead to the limit,
as in the cosine schedule: there each limit has runs of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from rgr_dist.study.cell import Cell
from rgr_dist.study.run import Run
from rgr_dist.study.study import Study

Row = dict[str, Any]


def smaller_limits(study: Study, cell: Cell) -> list[int]:
    """Step limits of the study's cells that a run of this one passes on its way, increasing."""
    own = cell.training.max_steps
    if cell.training.path_depends_on_limit:
        return []
    limits = [one.training.max_steps for one in study.budgets[cell.cell_id]]
    return [limit for limit in limits if limit < own]


def at_larger_limits(study: Study, row: Mapping[str, Any]) -> list[Row]:
    """The rows of a run that converged or diverged, at the larger limits of the study's cells.

    If a limit is not a multiple of ``check_every``, longer runs have no check there, so a run that
    ended at that check says nothing about them.
    """
    family = study.budgets.get(row["cell_id"], ())
    ended_early = row["stop_reason"] in ("converged", "diverged")
    if not ended_early or not family or row["steps"] % family[0].training.check_every:
        return []
    if family[0].training.path_depends_on_limit:
        return []
    rows = []
    for cell in family:
        limit = cell.training.max_steps
        if limit > row["max_steps"]:
            run = Run(cell=cell, h=row["h"], d_k=row["d_k"], seed=row["seed"])
            own = {"run_id": run.run_id, "cell_id": cell.cell_id, "config": run.config_json}
            taken = int(row["trained_to"] or row["max_steps"])
            limits = {"max_steps": limit, "trained_to": taken, "seconds": 0.0}
            rows.append({**row, **own, **limits})
    return rows


def missing_at_larger_limits(study: Study, runs: pd.DataFrame) -> list[Row]:
    """The rows of ``at_larger_limits`` for all stored runs, without those that are stored too."""
    if not study.has_budgets:
        return []
    known = set(runs.loc[runs["stop_reason"] != "failed", "run_id"])
    early = runs[runs["stop_reason"].isin(["converged", "diverged"])]
    missing: dict[str, Row] = {}
    for row in records(early.sort_values("max_steps", kind="stable")):
        for larger in at_larger_limits(study, row):
            if larger["run_id"] not in known:
                missing.setdefault(larger["run_id"], larger)
    return list(missing.values())


def records(runs: pd.DataFrame) -> list[Row]:
    """Rows as a store takes them: None where a value is missing, plain numbers elsewhere."""
    objects = runs.astype(object)
    rows = objects.where(objects.notna(), None).to_dict("records")
    return [{str(name): value for name, value in row.items()} for row in rows]


def trained_steps(runs: pd.DataFrame) -> pd.Series[Any]:
    """Steps that were trained for each row itself: 0 where it was read off another run."""
    own = runs["trained_to"].isna() | (runs["trained_to"] == runs["max_steps"])
    return runs["steps"].where(own, 0)
