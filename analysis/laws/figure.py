"""The main figure: D_K* of each cell against the law's scale, and their ratio below it."""

from __future__ import annotations

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

WIDTHS = ("D_K", "D_K_low", "D_K_high")

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
    scales = [float(row["scale"]) for row in cells]
    x = log2_axis("m′ log₂ m / d_model", scales or [1, 1024], pad=1.3, above=1.6, finer=True)
    widths = _reach([*cells, *published]) or [1, 1024]
    y = log2_axis("smallest total key width D_K*", widths, pad=1.35, finer=True)
    main = _panel("width", x, y, 340, cells, curves, published)
    ratios, others = ([_ratio(row) for row in rows] for rows in (cells, published))
    y = ratio_axis("D_K* · d_model / (m′ log₂ m)", _reach([*ratios, *others]) or [1.0], pad=1.25)
    each = [(look, words, _over_scale(curve)) for look, words, curve in curves]
    ratio = _panel("ratio", x, y, 170, ratios, each, others)
    heads = sorted({int(row["h_star"]) for row in cells if row["h_star"]})
    legend = [Key(text=words, line=look) for look, words, _ in curves]
    if published:
        legend.append(Key(text="the paper, inferred from its Table 1", look="paper", hollow=True))
    legend += [Key(text=f"h* = {h}", h=h) for h in heads]
    return Figure(
        name="law",
        title="Smallest total key width D_K* against m′ log₂ m / d_model",
        caption=CAPTION,
        panels=(main, ratio),
        legend=tuple(legend),
        zoom=True,
    )


def _reach(rows: Sequence[Row]) -> list[float]:
    return [row[name] for row in rows for name in WIDTHS if row.get(name)]


def _ratio(row: Row) -> Row:
    """A row with its widths divided by the scale."""
    ratios = {name: row[name] / row["scale"] for name in WIDTHS if row.get(name)}
    known = ratios.get("D_K", ratios.get("D_K_low"))
    more = "" if "h_star" not in row or known is None else f"\nratio {known:.3f}"
    return {**row, **ratios, "text": f"{row['text']}{more}"}


def _over_scale(curve: Curve) -> Curve:
    return lambda x: curve(x) / x


def _panel(
    key: str,
    x: Axis,
    y: Axis,
    height: int,
    cells: Sequence[Row],
    curves: Sequence[tuple[str, str, Curve]],
    published: Sequence[Row],
) -> Panel:
    lines = []
    for look, _, curve in curves:
        at = [(float(v), curve(float(v))) for v in np.geomspace(x.low, x.high, 60)]
        lines.append(Line(points=tuple(p for p in at if p[1] > 0), look=look))
    points = [
        Point(
            x=float(row["scale"]), y=row["D_K"], key=f"{key}-paper-{row['anchor']}",
            text=row["text"], cell=row["anchor"], look="paper",
        )
        for row in published
    ]  # fmt: skip
    points += [
        width_point(row, "D_K", float(row["scale"]), f"{key}-{row['anchor']}", row["h_star"])
        for row in cells
        if row["D_K"] is not None or row["D_K_low"] is not None
    ]
    lines += _series(cells, x, y, labelled=key == "width")
    return Panel(x=x, y=y, height=height, links=True, lines=tuple(lines), points=tuple(points))


def _series(cells: Sequence[Row], across: Axis, up: Axis, labelled: bool) -> list[Line]:
    """Lines through the cells of one d_model, where several d_model have several cells."""
    found = sorted((row for row in cells if row["D_K"]), key=lambda row: float(row["scale"]))
    widths = sorted({row["d_model"] for row in found})
    if len(widths) < 2:
        return []
    places = [(across.at(row["scale"]), up.at(row["D_K"])) for row in found]
    lines = []
    for width in widths:
        own = [(float(row["scale"]), row["D_K"]) for row in found if row["d_model"] == width]
        end = across.at(own[-1][0]), up.at(own[-1][1])
        if len(own) > 1 or len(widths) <= 6:
            lines.append(
                Line(
                    points=tuple(own),
                    look="series",
                    label=f"d_model = {width}" if labelled else None,
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


def width_point(row: Row, total: str, x: float, key: str, h: int | None) -> Point:
    """The threshold of a row with its interval, or an arrow from the smallest width not excluded.

    Args:
        row: with ``text``, ``anchor``, ``status``, the total width and its ends.
        total: ``D_K`` or ``D_V``.
        h: what it is coloured by.
    """
    value = row[total]
    low, high = (row[f"{total}_{end}"] for end in ("low", "high"))
    return Point(
        x=x,
        y=low if value is None else value,
        key=key,
        text=row["text"],
        cell=row["anchor"],
        h=h,
        low=None if value is None else low or value,
        high=None if value is None else high or value,
        hollow=row["status"] == "open",
        arrow=value is None,
    )
