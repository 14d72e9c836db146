"""One head against the best head count as the training budget grows, cell by cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from analysis.drawing.panel import Figure, Key, Line, Panel, Point
from analysis.drawing.scales import Axis, Tick, log2_axis
from analysis.heads.figures import columns_of

CAPTION = (
    "D_K* at each step limit, with the colour and shape of its h*, and below or beside it the "
    "threshold of one head. Bars: from optimistic to conservative, over seeds. Arrows: no width up "
    "to there passes. Dotted: D_K* extrapolated to an endless budget, where the curve allows it."
)
Row = Mapping[str, Any]


def draw_one_head(families: Sequence[Sequence[Row]], limits: Mapping[str, Row]) -> Figure:
    """D_K*(T) and that of one head, a panel for each cell.

    Args:
        families: of each cell its rows of ``step_limits.gains``, by growing limit, with
            ``anchor``, ``short`` and ``text``.
        limits: the row of ``step_limits.limits`` of each cell, by the anchor of its last row.
    """
    panels = []
    for rows in families:
        best = [row for row in rows if row["D_K"] is not None]
        alone = [row for row in rows if row["D_K_one"] is not None]
        last, limit = rows[-1], limits[rows[-1]["anchor"]]
        widths = [row["D_K"] for row in best] + [row["D_K_one"] for row in alone]
        widths += [row["one_low"] for row in rows if row["one_low"] is not None]
        if not widths:
            continue
        lines = [
            Line(points=_places(best, "D_K"), look="ours"),
            Line(points=_places(alone, "D_K_one"), look="head", h=1),
        ]
        x = _steps(rows)
        if limit["D_K_limit"] is not None:
            at = limit["D_K_limit"]
            lines.append(Line(points=((x.low, at), (x.high, at)), look="guide"))
            widths.append(at)
        points = [
            Point(
                x=row["max_steps"], y=row["D_K"], key=f"{row['anchor']}-best", text=row["text"],
                cell=row["anchor"], h=row["h_star"], low=row["D_K_low"], high=row["D_K_high"],
            )
            for row in best
        ]  # fmt: skip
        points += [_one_head(row) for row in rows if row["h_star"] != 1 and _bound(row) is not None]
        panels.append(
            Panel(
                title=(cell_title(last),),
                x=x,
                y=log2_axis("D_K", widths, pad=1.3),
                lines=tuple(line for line in lines if len(line.points) > 1),
                points=tuple(points),
                height=150,
            )
        )
    return Figure(
        name="one-head",
        title="One head against the best, by step limit",
        caption=CAPTION,
        panels=tuple(panels),
        legend=(Key(text="best head count", line="ours"), *_heads(families)),
        columns=columns_of([rows[-1] for rows in families]),
    )


def cell_title(row: Row) -> str:
    """A cell without its step limit."""
    more = f", r = {row['degree']}" if row["degree"] != 1 else ""
    return f"({row['m']}, {row['d_model']}{more})"


def _steps(rows: Sequence[Row]) -> Axis:
    """The step limits, a tick for every other one, in thousands."""
    limits = [row["max_steps"] for row in rows]
    ticks = tuple(Tick(limit, f"{limit / 1000:g}k") for limit in limits[::2])
    return Axis("step limit", min(limits) / 1.3, max(limits) * 1.3, ticks)


def _places(rows: Sequence[Row], name: str) -> tuple[tuple[float, float], ...]:
    return tuple((row["max_steps"], row[name]) for row in rows)


def _bound(row: Row) -> int | None:
    """The threshold of one head, or the width beyond which it lies."""
    bound: int | None = row["one_low"] if row["D_K_one"] is None else row["D_K_one"]
    return bound


def _one_head(row: Row) -> Point:
    bound, found = _bound(row), row["D_K_one"] is not None
    assert bound is not None
    return Point(
        x=row["max_steps"],
        y=bound,
        key=f"{row['anchor']}-one",
        text=row["text"],
        cell=row["anchor"],
        h=1,
        arrow=not found,
        low=row["one_low"] if found else None,
        high=row["one_high"] if found else None,
    )


def _heads(families: Sequence[Sequence[Row]]) -> list[Key]:
    heads = {row["h_star"] for rows in families for row in rows if row["h_star"]} | {1}
    return [Key(text=f"h = {h}", h=h) for h in sorted(heads)]
