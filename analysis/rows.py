"""Rows of tables as a page shows them: plain values, and what their cells are called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pandas as pd

from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.analysis.records import integer, real
from rgr_dist.analysis.wording import in_words
from rgr_dist.study.families import Edges

Row = dict[str, Any]
"""A row with ``anchor``, ``short`` and ``full``, the names of its cell, and often ``text``,
everything about it in words."""


Names = Mapping[str, str]
"""Names of one cell: ``anchor``, its id on a page, ``m64-d16``; ``short``, ``(64, 16)``; ``full``,
``(m, d_model) = (64, 16)``; ``key``, ``short`` as JSON has it. The last three add what tells the
cell from others of its size: in words, but ``key`` as a study file has it."""


@per_study
def names_of(results: StudyResults) -> Mapping[str, Names]:
    """The names of each cell by its cell_id; no two are the same."""
    names, taken = dict[str, Names](), Counter[str]()
    for cell in results.study.cells:
        anchor, more = f"m{cell.m}-d{cell.d_model}", []
        if isinstance(cell.graph, Edges):
            anchor, more = f"{anchor}-e{cell.n_edges}", [f"m′ = {cell.n_edges}"]
        elif cell.graph.degree != 1:
            anchor, more = f"{anchor}-r{cell.graph.degree}", [f"r = {cell.graph.degree}"]
        differs = results.study.differences[cell.cell_id]
        taken[anchor] += 1
        if taken[anchor] > 1:
            anchor += f"-{taken[anchor]}"
        of, unit = ("m", "") if cell.database is None else ("|D|", " facts")
        sizes = f"{cell.m}{unit}, {cell.d_model}"
        rest, keys = (
            "".join(f", {one}" for one in [*more, differ] if one)
            for differ in (in_words(differs), differs)
        )
        names[cell.cell_id] = {
            "anchor": anchor,
            "short": f"({sizes}{rest})",
            "full": f"({of}, d_model) = ({sizes}){rest}",
            "key": f"({sizes}{keys})",
        }
    return names


def name_keys(results: StudyResults, row: Mapping[str, Any]) -> Names:
    """The names of a row's cell: ``anchor``, ``short`` and ``full``."""
    return names_of(results)[row["cell_id"]]


def named(results: StudyResults, table: pd.DataFrame) -> list[Row]:
    """The rows of any table with a cell_id, sorted by size, with the names of their cells."""
    return [{**row, **name_keys(results, row)} for row in by_size(table)]


def by_size(table: pd.DataFrame) -> list[Row]:
    """The rows sorted by m, d_model and degree; ties keep their order."""
    return sorted(rows_of(table), key=lambda row: (row["m"], row["d_model"], row.get("degree", 1)))


WHOLE = (
    *("h", "d_k", "D_K", "D_K_low", "D_K_high", "D_K_first", "n_seeds"),
    *("d_vo", "D_V", "D_V_low", "D_V_high", "D_V_first"),
)
"""Columns of whole numbers that a table with missing ones holds as fractions."""


def rows_of(table: pd.DataFrame) -> list[Row]:
    """The table's rows with plain values: whole numbers as int, missing ones as None."""
    whole = [name for name in table if pd.api.types.is_integer_dtype(table[name].dtype)]
    whole += [name for name in WHOLE if name in table]
    broken = [name for name in table if pd.api.types.is_float_dtype(table[name].dtype)]
    rows = table.astype("object").to_dict("records")
    for row in rows:
        row |= {
            name: None
            for name, value in row.items()
            if not isinstance(value, list) and pd.isna(value)
        }
        row |= {name: real(row[name]) for name in broken if row[name] is not None}
        row |= {name: integer(row[name]) for name in whole if row[name] is not None}
    return [{str(name): value for name, value in row.items()} for row in rows]
