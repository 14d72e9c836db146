"""Kinds of embeddings beside each other: frozen, trained, shared by relations, of files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.analysis.tables import best
from rgr_dist.analysis.wording import plural
from rgr_dist.study.cell import Cell
from rgr_dist.study.study import Study


def trains_embeddings(study: Study) -> bool:
    """Whether any cell trains its embeddings."""
    return any(cell.training.embeddings == "trained" for cell in study.cells)


def compares_embeddings(study: Study) -> bool:
    """Whether cells train their embeddings, or differ in the kinds of their rows or edges."""
    kinds = {kind_of(study, cell) for cell in study.cells if study.record.room is None}
    return trains_embeddings(study) or len(kinds) > 1


def kind_of(study: Study, cell: Cell) -> tuple[str, str]:
    """The kind of a cell's rows, ``gaussian``, or of a file ``glove centre``; and that of edges of
    a file, its name up to a hyphen, as in ``real-karate``."""
    keys = study.keys_of(cell)
    made = [key for key in ("centre", "whiten") if keys.get(f"embedding.{key}")]
    name = Path(keys.get("embedding.file", keys["embedding.family"])).stem
    return " ".join([name, *made]), Path(keys.get("graph.file", "")).stem.partition("-")[0]


@per_study
def embeddings(results: StudyResults) -> pd.DataFrame:
    """The best of every cell with how its embeddings are trained, and its kind.

    Returns:
        The columns of ``tables.best``, with ``relations``, how many share an embedding, 0 where it
        is frozen; ``rows`` and ``edges``, as ``kind_of`` has them; ``how``: the step limit, or the
        construction.
    """
    cells = results.study.cells
    rows, edges = zip(*(kind_of(results.study, cell) for cell in cells), strict=True)
    return best(results).assign(
        relations=[
            cell.training.relations if cell.training.embeddings == "trained" else 0
            for cell in cells
        ],
        rows=rows,
        edges=edges,
        how=[
            cell.model if cell.record.algorithm else f"{cell.training.max_steps:,} steps"
            for cell in cells
        ],
    )


def geometry(study: Study) -> pd.DataFrame:
    """How the rows of each kind and size lie at seed 0: means over the tables of a study.

    Returns:
        ``rows, m, d_model``, and what ``of_rows`` says.
    """
    from rgr_dist.problem.embeddings import sample_embedding  # and numba, for one table

    told = {
        (kind_of(study, cell)[0], cell.m, cell.d_model, cell.embedding): of_rows(
            sample_embedding(cell, 0)
        )
        for cell in study.cells
    }
    sizes = pd.DataFrame([key[:3] for key in told], columns=["rows", "m", "d_model"])
    table = sizes.join(pd.DataFrame([*told.values()]))
    return table.groupby([*sizes], sort=False, as_index=False).mean()


def of_rows(X: npt.NDArray[np.float64]) -> dict[str, float]:
    """How rows [m, d_model] lie: the largest over the smallest singular value; (Σ λ)² / Σ λ²
    of the eigenvalues λ of XᵀX, also without the mean row; mean cosine of pairs; mean over rows of
    the cosine with the nearest."""
    sizes, centred = (np.linalg.svd(one, compute_uv=False) for one in (X, X - X.mean(axis=0)))
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    cosines, pairs = unit @ unit.T, ~np.eye(len(X), dtype=bool)
    return {
        "condition": float(sizes[0] / sizes[-1]),
        "participation": float((sizes**2).sum() ** 2 / (sizes**4).sum()),
        "centred": float((centred**2).sum() ** 2 / (centred**4).sum()),
        "cosine": float(cosines[pairs].mean()),
        "nearest": float(cosines.max(axis=1, where=pairs, initial=-1.0).mean()),
    }


def finding(results: StudyResults) -> str:
    """What other embeddings change, in a sentence; empty where too little is known.

    Where numbers of relations differ: from which one several heads are best. Where embeddings are
    trained, the widths beside those of frozen ones, over the cells that have both. Else the widths
    of each kind of rows, or of edges if all rows are of one kind.
    """
    table = embeddings(results)
    if not trains_embeddings(results.study):
        return _by_kind(table)
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


def _by_kind(table: pd.DataFrame) -> str:
    """D_K* of each kind within the least step limit and the most, at the largest m at which all
    kinds have both and a width passes; else of each kind at every m, within each limit."""
    if (table["status"] == "open").any():
        return ""
    by = "rows" if table["rows"].nunique() > 1 else "edges"
    kinds, trained = [*table[by].unique()], table[table["how"].str.endswith(" steps")]
    limits = sorted({*trained["max_steps"]})
    if len(limits) > 1:
        ends = [trained[trained["max_steps"] == limit] for limit in (limits[0], limits[-1])]
        known = [{*end["m"][end[by] == kind]} for end in ends for kind in kinds]
        if both := set.intersection(*known) & {*ends[1]["m"][ends[1]["D_K"].notna()]}:
            m = max(both)
            told = [
                f"{' to '.join(_needed(end[end[by] == kind], m) for end in ends)} ({kind})"
                for kind in kinds
            ]
            steps = f"From {limits[0]:,} to {limits[-1]:,} steps"
            return f"{steps}, D_K* at m = {m} goes from {', '.join(told)}."
    said = []
    for how, own in table.groupby("how", sort=False):
        sizes = sorted({*own["m"]})
        told = [
            f"{kind} {', '.join(_needed(one, m) for m in sizes)}"
            for kind, one in own.groupby(by, sort=False)
        ]
        said.append(f"{how}, m = {', '.join(map(str, sizes))}: {'; '.join(told)}.")
    return f"D_K* by {by}. {' '.join(said)}"


def _needed(own: pd.DataFrame, m: int) -> str:
    """The D_K* of cells at m, from the least to the largest; where no width passes, ``> 72``."""
    own = own[own["m"] == m]
    if own.empty:
        return "–"
    ends = own["D_K"].astype("Float64").fillna(own["D_K_low"] - 0.5)
    ends = ends.sort_values().iloc[[0, -1]]
    words = [f"{int(end)}" if end == int(end) else f"> {int(end)}" for end in ends]
    return "–".join(dict.fromkeys(words))


def _several_heads(trained: pd.DataFrame) -> str:
    """From how many relations on several heads are best, at each size."""
    said = []
    for (m, d_model), own in trained.groupby(["m", "d_model"]):
        own = own[own["max_steps"] == own["max_steps"].min()]
        several, most = own.loc[own["h_star"] > 1, "relations"], own["relations"].max()
        on = f"from R = {several.min()} on" if len(several) else f"not up to {most}"
        said.append(f"{on} at ({m}, {d_model})")
    return f"Several heads are best where R relations share an embedding: {'; '.join(said)}."
