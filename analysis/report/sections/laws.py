"""Every fit, in a table."""

from __future__ import annotations

from analysis.laws import distinct
from analysis.report import findings
from analysis.report.section import Column, Section, Table
from analysis.report.tables import Tables


def section(tables: Tables) -> Section:
    """The fits with their intervals, beside the paper's."""
    rows = [
        {
            "response": law.response,
            "cells": law.cells,
            "n": law.n,
            "fit": findings.law_words(law),
            "r2": law.r2,
            "r2_centred": law.r2_centred,
            "paper": findings.paper_law_words(tables.published.get(law.name)),
        }
        for law in distinct(tables.laws)
    ]

    def share(name: str, head: str) -> Column:
        return Column(head, lambda row: None if row[name] is None else f"{row[name]:.3f}")

    columns = [
        Column("law", lambda row: row["response"], text=True),
        Column("cells", lambda row: row["cells"], text=True),
        Column("n", lambda row: row["n"]),
        Column("fit", lambda row: row["fit"], text=True),
        share("r2", "R²"),
        share("r2_centred", "R², centred"),
    ]
    if tables.published:
        columns.append(Column("the paper", lambda row: row["paper"], text=True))
    caption = (
        "Least squares over finished cells; 95 % intervals in brackets. R² of D_K* is the "
        "uncentred one, which the paper’s figures point to (laws.json has every number)"
    )
    if not tables.comparison.empty:
        caption += "; the paper’s fits most likely hold more cells than its base grid"
    table = Table(name="table-laws", caption=f"{caption}.", columns=columns, rows=rows, cell=None)
    return Section(name="laws", title="Laws", shown=(table,))
