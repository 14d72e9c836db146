"""The section of a report on what the widest heads can do."""

from __future__ import annotations

from collections.abc import Sequence

from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.page.section import Column, Section, Table
from rgr_dist.analysis.phases import phases
from rgr_dist.analysis.rows import Row, named
from rgr_dist.analysis.theory.phases_figure import draw_phases


def section(results: StudyResults) -> Section:
    """The figure and its table."""
    rows = named(results, phases(results))
    trained = (cell for cell in results.study.cells if cell.model == results.study.record.name)
    limits = sorted({cell.training.max_steps for cell in trained})
    return Section(
        name="phases",
        title="Impossible, hard and easy",
        figures=(draw_phases(rows, limits),),
        shown=(_table(rows),),
        files={"phases": phases(results)},
    )


def _table(rows: Sequence[Row]) -> Table:
    return Table(
        name="table-phases",
        caption=(
            "Heads with d_k = d_model. Passes within: the smallest step limit at which training "
            "passes. Exact: draws with known weights that are right on all pairs, of one head or "
            "of the construction. Proved: draws for which a certificate shows that one head has "
            "no such weights."
        ),
        columns=[
            Column("size", lambda row: f"({row['m']}, {row['d_model']})", text=True, names=True),
            Column("h", "h"),
            Column("m′ ln m / d_model^2", "load", form=".2f"),
            Column("passes within", "passes_within"),
            Column("exact", lambda row: f"{row['exact']} of {row['draws']}", "exact"),
            Column("proved", lambda row: f"{row['proved']} of {row['draws']}", "proved"),
            Column("phase", "phase", text=True),
        ],
        rows=rows,
        cell=None,
    )
