"""Which stored runs count for a study, and what they cost."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.planning.budgets import trained_steps
from rgr_dist.study.study import Study


def scored(runs: pd.DataFrame, study: Study) -> pd.DataFrame:
    """The runs that count for the study's scores, in the study's order of cells.

    These are the runs of its cells, heads and seeds (0 to ``search.seeds`` - 1), so that the tables
    depend on the study alone, whatever else the store holds. A diverged run is a result and has
    the worst score, 0 or an infinite error; a failed run is left out.

    Returns:
        The columns of ``runs``, one row per (cell, h, d_k, seed).
    """
    search = study.search
    order = {cell.cell_id: i for i, cell in enumerate(study.cells)}
    kept = runs[
        runs["cell_id"].isin(order) & runs["h"].isin(search.heads) & (runs["seed"] < search.seeds)
    ]
    score = pd.to_numeric(kept["score"]).astype("float64")
    worst = np.inf if study.record.minimised else 0.0
    score = score.mask(kept["stop_reason"] == "diverged", worst)
    kept = kept.assign(score=score, _order=kept["cell_id"].map(order))
    kept = kept[kept["score"].notna()]
    kept = kept.sort_values(["_order", "h", "d_k", "seed"], kind="stable").drop(columns="_order")
    return kept.drop_duplicates(["cell_id", "h", "d_k", "seed"]).reset_index(drop=True)


def asked(runs: pd.DataFrame, study: Study) -> pd.DataFrame:
    """The runs that the study asks for, including failed runs and fresh seeds."""
    search = study.search
    cells = [cell.cell_id for cell in study.cells]
    ours = runs["cell_id"].isin(cells) & runs["h"].isin(search.heads)
    return runs[ours & (runs["seed"] < search.seeds + search.confirm_seeds)]


@per_study
def cost_of(results: StudyResults) -> pd.DataFrame:
    """What each cell of the study cost, in the study's order.

    Returns:
        ``cell_id, m, d_model, degree, runs, failed, steps, seconds``, all over every seed. runs
        includes those read off longer ones; steps and seconds do not. failed counts runs that could
        not be trained. steps are contexts; seconds are wall time of one core or device, divided
        among the runs that trained together.
    """
    ours = asked(results.runs, results.study)
    ours = ours.assign(failed=ours["stop_reason"] == "failed", steps=trained_steps(ours), runs=1)
    told = ours.groupby("cell_id")[["runs", "failed", "steps", "seconds"]].sum()
    cells = [(one.cell_id, one.m, one.d_model, one.graph.degree) for one in results.study.cells]
    table = pd.DataFrame(cells, columns=["cell_id", "m", "d_model", "degree"])
    told = told.reindex(table["cell_id"]).fillna(0).reset_index(drop=True)
    counts = dict.fromkeys(["runs", "failed", "steps"], "int64")
    return pd.concat([table, told], axis=1).astype(counts | {"seconds": "float64"})
