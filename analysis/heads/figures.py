"""What several heads are worth: h* against compression, and D_K(h) of each cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from analysis.drawing.panel import Figure, Key, Line, Panel, Point
from analysis.drawing.scales import log2_axis

BEST = (
    "The head count h* that needs the smallest D_K, against the compression m′ / d_model. Bars "
    "span the head counts within 10 % of D_K*, or one step of their d_k, that a paired t-test does "
    "not distinguish from h*. "
    "Cells of equal compression stand side by side."
)
SPLITS = (
    "D_K(h), the smallest passing total key width of h heads, cell by cell: the lowest mark is "
    "D_K* at h*. Bars run from the optimistic to the conservative D_K. An arrow is a lower "
    "bound, of heads without a threshold: pruned, being beyond the kept margin of the best; "
    "censored, since no width allowed has passed; inconsistent, since a width passes below one "
    "that fails; or not finished. Searching every head to its threshold takes keep_within: none."
)

Row = Mapping[str, Any]


def draw_best_heads(
    cells: Sequence[Row],
    curves: Sequence[tuple[str, str, Callable[[float], float]]],
    published: Sequence[Row],
) -> Figure:
    """h* against compression: cells, fits, and the published head counts."""
    x = [float(row["compression"]) for row in cells]
    reach = [row[name] for row in cells for name in ("h_star", "h_low", "h_high") if row[name]]
    reach += [row["h"] for row in published]
    across = log2_axis("compression m′ / d_model", x or [1, 32], pad=1.4)
    up = log2_axis("best number of heads h*", [*reach, 1, 8], pad=1.4)
    shift = _shifts(cells)
    lines = []
    for look, _, curve in curves:
        at = [(float(v), curve(float(v))) for v in np.geomspace(across.low, across.high, 60)]
        lines.append(Line(points=tuple(p for p in at if p[1] > 0), look=look))
    points = [
        Point(
            x=row["compression"], y=row["h"], key=f"paper-{row['anchor']}", text=row["text"],
            cell=row["anchor"], look="paper", dodge=shift.get(row["anchor"], 0),
        )
        for row in published
    ]  # fmt: skip
    points += [
        Point(
            x=row["compression"], y=row["h_star"], key=row["anchor"], text=row["text"],
            cell=row["anchor"], h=row["h_star"], low=row["h_low"], high=row["h_high"],
            hollow=row["status"] == "open", dodge=shift[row["anchor"]],
        )
        for row in cells
        if row["h_star"]
    ]  # fmt: skip
    legend = [Key(text=words, line=look) for look, words, _ in curves]
    if published:
        legend.append(Key(text="the paper, inferred from its Table 1", look="paper", hollow=True))
    panel = Panel(x=across, y=up, lines=tuple(lines), points=tuple(points), height=260, links=True)
    title = "Best number of heads h* against m′ / d_model"
    return Figure(name="heads", title=title, caption=BEST, panels=(panel,), legend=tuple(legend))


def _shifts(cells: Sequence[Row]) -> dict[str, float]:
    """Pixels to the side, so that cells of equal compression stand side by side."""
    alike: dict[float, list[str]] = {}
    for row in cells:
        alike.setdefault(row["compression"], []).append(row["anchor"])
    return {
        anchor: 11.0 * (i - (len(group) - 1) / 2)
        for group in alike.values()
        for i, anchor in enumerate(group)
    }


def draw_thresholds_by_head(cells: Sequence[Row], heads: Sequence[Row]) -> Figure:
    """D_K(h) of every cell, a panel each: thresholds, and arrows where only a bound is known.

    Args:
        cells: rows of ``thresholds.rows.cells_of``.
        heads: rows of ``heads_of``, one for each (cell, h).
    """
    counts = sorted({row["h"] for row in heads})
    panels = []
    for cell in cells:
        own = [row for row in heads if row["anchor"] == cell["anchor"]]
        seen = [row for row in own if row["D_K"] is not None or row["at_least"] is not None]
        if not seen:
            continue
        ends = ("D_K", "D_K_low", "D_K_high", "at_least")
        reach = [row[name] for row in seen for name in ends if row[name]]
        found = sorted((row for row in seen if row["D_K"] is not None), key=lambda row: row["h"])
        points = [
            Point(
                x=row["h"],
                y=row["D_K"] if row["D_K"] is not None else row["at_least"],
                key=f"{cell['anchor']}-h{row['h']}",
                text=row["text"],
                h=row["h"],
                low=row["D_K_low"],
                high=row["D_K_high"],
                hollow=row["status"] == "open",
                arrow=row["D_K"] is None,
            )
            for row in seen
        ]
        lines = []
        if cell["D_K"] is not None:
            lines.append(_level(cell["D_K"], counts))
        if len(found) > 1:
            joined = tuple((float(row["h"]), float(row["D_K"])) for row in found)
            lines.append(Line(points=joined, look="series"))
        best = "" if cell["D_K"] is None else f"D_K* = {cell['D_K']} at h* = {cell['h_star']}"
        panels.append(
            Panel(
                title=(cell["short"], best or cell["status"]),
                x=log2_axis("heads h", counts, pad=1.35),
                y=log2_axis("D_K", reach, pad=1.5),
                lines=tuple(lines),
                points=tuple(points),
                height=150,
                cell=cell["anchor"],
            )
        )
    legend = tuple(Key(text=f"h = {h}", h=h) for h in counts)
    return Figure(
        name="splits",
        title="Smallest passing D_K of each number of heads",
        caption=SPLITS,
        panels=tuple(panels),
        legend=legend,
        columns=columns_of(cells),
    )


def _level(D_K: float, counts: Sequence[int]) -> Line:
    ends = (min(counts) / 1.35, max(counts) * 1.35)
    return Line(points=tuple((end, float(D_K)) for end in ends), look="guide")


def columns_of(cells: Sequence[Row]) -> int:
    """Panels in a row: the widths of a grid of m by d_model if it is mostly filled, else 3."""
    ms, widths = {row["m"] for row in cells}, {row["d_model"] for row in cells}
    sizes = {(row["m"], row["d_model"]) for row in cells}
    tabular = len(sizes) == len(cells) and len(cells) >= 0.6 * len(ms) * len(widths)
    return len(widths) if tabular and 1 < len(widths) <= 4 else min(3, len(cells))
