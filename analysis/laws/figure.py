"""The main figure: D_K* of each cell against the law's scale, and their ratio below it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rgr_dist.analysis.drawing.panel import Figure, Key, Line, Panel, Place, Point
from rgr_dist.analysis.drawing.scales import Axis, log2_axis, ratio_axis

CAPTION = (
    "Above: the smallest total key width D_K* of each cell against m′ log₂ m / d_model. Below: "
    "their ratio, which would be one constant if D_K* were proportional to that. Bars run from the "
    "optimistic to the conservative D_K* (95 % t-intervals over seeds). Colour and shape are the "
    "best number of heads h*; thin lines join the cells of one d_model. A hollow mark is a cell "
    "whose search is not finished; an arrow starts at the smallest width not excluded."
)

Row = Mapping[str, Any]
Curve = Callable[[float], float]


def draw_law(
    cells: Sequence[Row], curves: Sequence[tuple[str, str, Curve]], published: Sequence[Row]
) -> Figure:
    """D_K* against m′ log₂ m / d_model, and D_K* divided by it.

    Args:
        cells: rows of ``thresholds.rows.cells_of``.
        curves: laws to draw: look, words for the legend, and D_K* as a function of the scale.
        published: rows with the scale and D_K* of cells as published, with ``text``.
    """
    x = [float(row["scale"]) for row in cells]
    reach = [row[name] for row in cells for name in ("D_K", "D_K_low", "D_K_high") if row[name]]
    reach += [row["D_K"] for row in published]
    across = log2_axis("m′ log₂ m / d_model", x or [1, 1024], pad=1.3, above=1.6, finer=True)
    up = log2_axis("smallest total key width D_K*", reach or [1, 1024], pad=1.35, finer=True)
    ratios = [
        row[name] / row["scale"]
        for row in cells
        for name in ("D_K", "D_K_low", "D_K_high")
        if row[name]
    ]
    ratios += [row["D_K"] / row["scale"] for row in published]
    beside = ratio_axis("D_K* · d_model / (m′ log₂ m)", ratios or [1.0], pad=1.25)
    main, ratio = (
        Panel(
            x=across,
            y=axis,
            height=height,
            links=True,
            lines=(*_fits(curves, across, each), *_series(cells, across, axis, each)),
            points=(*_published(published, key, each), *_cells(cells, key, each)),
        )
        for key, axis, height, each in (
            ("width", up, 340, False),
            ("ratio", beside, 170, True),
        )
    )
    heads = sorted({int(row["h_star"]) for row in cells if row["h_star"]})
    legend = [Key(text=words, line=look) for look, words, _ in curves]
    if published:
        legend.append(Key(text="the paper, inferred from its Table 1", look="paper", hollow=True))
    legend += [Key(text=f"h* = {h}", h=h) for h in heads]
    title = "Smallest total key width D_K* against m′ log₂ m / d_model"
    return Figure(
        name="law",
        title=title,
        caption=CAPTION,
        panels=(main, ratio),
        legend=tuple(legend),
        zoom=True,
    )


def _fits(curves: Sequence[tuple[str, str, Curve]], across: Axis, each: bool) -> list[Line]:
    """The laws over the width of the panel; divided by x with ``each``."""
    x = np.geomspace(across.low, across.high, 60)
    lines = []
    for look, _, curve in curves:
        at = [(float(v), curve(float(v)) / (float(v) if each else 1)) for v in x]
        lines.append(Line(points=tuple(p for p in at if p[1] > 0), look=look))
    return lines


def _series(cells: Sequence[Row], across: Axis, up: Axis, each: bool) -> list[Line]:
    """Lines through the cells of one d_model, where several d_model have several cells."""
    found = [row for row in cells if row["D_K"]]
    widths = sorted({row["d_model"] for row in found})
    if len(widths) < 2:
        return []
    places = [(across.at(_scale(row)), up.at(row["D_K"])) for row in found]
    lines = []
    for width in widths:
        own = sorted((row for row in found if row["d_model"] == width), key=_scale)
        points = tuple((_scale(row), row["D_K"] / (_scale(row) if each else 1)) for row in own)
        label = None if each else f"d_model = {width}"
        end = across.at(_scale(own[-1])), up.at(own[-1]["D_K"])
        if len(own) > 1 or len(widths) <= 6:
            lines.append(
                Line(
                    points=points,
                    look="series",
                    label=label,
                    width_to_label=480,
                    before=_is_in_the_way(places, end, 1) and not _is_in_the_way(places, end, -1),
                )
            )
    return lines


LABEL = 0.1, 0.08
"""Width and height of a label, as shares of the panel's."""


def _is_in_the_way(places: Sequence[Place], end: Place, side: int) -> bool:
    """Whether another cell lies where a label would stand, beside the end and a little below."""
    return any(
        0 < side * (x - end[0]) < LABEL[0] and -LABEL[1] < y - end[1] < LABEL[1] / 2
        for x, y in places
    )


def _scale(row: Row) -> float:
    return float(row["scale"])


def _cells(cells: Sequence[Row], key: str, each: bool) -> list[Point]:
    points = []
    for row in cells:
        by = _scale(row) if each else 1.0
        bound = row["D_K_low"]
        if row["D_K"] is None and bound is None:
            continue
        middle = row["D_K"] if row["D_K"] is not None else bound
        ends = [middle if row[end] is None else row[end] for end in ("D_K_low", "D_K_high")]
        points.append(
            Point(
                x=_scale(row),
                y=middle / by,
                key=f"{key}-{row['anchor']}",
                text=row["text"] if not each else f"{row['text']}\nratio {middle / by:.3f}",
                cell=row["anchor"],
                h=row["h_star"],
                low=None if row["D_K"] is None else ends[0] / by,
                high=None if row["D_K"] is None else ends[1] / by,
                hollow=row["status"] == "open",
                arrow=row["D_K"] is None,
            )
        )
    return points


def _published(published: Sequence[Row], key: str, each: bool) -> list[Point]:
    return [
        Point(
            x=_scale(row),
            y=row["D_K"] / (_scale(row) if each else 1.0),
            key=f"{key}-paper-{row['anchor']}",
            text=row["text"],
            cell=row["anchor"],
            look="paper",
        )
        for row in published
        if row["D_K"] and math.isfinite(row["D_K"])
    ]
