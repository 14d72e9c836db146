"""Thresholds, head counts and the gain of several heads against the step limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from analysis.figures.heads import columns_of
from analysis.figures.panel import Figure, Key, Line, Panel, Point
from analysis.figures.scales import Axis, Tick, log2_axis, ratio_axis

THRESHOLDS = (
    "D_K* at each step limit, with the colour and shape of its h*, and below or beside it the "
    "threshold of one head. Bars: from optimistic to conservative, over seeds. Arrows: no width up "
    "to there passes. Dotted: D_K* extrapolated to an endless budget, where the curve allows it."
)
HEADS = (
    "h* at each step limit; the bars span the head counts that a paired test does not tell apart."
)
GAINS = (
    "The threshold of one head over that of the best head count, for each cell. Bars set the ends "
    "of both intervals against each other. Arrows: one head passes at no width. At 1 several heads "
    "gain nothing."
)

Row = Mapping[str, Any]


def draw_thresholds(families: Sequence[Sequence[Row]], limits: Mapping[str, Row]) -> Figure:
    """D_K*(T) and that of one head, a panel for each cell.

    Args:
        families: of each cell its rows of ``analysis.budgets.gains``, by growing limit, with
            ``anchor``, ``short`` and ``text``.
        limits: the row of ``analysis.budgets.limits`` of each cell, by the anchor of its last row.
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
                key=last["anchor"],
                title=(cell_title(last),),
                x=x,
                y=log2_axis("D_K", widths, pad=1.3),
                lines=tuple(line for line in lines if len(line.points) > 1),
                points=tuple(points),
                height=150,
            )
        )
    return Figure(
        name="budgets",
        title="D_K* against the step limit",
        caption=THRESHOLDS,
        panels=tuple(panels),
        legend=(Key(text="best head count", line="ours"), *_heads(families)),
        columns=columns_of([rows[-1] for rows in families]),
    )


def draw_heads(families: Sequence[Sequence[Row]]) -> Figure:
    """h*(T), a panel for each cell."""
    panels = []
    for rows in families:
        best = [row for row in rows if row["h_star"] is not None]
        if best:
            heads = [row[end] for row in best for end in ("h_low", "h_high")]
            panels.append(
                Panel(
                    key=rows[-1]["anchor"],
                    title=(cell_title(rows[-1]),),
                    x=_steps(rows),
                    y=log2_axis("h*", [1, 2, *heads], pad=1.3),
                    lines=(Line(points=_places(best, "h_star"), look="ours"),),
                    points=tuple(
                        Point(
                            x=row["max_steps"], y=row["h_star"], key=f"{row['anchor']}-h",
                            text=row["text"], cell=row["anchor"], h=row["h_star"],
                            low=row["h_low"], high=row["h_high"],
                        )
                        for row in best
                    ),
                    height=120,
                )
            )  # fmt: skip
    return Figure(
        name="heads-by-budget",
        title="h* against the step limit",
        caption=HEADS,
        panels=tuple(panels),
        columns=columns_of([rows[-1] for rows in families]),
    )


def draw_gains(families: Sequence[Sequence[Row]]) -> Figure | None:
    """D_K(1) / D_K* against the step limit, a panel for each cell; None where none is known."""
    panels = []
    for rows in families:
        shown = [row for row in rows if row["gain_low"] is not None]
        if not shown:
            continue
        known = [row for row in shown if row["gain"] is not None]
        heights = [row[end] for row in shown for end in ("gain_low", "gain_high") if row[end]]
        x = _steps(rows)
        panels.append(
            Panel(
                key=rows[-1]["anchor"],
                title=(cell_title(rows[-1]),),
                x=x,
                y=ratio_axis("D_K(1) / D_K*", [1.0, 2.0, *heights], pad=1.2),
                lines=(
                    Line(points=((x.low, 1.0), (x.high, 1.0)), look="target"),
                    *([Line(points=_places(known, "gain"), look="ours")] if known[1:] else []),
                ),
                points=tuple(
                    Point(
                        x=row["max_steps"], y=row["gain"] or row["gain_low"],
                        key=f"{row['anchor']}-gain", text=row["text"], cell=row["anchor"],
                        h=row["h_star"], arrow=row["gain"] is None,
                        low=row["gain_low"] if row["gain"] else None, high=row["gain_high"],
                    )
                    for row in shown
                ),
                height=120,
            )
        )  # fmt: skip
    if not panels:
        return None
    return Figure(
        name="gain-of-heads",
        title="What several heads gain, against the step limit",
        caption=GAINS,
        panels=tuple(panels),
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
