"""Constructed widths beside what counting requires."""

from __future__ import annotations

from collections.abc import Sequence

from rgr_dist.analysis.drawing.panel import Figure, Key, Line, Panel
from rgr_dist.analysis.drawing.points import head_keys, interval_point
from rgr_dist.analysis.drawing.scales import log2_axis, ratio_axis
from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.page.section import Row, Section
from rgr_dist.analysis.records import bits_of_graph
from rgr_dist.analysis.thresholds.rows import drawn_cells_of
from rgr_dist.theory.bounds import counting_bound


def section(results: StudyResults) -> Section | None:
    """The figure of a study of constructions; None for another, or before it found a width."""
    if results.study.record.task != "construction":
        return None
    rows = [row for row in drawn_cells_of(results) if row["D_K"]]
    if not rows or results.study.record.algorithm == "one-head":
        return None
    return Section(
        name="constructed", title="Constructed widths", figures=(draw_constructed(rows),)
    )


def draw_constructed(rows: Sequence[Row]) -> Figure:
    """A panel for each d_model: D_K by m, and the counting bound at 1 bit per parameter.

    Args:
        rows: of ``drawn_cells_of``, with a width.
    """
    bound = {
        row["cell_id"]: counting_bound(bits_of_graph(row), row["d_model"], 1.0) for row in rows
    }
    x = log2_axis("m", [row["m"] for row in rows], pad=1.25)
    y = ratio_axis("D_K", [*(row["D_K"] for row in rows), *filter(None, bound.values())], pad=1.25)
    panels = []
    for d_model in sorted({row["d_model"] for row in rows}):
        own = sorted((row for row in rows if row["d_model"] == d_model), key=lambda row: row["m"])
        lines = [
            Line(points=tuple((row["m"], bound[row["cell_id"]]) for row in own), look="guide"),
            Line(points=tuple((row["m"], row["D_K"]) for row in own), look="series"),
        ]
        points = tuple(
            interval_point(row, row["m"], "D_K", "D_K_low", "D_K_high", h=row["h_star"])
            for row in own
        )
        title = (f"d_model = {d_model}",)
        panels.append(Panel(title=title, x=x, y=y, lines=tuple(lines), points=points, links=True))
    return Figure(
        name="constructed",
        title="Constructed widths by size",
        caption=(
            "The smallest D_K at which the construction is right on all pairs of every draw, by "
            "the number of items m. Dotted: what counting requires at 1 bit per parameter."
        ),
        panels=tuple(panels),
        legend=(
            Key(text="counting bound", line="guide"),
            *head_keys(row["h_star"] for row in rows),
        ),
        columns=3,
    )
