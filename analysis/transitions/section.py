"""Transitions: the score against the width, from failing to passing."""

from __future__ import annotations

from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.page.section import Section
from rgr_dist.analysis.thresholds.rows import drawn_cells_of
from rgr_dist.analysis.transitions.curves_figure import draw_curves
from rgr_dist.analysis.transitions.probes import probe_rows_of, probes_of


def section(results: StudyResults) -> Section:
    """Scores against D_K, from failing to passing."""
    study = results.study
    figure = draw_curves(
        drawn_cells_of(results),
        probe_rows_of(results),
        study.search.target,
        study.record.minimised,
    )
    files = {"probes": probes_of(results)}
    return Section(name="transitions", title="Transitions", figures=(figure,), files=files)
