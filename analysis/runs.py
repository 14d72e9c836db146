"""Which stored runs count for a study, and what they cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.planning.budgets import trained_steps
from rgr_dist.study.study import Study

COST_KINDS: dict[str, Any] = {
    "cell_id": "object", "m": "Int64", "d_model": "Int64", "degree": "Int64", "probes": "int64",
    "runs": "int64", "failed": "int64", "at_limit": "int64", "given_up": "int64",
    "spared": "int64", "steps": "int64", "seconds": "float64",
}  # fmt: skip


def scored(runs: pd.DataFrame, study: Study) -> pd.DataFrame:
    """The runs that count for the study's scores, in the study's order of cells.

    These are the runs of its cells, heads and seeds (0 to ``search.seeds`` - 1), so that the tables
    depend on the study alone, whatever else the store holds. A diverged run is a result and has
    the worst score, 0 or an infinite error; a failed run is left out.

    Returns:
        The columns of ``runs``, one row per (cell, h, d_k, seed), for facts also per d_vo.
    """
    sizes, search = [*study.search.sizes.columns], study.search
    order = {cell.cell_id: i for i, cell in enumerate(study.cells)}
    kept = runs[runs["cell_id"].isin(order) & _listed(runs, study) & (runs["seed"] < search.seeds)]
    score = pd.to_numeric(kept["score"]).astype("float64")
    worst = np.inf if study.record.minimised else 0.0
    score = score.mask(kept["stop_reason"] == "diverged", worst)
    kept = kept.assign(score=score, _order=kept["cell_id"].map(order))
    kept = kept[kept["score"].notna()]
    kept = kept.sort_values(["_order", *sizes, "seed"], kind="stable").drop(columns="_order")
    return kept.drop_duplicates(["cell_id", *sizes, "seed"]).reset_index(drop=True)


def _listed(runs: pd.DataFrame, study: Study) -> pd.Series[bool]:
    """Which runs belong to a setting that the study searches."""
    arms, sizes = study.search.arms, study.search.sizes
    of_study = pd.Series(True, index=runs.index)
    for column, size in sizes.fixed:
        of_study &= runs[column] == size
    return of_study & runs[sizes.arm].isin(arms)


def asked(runs: pd.DataFrame, study: Study) -> pd.DataFrame:
    """The runs that the study asks for, including failed runs and fresh seeds."""
    search = study.search
    ours = runs["cell_id"].isin([cell.cell_id for cell in study.cells]) & _listed(runs, study)
    return runs[ours & (runs["seed"] < search.seeds + search.confirm_seeds)]


@per_study
def cost_of(results: StudyResults) -> pd.DataFrame:
    """What each cell of the study cost, in the study's order.

    Returns:
        ``cell_id, m, d_model, degree, probes, runs, failed, at_limit, given_up, spared, steps,
        seconds``, all over every seed. runs includes those read off longer ones; steps and seconds
        do not. failed counts runs that could not be trained, at_limit those that reached the step
        limit, given_up those that ``training.give_up_below`` ended before it, spared the first
        ``search.seeds`` seeds of each probe that were not run. steps are contexts; seconds are wall
        time of one core or device, divided among the runs that trained together.
    """
    study = results.study
    sizes = [*study.search.sizes.columns]
    counted = [*sizes, "seed", "stop_reason", "steps", "trained_to", "max_steps", "seconds"]
    ours = asked(results.runs, study)
    by_cell = dict(list(ours[counted].groupby(ours["cell_id"])))
    nothing = ours[counted].iloc[:0]
    rows = []
    for cell in study.cells:
        own = by_cell.get(cell.cell_id, nothing)
        good = own[own["stop_reason"] != "failed"]
        tried, probes = (
            some[some["seed"] < study.search.seeds].groupby(sizes)["seed"].nunique()
            for some in (own, good)
        )
        rows.append(
            {
                "cell_id": cell.cell_id,
                "m": cell.m,
                "d_model": cell.d_model,
                "degree": cell.graph.degree,
                "probes": len(probes),
                "runs": len(own),
                "failed": len(own) - len(good),
                "at_limit": int((own["stop_reason"] == "max_steps").sum()),
                "given_up": int((own["stop_reason"] == "given_up").sum()),
                "spared": int((study.search.seeds - tried[probes.index]).sum()),
                "steps": int(trained_steps(own).sum()),
                "seconds": float(own["seconds"].sum()),
            }
        )
    frame = pd.DataFrame(rows, columns=list(COST_KINDS), dtype="object")
    return frame.astype(COST_KINDS)
