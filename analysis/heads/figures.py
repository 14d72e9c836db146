"""How thresholds depend on heads: h* against compression, and D_K(h) of each cell."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rgr_dist.analysis.drawing.panel import Figure, Key, Line, Panel, Point
from rgr_dist.analysis.drawing.points import (
    PUBLISHED,
    Curve,
    along,
    dodges,
    guide_key,
    head_keys,
    interval_point,
)
from rgr_dist.analysis.drawing.scales import Axis, log2_axis
from rgr_dist.analysis.page.section import Row
from rgr_dist.study.axis import SizeAxis

BEST = (
    "The head count h* that needs the smallest D_K, of those that the study asks for, against the "
    "compression m′ / d_model. Bars span the head counts within 10 % of D_K*, or one step of their "
    "d_k, that a paired t-test does not distinguish from h*. Cells of one "
    "compression stand side by side, about its value."
)
SPLITS = (
    "D_K(h), the smallest passing total key width of h heads, cell by cell. D_K* is the "
    "smallest of all{steps}. Bars run from the optimistic to the conservative D_K."
)
STEPS = "; with h heads, D_K is a multiple of h"
ARROWS = (
    " An arrow starts at the smallest width not excluded of a head count that is pruned (none of "
    "its widths near D_K* passes, though wider ones may), censored (no allowed width passes), "
    "inconsistent (a width passes below one that fails) or not finished."
)
FRONTIER = (
    "The smallest passing D_V = h d_vo of each setting, cell by cell: the mean over seeds passes "
    "at a mark and fails at the next narrower width tried. Bars run from the optimistic to the "
    "conservative D_V; an arrow starts at the smallest width not excluded."
)
PARAMETERS = " Dotted curves: the same number of parameters, d_qk + d_vo of each head."


def draw_best_heads(
    cells: Sequence[Row],
    curves: Sequence[tuple[str, str, Curve]],
    published: Sequence[Row],
) -> Figure:
    """h* against compression: cells, fits, and the published head counts."""
    x = [float(row["compression"]) for row in cells]
    reach = [row[name] for row in cells for name in ("h_star", "h_low", "h_high") if row[name]]
    reach += [row["h"] for row in published]
    across = log2_axis("compression x = m′ / d_model", x or [1, 32], pad=1.4)
    up = log2_axis("best number of heads h*", [*reach, 1, 8], pad=1.4)
    shift = _shifts(cells)
    lines = [Line(points=along(curve, across), look=look) for look, _, curve in curves]
    points = [
        Point(
            x=row["compression"], y=row["h"], text=row["text"], cell=row["anchor"],
            look="paper", dodge=shift.get(row["anchor"], 0),
        )
        for row in published
    ]  # fmt: skip
    points += [
        interval_point(
            row, row["compression"], "h_star", "h_low", "h_high",
            h=row["h_star"], dodge=shift[row["anchor"]],
        )
        for row in cells
        if row["h_star"]
    ]  # fmt: skip
    legend = [Key(text=words, line=look) for look, words, _ in curves]
    if published:
        legend.append(PUBLISHED)
    panel = Panel(x=across, y=up, lines=tuple(lines), points=tuple(points), height=260, links=True)
    title = "Best number of heads h* against m′ / d_model"
    return Figure(name="heads", title=title, caption=BEST, panels=(panel,), legend=tuple(legend))


def _shifts(cells: Sequence[Row]) -> dict[str, float]:
    """Pixels to the side, so that cells of equal compression stand side by side."""
    alike: dict[float, list[str]] = {}
    for row in cells:
        alike.setdefault(row["compression"], []).append(row["anchor"])
    return {name: by for group in alike.values() for name, by in dodges(group, 11.0).items()}


def draw_thresholds_by_head(
    cells: Sequence[Row], heads: Sequence[Row], axis: SizeAxis, is_every_width: bool
) -> Figure:
    """D_K(h) of every cell, a panel each: thresholds, and arrows where only a bound is known.

    Args:
        cells: rows of ``thresholds.rows.cells_of``.
        heads: rows of ``heads_of``, one for each (cell, h).
        axis: the study's; its arm is the x-axis, its total width the y-axis.
        is_every_width: whether every d_k could be tried, not those of a grid alone.
    """
    arm, total = axis.shown_arm, axis.total
    listed = sorted({row[axis.arm] for row in heads})
    panels = []
    for cell in cells:
        own = [row for row in heads if row["anchor"] == cell["anchor"]]
        seen = [row for row in own if row[total] is not None or row["at_least"] is not None]
        if not seen:
            continue
        reach = [row[name] for row in seen for name in (total, axis.low, axis.high, "at_least")]
        x = log2_axis("heads h" if arm == "h" else arm, listed, pad=1.35)
        y = log2_axis(total, [width for width in reach if width], pad=1.5)
        points = [
            interval_point(
                row,
                row[axis.arm],
                total,
                "at_least" if row[total] is None else axis.low,
                axis.high,
                h=row[axis.arm] if arm == "h" else None,
            )
            for row in seen
        ]
        lines = _equal_parameters(x, y, axis) if axis.arm == "d_k" else []
        best = f"no {total}* ({cell['status']})"
        if cell[total] is not None:
            best = f"{total}* = {cell[total]} at {arm}* = {cell[axis.best_arm]}"
            lines.append(Line(points=((x.low, cell[total]), (x.high, cell[total])), look="guide"))
        joined = sorted((row[axis.arm], row[total]) for row in seen if row[total] is not None)
        if len(joined) > 1:
            points_of_line = tuple((float(arm), float(width)) for arm, width in joined)
            lines.append(Line(points=points_of_line, look="series"))
        panels.append(
            Panel(
                title=(cell["short"], best),
                x=x,
                y=y,
                lines=tuple(lines),
                points=tuple(points),
                height=150,
                cell=cell["anchor"],
            )
        )
    some_lack_it = any(point.arrow for panel in panels for point in panel.points)
    splits = SPLITS.format(steps=STEPS * is_every_width) + ARROWS * some_lack_it
    return Figure(
        name="splits" if arm == "h" else "frontier",
        title=f"Smallest passing {total} of each {'number of heads' if arm == 'h' else arm}",
        caption=splits if axis.has_rivals else FRONTIER + PARAMETERS * (axis.arm == "d_k"),
        panels=tuple(panels),
        legend=(*(head_keys(listed) if arm == "h" else ()), *guide_key(cells, total)),
        joins="thresholds of one cell",
        columns=columns_of(cells),
    )


def _equal_parameters(x: Axis, y: Axis, axis: SizeAxis) -> list[Line]:
    """Curves of an equal number of parameters of the heads: the same d_qk + d_vo."""
    h, lines, total = dict(axis.fixed)["h"], [], 4
    while h * total <= 4 * y.high:
        across = np.geomspace(x.low, min(x.high, total * 0.999), 40)
        points = tuple((float(at), h * float(total - at)) for at in across)
        lines.append(Line(points=tuple(p for p in points if p[1] >= y.low), look="guide"))
        total *= 2
    return lines


def columns_of(cells: Sequence[Row]) -> int:
    """Panels in a row: one per d_model if the cells mostly fill a grid with m, else up to 3."""
    ms, widths = {row["m"] for row in cells}, {row["d_model"] for row in cells}
    sizes = {(row["m"], row["d_model"]) for row in cells}
    tabular = len(sizes) == len(cells) and len(cells) >= 0.6 * len(ms) * len(widths)
    return len(widths) if tabular and 1 < len(widths) <= 4 else min(3, len(cells))
