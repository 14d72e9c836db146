"""Transitions: the score against the width, from failing to passing."""

from __future__ import annotations

from analysis.figures.curves import draw_curves
from analysis.report.section import Section
from analysis.report.tables import Tables


def section(tables: Tables) -> Section:
    """Mean score against D_K, for each cell and number of heads."""
    study = tables.study
    minimised = study.cells[0].minimised
    figure = draw_curves(tables.cells, tables.probes, study.search.target, minimised)
    return Section(
        name="transitions",
        title="Transitions",
        figures=(figure,),
        files={"probes": tables.curves},
    )
