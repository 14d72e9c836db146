"""Rows of tables as a page shows them: plain values, and the names of their cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from rgr_dist.analysis.cell_names import CellName, cell_names
from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.analysis.records import integer, real

Row = dict[str, Any]
"""A row with ``anchor``, ``short`` and ``full``, the names of its cell, and often ``text``,
everything about it in words."""


@per_study
def names_of(results: StudyResults) -> Mapping[str, CellName]:
    """The names of each cell by its cell_id."""
    return cell_names(results.study)


def name_keys(results: StudyResults, row: Mapping[str, Any]) -> dict[str, str]:
    """The names of a row's cell: ``anchor``, ``short`` and ``full``."""
    return dict(vars(names_of(results)[row["cell_id"]]))


def named(results: StudyResults, table: pd.DataFrame) -> list[Row]:
    """The rows of any table with a cell_id, by size, with the names of their cells."""
    return [row | name_keys(results, row) for row in by_size(table)]


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
