"""Frozen embeddings beside trained ones, and beside those that several relations share."""

from __future__ import annotations

from typing import Any

import pandas as pd

from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.analysis.tables import best
from rgr_dist.analysis.wording import plural
from rgr_dist.study.study import Study


def trains_embeddings(study: Study) -> bool:
    """Whether any cell trains its embeddings."""
    return any(cell.training.embeddings == "trained" for cell in study.cells)


@per_study
def embeddings(results: StudyResults) -> pd.DataFrame:
    """The best of every cell with how its embeddings are trained.

    Returns:
        The columns of ``tables.best``, with ``relations``, how many share an embedding, 0 where it
        is frozen.
    """
    shared = {
        cell.cell_id: cell.training.relations if cell.training.embeddings == "trained" else 0
        for cell in results.study.cells
    }
    table = best(results)
    return table.assign(relations=table["cell_id"].map(shared))


def finding(results: StudyResults) -> str:
    """What training embeddings changes, in a sentence; empty where too little is known.

    Where numbers of relations differ: from which one several heads are best. Else the widths beside
    those of frozen embeddings, over the cells that have both.
    """
    table = embeddings(results)
    table = table[table["D_K"].notna() & (table["status"] == "found")]
    trained = table[table["relations"] > 0]
    if trained["relations"].nunique() > 1:
        return _several_heads(trained)
    size = ["m", "d_model", "graph", "degree", "n_edges", "max_steps"]
    both = trained.merge(table[table["relations"] == 0], on=size, suffixes=("", "_frozen"))
    if both.empty:
        return ""
    trained_D_K, heads, frozen_D_K = (_span(both[name]) for name in ("D_K", "h_star", "D_K_frozen"))
    return (
        f"With trained embeddings D_K* is {trained_D_K} at h* = {heads}; "
        f"with frozen ones it is {frozen_D_K}, over {plural(len(both), 'cell')}."
    )


def _span(column: pd.Series[Any]) -> str:
    least, most = int(column.min()), int(column.max())
    return f"{least}" if least == most else f"{least}–{most}"


def _several_heads(trained: pd.DataFrame) -> str:
    """From how many relations on several heads are best, at each size and step limit."""
    first = []
    for _, own in trained.groupby(["m", "d_model", "max_steps"]):
        several = own.loc[own["h_star"] > 1, "relations"]
        if several.empty:
            return ""
        first.append(int(several.min()))
    ends = f"{min(first)}" if min(first) == max(first) else f"{min(first)} to {max(first)}"
    return f"Several heads are best once {ends} relations share their embeddings; before that, one."
