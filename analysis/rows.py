"""Rows of tables as a page shows them: plain values, and what their cells are called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.analysis.records import integer, real
from rgr_dist.study.cell import Cell
from rgr_dist.study.families import Edges
from rgr_dist.study.study import Study

Row = dict[str, Any]
"""A row with ``anchor``, ``short`` and ``full``, the names of its cell, and often ``text``,
everything about it in words."""


Names = Mapping[str, str]
"""Names of one cell: ``anchor``, its id on a page, ``m64-d16``; ``short``, ``(64, 16)``; ``full``,
``(m, d_model) = (64, 16)``. The last two add what tells the cell from others of its size."""


def cell_names(study: Study) -> Mapping[str, Names]:
    """The names of each cell of a study by its cell_id; no two are the same."""
    names: dict[str, Names] = {}
    taken: set[str] = set()
    for cell in study.cells:
        anchor, more = f"m{cell.m}-d{cell.d_model}", _more(cell)
        if more:
            anchor += f"-r{more[1]}" if more[0] == "r" else f"-e{more[1]}"
        differs = study.differences[cell.cell_id]
        parts = [f"{more[0]} = {more[1]}"] if more else []
        inside = "".join(f", {part}" for part in [*parts, *([differs] if differs else [])])
        unique, n = anchor, 1
        while unique in taken:
            n += 1
            unique = f"{anchor}-{n}"
        taken.add(unique)
        if cell.database is not None:
            size = f"{cell.m} facts, {cell.d_model}{inside}"
            full = f"(|D|, d_model) = ({size})"
            names[cell.cell_id] = {"anchor": unique, "short": f"({size})", "full": full}
            continue
        short = f"({cell.m}, {cell.d_model}{inside})"
        signs = f", {more[0]}" if more else ""
        values = f"({cell.m}, {cell.d_model}" + (f", {more[1]})" if more else ")")
        full = f"(m, d_model{signs}) = {values}" + (f" with {differs}" if differs else "")
        names[cell.cell_id] = {"anchor": unique, "short": short, "full": full}
    return names


def _more(cell: Cell) -> tuple[str, int] | None:
    """What the size does not say about the graph: the number of edges of a file, or the degree."""
    if isinstance(cell.graph, Edges):
        return "m′", cell.n_edges
    return None if cell.graph.degree == 1 else ("r", cell.graph.degree)


@per_study
def names_of(results: StudyResults) -> Mapping[str, Names]:
    """The names of each cell by its cell_id."""
    return cell_names(results.study)


def name_keys(results: StudyResults, row: Mapping[str, Any]) -> Names:
    """The names of a row's cell: ``anchor``, ``short`` and ``full``."""
    return names_of(results)[row["cell_id"]]


def named(results: StudyResults, table: pd.DataFrame) -> list[Row]:
    """The rows of any table with a cell_id, sorted by size, with the names of their cells."""
    return [{**row, **name_keys(results, row)} for row in by_size(table)]


def by_size(table: pd.DataFrame) -> list[Row]:
    """The rows sorted by m, d_model and degree; ties keep their order."""
    return sorted(rows_of(table), key=lambda row: (row["m"], row["d_model"], row.get("degree", 1)))


def rows_of(table: pd.DataFrame) -> list[Row]:
    """The table's rows with plain values: whole numbers as int, missing ones as None."""
    whole = [name for name in table if pd.api.types.is_integer_dtype(table[name].dtype)]
    whole += [name for name in ("d_k", "D_K", "D_K_low", "D_K_high", "n_seeds") if name in table]
    broken = [name for name in table if pd.api.types.is_float_dtype(table[name].dtype)]
    rows = table.astype("object").to_dict("records")
    for row in rows:
        row |= {name: None for name, value in row.items() if pd.isna(value)}
        row |= {name: real(row[name]) for name in broken if row[name] is not None}
        row |= {name: integer(row[name]) for name in whole if row[name] is not None}
    return [{str(name): value for name, value in row.items()} for row in rows]
