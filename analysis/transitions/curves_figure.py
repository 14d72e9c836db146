"""Score against D_K, for each cell and head count: where the transition is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rgr_dist.analysis.drawing.panel import Figure, Key, Line, Panel, Place, Point
from rgr_dist.analysis.drawing.points import guide_key, head_keys
from rgr_dist.analysis.drawing.scales import Axis, log2_axis, ratio_axis, score_axis
from rgr_dist.analysis.heads.figures import columns_of
from rgr_dist.analysis.page.section import Row

CAPTION = (
    "Mean test score against D_K, cell by cell and by number of heads. Filled: every seed ran, "
    "with the 95 % t-interval over seeds. {hollow}Dashed: the target. {scale}"
)
HOLLOW = "Hollow: a mean of fewer seeds, enough for the verdict or for a first look. "
FEWER = "fewer seeds"
"""What a hollow mark means."""


def draw_curves(
    cells: Sequence[Row], probes: Sequence[Row], target: float, minimised: bool
) -> Figure:
    """Mean score against D_K: a panel for each cell, a line for each head count.

    Args:
        cells: rows of ``thresholds.rows.cells_of``.
        probes: rows of ``probe_rows_of``.
        minimised: whether the score is an error, drawn on a logarithmic axis.
    """
    panels = tuple(
        _panel(cell, [row for row in probes if row["anchor"] == cell["anchor"]], target, minimised)
        for cell in cells
    )
    scale = (
        "The score is an error (MSE): lower is better, and the axis is logarithmic."
        if minimised
        else "The axis widens towards 1."
    )
    legend = (*head_keys(row["h"] for row in probes), *guide_key(cells, "D_K"))
    if any(row["collapsed"] or row["failed"] for row in probes):
        legend += (Key(text="with collapsed or failed runs", flawed=True),)
    some_lack_seeds = not all(row["complete"] for row in probes)
    return Figure(
        name="curves",
        title="Mean test score against D_K",
        caption=CAPTION.format(scale=scale, hollow=HOLLOW * some_lack_seeds),
        panels=panels,
        legend=legend,
        hollow=FEWER,
        columns=columns_of(cells),
    )


def _panel(cell: Row, probes: Sequence[Row], target: float, minimised: bool) -> Panel:
    reach = [row[name] for row in probes for name in ("mean_score", "low", "high")]
    seen = [value for value in reach if value is not None]
    y = (
        ratio_axis("mean test error (MSE)", [target, *seen])
        if minimised
        else score_axis("mean test score")
    )
    joined: dict[int, list[Place]] = {}
    for row in sorted(probes, key=lambda row: row["D_K"]):
        joined.setdefault(row["h"], []).append((float(row["D_K"]), float(row["mean_score"])))
    points = tuple(
        probe_point(
            row,
            row["D_K"],
            row["mean_score"],
            low=row["low"] if row["complete"] else None,
            high=row["high"] if row["complete"] else None,
            flawed=bool(row["collapsed"] or row["failed"]),
        )
        for row in probes
    )
    panel = panel_of_cell(cell, points, y, joined, _titles(cell, bool(probes)), height=170)
    if not probes:
        panel = replace(panel, x=replace(panel.x, ticks=()))
    level = Line(points=((panel.x.low, target), (panel.x.high, target)), look="target")
    return replace(panel, lines=(level, *panel.lines))


def probe_point(row: Row, x: float, y: float, **more: Any) -> Point:
    """A point of a row of ``probe_rows_of``; hollow if not every seed ran."""
    about = {"text": row["text"], "cell": row["anchor"], "h": row["h"]}
    return Point(x=x, y=y, hollow=not row["complete"], **{**about, **more})


def panel_of_cell(
    cell: Row,
    points: tuple[Point, ...],
    y: Axis,
    curves: Mapping[int, Sequence[Place]],
    title: tuple[str, ...],
    height: int,
) -> Panel:
    """The probes of a cell over D_K, a curve for each head count, and D_K*."""
    x = log2_axis("total key width D_K", [point.x for point in points] or [1, 2], pad=1.2)
    lines = []
    if cell["D_K"] is not None and points:
        lines.append(Line(points=((cell["D_K"], y.low), (cell["D_K"], y.high)), look="guide"))
    for h, curve in sorted(curves.items()):
        lines.append(Line(points=tuple(curve), look="head", h=h))
    return Panel(
        title=title, x=x, y=y, lines=tuple(lines), points=points, height=height, cell=cell["anchor"]
    )


def _titles(cell: Row, tried: bool) -> tuple[str, str]:
    if not tried:
        return cell["short"], "no run yet"
    if cell["D_K"] is None:
        return cell["short"], f"no D_K* ({cell['status']})"
    so_far = " so far" if cell["status"] == "open" else ""
    return cell["short"], f"D_K* = {cell['D_K']} at h* = {cell['h_star']}{so_far}"
