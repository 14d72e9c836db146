"""Thresholds as the training budget grows: D_K*(T), h*(T), and one head beside the best."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rgr_dist.analysis.drawing.panel import Figure, Key, Line, Panel, Place, Point
from rgr_dist.analysis.drawing.points import head_keys, interval_point
from rgr_dist.analysis.drawing.scales import Axis, Tick, log2_axis, ratio_axis
from rgr_dist.analysis.heads.figures import columns_of
from rgr_dist.analysis.page.section import Row
from rgr_dist.analysis.wording import MISSING, with_limits, with_range

MOST_LABELS = 12
"""The most lines that are labelled with the names of their cells; if there are more, none is."""
LABEL_HEIGHT = 13
"""In pixels; a label closer than this to another is left out."""


def tip(row: Row) -> str:
    """The tooltip of a point: its cell at its step limit."""
    found = "= " if row["D_K"] is not None else ""
    heads = with_range(row["h_star"], row["h_low"], row["h_high"])
    at = f" at h* = {heads}" if row["h_star"] is not None else ""
    return (
        f"{cell_title(row)}, T = {row['max_steps']:,}\n"
        f"D_K* {found}{with_range(row['D_K'], row['D_K_low'], row['D_K_high'])}{at}{so_far(row)}\n"
        f"one head: {with_range(row['D_K_one'], row['one_low'], row['one_high'])}, "
        f"gain {gain_words(row)}"
    )


def cell_title(row: Row) -> str:
    """The name of a cell without its step limit."""
    return re.sub(r", [\d,]+ steps(?=[,)])", "", row["short"])


def width_words(row: Row) -> str:
    """D_K* with its interval, ``20 [18–24]``, marked ``so far`` while the search is open."""
    return with_range(row["D_K"], row["D_K_low"], row["D_K_high"]) + so_far(row)


def so_far(row: Row) -> str:
    """The words after a D_K* that may yet fall because the search is open; empty otherwise."""
    return ", so far" if row["status"] == "open" and row["D_K"] is not None else ""


def gain_words(row: Row) -> str:
    """``1.29 [1.10–1.50]``, or a bound where one head has no threshold."""
    if row["gain"] is None:
        return MISSING if row["gain_low"] is None else f"≥ {row['gain_low']:.2f}"
    return with_limits(row["gain"], row["gain_low"], row["gain_high"], "{:.2f}".format)


def draw_training_time(curves: Sequence[Sequence[Row]]) -> Figure:
    """D_K*(T), h*(T) and the gain, a line for each cell.

    Args:
        curves: for each cell its rows of ``step_limits.gains``, by growing limit, with ``anchor``.
    """
    rows = sorted((row for curve in curves for row in curve), key=lambda row: row["max_steps"])
    x = _steps_axis(sorted({row["max_steps"] for row in rows}))
    panels = [
        _panel(rows, x, "D_K", ("D_K_low", "D_K_high"), "smallest total key width D_K*", 320),
        _panel(rows, x, "h_star", ("h_low", "h_high"), "best number of heads h*", 200),
    ]
    if any(row["gain"] is not None or row["gain_low"] is not None for row in rows):
        panels.append(_panel(rows, x, "gain", ("gain_low", "gain_high"), "gain D_K(1) / D_K*", 200))
    return Figure(
        name="training-time",
        title="Thresholds against the step limit",
        caption=(
            "D_K*, h* and the gain of several heads over one, D_K(1) / D_K*, against the step "
            "limit T. Bars run over the 95 % intervals; an arrow is a lower bound. Colour and "
            "shape are h*."
        ),
        joins="step limits of one cell",
        panels=tuple(panels),
        legend=head_keys((row["h_star"] for row in rows if row["h_star"]), "h*"),
    )


def _panel(
    rows: Sequence[Row], x: Axis, of: str, ends: tuple[str, str], label: str, height: int
) -> Panel:
    reach = [row[name] for row in rows for name in (of, *ends) if row[name]]
    is_gain = of == "gain"
    y = ratio_axis(label, [1.0, *reach], 1.2) if is_gain else log2_axis(label, reach or [1, 2], 1.3)
    lines = [Line(points=((x.low, 1.0), (x.high, 1.0)), look="target")] if is_gain else []
    titles = dict.fromkeys(cell_title(row) for row in rows)
    labelled: list[float] = []
    for title in titles:
        places = _places([row for row in rows if cell_title(row) == title], of)
        if not places:
            continue
        end = y.at(places[-1][1]) * height
        is_apart = all(abs(end - other) >= LABEL_HEIGHT for other in labelled)
        label_ = title if of == "D_K" and len(titles) <= MOST_LABELS and is_apart else None
        labelled += [end] if label_ else []
        lines.append(Line(points=places, look="series", label=label_, width_to_label=480))
    points = _points(rows, of, ends)
    return Panel(x=x, y=y, lines=tuple(lines), points=points, height=height, links=True)


def _places(rows: Sequence[Row], of: str) -> tuple[Place, ...]:
    return tuple((float(row["max_steps"]), float(row[of])) for row in rows if row[of] is not None)


def _points(rows: Sequence[Row], of: str, ends: tuple[str, str]) -> tuple[Point, ...]:
    """A point for each known value, or for its lower end if only that is known."""
    return tuple(
        interval_point(row, row["max_steps"], of, *ends, h=row["h_star"])
        for row in rows
        if row[of] is not None or row[ends[0]] is not None
    )


def _steps_axis(steps: Sequence[int]) -> Axis:
    """Of increasing step limits; if there are many, the last and every second one are labelled."""
    every = 1 + len(steps) // 5
    labelled = steps[(len(steps) - 1) % every :: every]
    ticks = tuple(Tick(T, f"{T / 1000:g}k") for T in labelled)
    return Axis("step limit T", steps[0] / 1.3, steps[-1] * 1.3, ticks)


def draw_one_head(curves: Sequence[Sequence[Row]]) -> Figure:
    """D_K*(T) and the threshold of one head, a panel for each cell.

    Args:
        curves: for each cell its rows of ``step_limits.gains``, by growing limit, with ``anchor``.
    """
    drawn = [_beside_one_head(rows) for rows in curves]
    heads = {1, *(row["h_star"] for rows in curves for row in rows if row["h_star"])}
    best = Key(text="best head count", line="ours")
    return Figure(
        name="one-head",
        title="One head against the best, by step limit",
        caption=(
            "D_K* at each step limit, with the colour and shape of its h*, and above it the "
            "threshold of one head, unless one head is the best. Bars run from the optimistic to "
            "the conservative D_K. An arrow starts at the smallest width not excluded, where one "
            "head has no threshold."
        ),
        panels=tuple(panel for panel in drawn if panel is not None),
        legend=(best, *head_keys(heads)),
        columns=columns_of([rows[-1] for rows in curves]),
    )


def _beside_one_head(rows: Sequence[Row]) -> Panel | None:
    """The panel of one cell; None where neither the best nor one head has a threshold or bound."""
    shown = [row[name] for row in rows for name in ("D_K", "D_K_one", "one_low")]
    widths = [width for width in shown if width is not None]
    if not widths:
        return None
    lines = [
        Line(points=_places(rows, "D_K"), look="ours"),
        Line(points=_places(rows, "D_K_one"), look="head", h=1),
    ]
    found = [row for row in rows if row["D_K"] is not None]
    rivals = [
        {**row, "h_star": 1, "status": row["one_status"]} for row in rows if row["h_star"] != 1
    ]
    return Panel(
        title=(cell_title(rows[-1]),),
        x=_steps_axis([row["max_steps"] for row in rows]),
        y=log2_axis("D_K", widths, pad=1.3),
        lines=tuple(line for line in lines if len(line.points) > 1),
        points=(
            *_points(found, "D_K", ("D_K_low", "D_K_high")),
            *_points(rivals, "D_K_one", ("one_low", "one_high")),
        ),
        height=150,
        cell=rows[-1]["anchor"],
    )
