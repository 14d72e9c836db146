"""The main figure: the smallest width of each cell against the quantity it should grow with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from rgr_dist.analysis.drawing.panel import Figure, Key, Line, Panel, Place, Point
from rgr_dist.analysis.drawing.points import (
    PUBLISHED,
    Curve,
    along,
    dodges,
    head_keys,
    interval_point,
)
from rgr_dist.analysis.drawing.scales import Axis, log2_axis, ratio_axis
from rgr_dist.analysis.laws.scaling_laws import Law
from rgr_dist.analysis.page.section import Row
from rgr_dist.analysis.wording import span

CAPTION = (
    "Above: the smallest total key width D_K* of each cell against m′ log₂ m / d_model. Below: "
    "their ratio, which would be one constant if D_K* were proportional to that. Bars run from the "
    "optimistic to the conservative D_K* (95 % t-intervals over seeds). Colour and shape are the "
    "best number of heads h*. A hollow mark is a cell whose search is not finished; an arrow "
    "starts at the smallest width not excluded."
)
FITTED = (
    " A mark stands at the width that passes; a law is fitted to the interval from the failing to "
    "the passing width, a line of least squares to the marks."
)
BEYOND = (
    " The paper’s line is fitted to larger cells too; the diamonds are its own D_K* of the cells "
    "drawn here."
)

FAMILIES = (
    "The smallest total value width D_V = h d_vo that passes, of each cell at each {arm}; a cell’s "
    "smallest is its D_V*. Bars run from the optimistic to the conservative D_V."
)
ARROWS = (
    " An arrow is one {arm} of a cell, at which no width tried passes, the largest {tried}; it "
    "starts at the smallest width not excluded."
)
LINES = (
    " A line is the power law of a family of databases at one {arm}, fitted to the intervals from "
    "the failing to the passing width; it is left out if the interval of its power holds 0."
)
WIDTHS = ("D_K", "D_K_low", "D_K_high")
LABEL = 0.1
"""How near to another line, in shares of a panel, one may end and still have a label."""


def draw_law(
    cells: Sequence[Row],
    curves: Sequence[tuple[str, str, Curve]],
    published: Sequence[Row],
    law: tuple[str, Sequence[Line]] | None = None,
    is_beyond: bool = False,
) -> Figure:
    """D_K* against m′ log₂ m / d_model, and D_K* divided by it.

    Args:
        cells: rows of ``thresholds.rows.cells_of``.
        curves: laws to draw: look, words for the legend, and D_K* as a function of the scale.
        published: rows with the scale and D_K* of cells as published, with ``text``.
        law: a law that is no function of the scale alone: words for the legend, and a curve for
            each d_model and degree.
        is_beyond: whether the paper's line is fitted to larger cells than these too.
    """
    scales = [float(row["scale"]) for row in cells]
    x = log2_axis("x = m′ log₂ m / d_model", scales or [1, 1024], pad=1.3, above=1.6, finer=True)
    widths = _reach([*cells, *published]) or [1, 1024]
    y = log2_axis("smallest total key width D_K*", widths, pad=1.35, finer=True)
    of_sizes = [replace(curve, points=_within(curve, x, y)) for curve in (law[1] if law else ())]
    main = _panel(x, y, 340, cells, curves, published, of_sizes, labelled=True)
    ratios, others = ([_ratio(row) for row in rows] for rows in (cells, published))
    y = ratio_axis("D_K* · d_model / (m′ log₂ m)", _reach([*ratios, *others]) or [1.0], pad=1.25)
    each = [(look, words, _over_scale(curve)) for look, words, curve in curves]
    divided = [
        replace(
            curve, points=tuple((scale, D_K / scale) for scale, D_K in curve.points), label=None
        )
        for curve in of_sizes
    ]
    ratio = _panel(x, y, 170, ratios, each, others, divided)
    legend = [Key(text=law[0], line="ours")] if law else []
    legend += [Key(text=words, line=look) for look, words, _ in curves]
    if published:
        legend.append(PUBLISHED)
    legend += head_keys((int(row["h_star"]) for row in cells if row["h_star"]), "h*")
    is_fitted = law is not None or any(look in ("ours", "rest") for look, *_ in curves)
    return Figure(
        name="law",
        title="Smallest total key width D_K* against m′ log₂ m / d_model",
        caption=CAPTION + FITTED * is_fitted + BEYOND * is_beyond,
        panels=(main, ratio),
        legend=tuple(legend),
        joins="cells of one d_model",
        zoom=True,
    )


def _within(curve: Line, across: Axis, up: Axis) -> tuple[Place, ...]:
    """The places of a curve inside the panel, where its label shows."""
    places = curve.points
    return tuple(at for at in places if across.at(at[0]) <= 1 and up.at(at[1]) <= 1) or places


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
    x: Axis,
    y: Axis,
    height: int,
    cells: Sequence[Row],
    curves: Sequence[tuple[str, str, Curve]],
    published: Sequence[Row],
    of_sizes: Sequence[Line],
    labelled: bool = False,
) -> Panel:
    lines = [Line(points=along(curve, x), look=look) for look, _, curve in curves]
    lines += of_sizes
    points = [
        Point(x=row["scale"], y=row["D_K"], text=row["text"], cell=row["anchor"], look="paper")
        for row in published
    ]
    points += [
        interval_point(row, row["scale"], *WIDTHS, h=row["h_star"])
        for row in cells
        if row["D_K"] is not None or row["D_K_low"] is not None
    ]
    lines += _series(cells, x, y, labelled)
    return Panel(x=x, y=y, height=height, links=True, lines=tuple(lines), points=tuple(points))


def _series(cells: Sequence[Row], across: Axis, up: Axis, labelled: bool) -> list[Line]:
    """Lines through the cells of each d_model, where there are several values of d_model."""
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


def _is_in_the_way(places: Sequence[Place], end: Place, side: int) -> bool:
    """Whether a cell lies where the label would: right of and below the end, or left and above."""
    return any(
        0 < side * (x - end[0]) < LABEL and -0.08 < side * (y - end[1]) < 0.04 for x, y in places
    )


def draw_families(rows: Sequence[Row], laws: Sequence[Law], arm: str) -> Figure:
    """D_V of each setting against the number of facts and the rank bound, with the power laws.

    Args:
        rows: from ``rgr_dist.analysis.facts.tables.rows_of_facts``.
        laws: from ``rgr_dist.analysis.laws.families.laws``; only those of a single family of
            databases are drawn.
        arm: the width that tells the settings of a cell apart.
    """
    families = list(dict.fromkeys(row["database"] for row in rows))
    colours = {family: 2**i for i, family in enumerate(families)}
    known = [row for row in rows if row["D_V"] is not None or row["D_V_low"] is not None]
    failed = [row["D_V_fails"] for row in known if row["D_V"] is None and row["D_V_fails"]]
    reach = [row[name] for row in rows for name in ("D_V", "D_V_low", "D_V_high") if row[name]]
    y = log2_axis("smallest passing D_V", reach or [1, 64], pad=1.3)
    panels = []
    for key, label, column in (
        ("facts", "number of facts", "facts"),
        ("rank", "bound on the rank of the database", "rank_high"),
    ):
        x = log2_axis(label, [row[column] for row in rows if row[column]] or [1, 1024], pad=1.3)
        at: dict[float, set[str]] = {}
        for row in known:
            at.setdefault(row[column], set()).add(row["database"])
        points = [
            interval_point(
                row,
                row[column],
                "D_V",
                "D_V_low",
                "D_V_high",
                h=colours[row["database"]],
                dodge=dodges(sorted(at[row[column]]))[row["database"]],
            )
            for row in known
            if row[column] is not None  # no study without a run has ranks
        ]
        lines: list[Line] = []
        ends: list[Place] = []
        for law in laws:
            family = law.name.rpartition("_")[2]
            drawn = f"D_V_{key}_" in law.name and (len(families) < 2 or family in colours)
            if drawn and law.is_trend and law.factor is not None and law.exponent is not None:
                curve = along(power_curve(law.factor, law.exponent), x, 30)
                shown = tuple(place for place in curve if place[1] <= y.high)
                if not shown:
                    continue
                setting = law.cells.partition(", ")[0] if "=" in law.cells else None
                end = x.at(shown[-1][0]), y.at(shown[-1][1])
                named = setting if all(math.dist(end, one) > LABEL for one in ends) else None
                ends.append(end)
                colour = colours.get(family, 1)
                lines.append(Line(points=shown, look="head", h=colour, label=named, before=True))
        panels.append(Panel(x=x, y=y, lines=tuple(lines), points=tuple(points), height=300))
    told = [FAMILIES, ARROWS * bool(failed), LINES * any(panel.lines for panel in panels)]
    return Figure(
        name="facts-law",
        title="D_V* against facts and against rank",
        caption="".join(told).format(arm=arm, tried=span(failed) if failed else ""),
        panels=tuple(panels),
        legend=tuple(Key(text=family, h=colours[family]) for family in families),
        columns=2,
    )


def power_curve(factor: float, exponent: float) -> Curve:
    """A power law as a function."""
    return lambda x: factor * x**exponent
