"""Thresholds as the training budget grows: D_K*(T), h*(T) and the gain of several heads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from analysis.drawing.panel import Figure, Key, Line, Panel, Point
from analysis.drawing.scales import Axis, Tick, log2_axis, ratio_axis

CAPTION = (
    "D_K*, h* and the gain of several heads over one, D_K(1) / D_K*, against the step limit T; a "
    "line joins the limits of one cell. Bars run over the 95 % intervals; an arrow is a lower "
    "bound. Colour and shape are h*."
)

Row = Mapping[str, Any]


def draw_training_time(rows: Sequence[Row]) -> Figure:
    """D_K*(T), h*(T) and the gain, a line for each size.

    Args:
        rows: of ``step_limits.gains`` with ``anchor``, ``size`` and ``text``, T growing.
    """
    steps = sorted({row["max_steps"] for row in rows})
    x = log2_axis("step limit T", steps, pad=1.3)
    x = Axis(x.label, x.low, x.high, tuple(Tick(T, _thousands(T)) for T in _spread(steps)))
    panels = [
        _panel(rows, x, "D_K", ("D_K_low", "D_K_high"), "smallest total key width D_K*", 320),
        _panel(rows, x, "h_star", ("h_low", "h_high"), "best number of heads h*", 200),
    ]
    if any(row["gain"] is not None or row["gain_low"] is not None for row in rows):
        panels.append(_panel(rows, x, "gain", ("gain_low", "gain_high"), "gain D_K(1) / D_K*", 200))
    heads = sorted({row["h_star"] for row in rows if row["h_star"]})
    return Figure(
        name="training-time",
        title="Thresholds against the step limit",
        caption=CAPTION,
        panels=tuple(panels),
        legend=tuple(Key(text=f"h* = {h}", h=h) for h in heads),
    )


def _panel(
    rows: Sequence[Row], x: Axis, of: str, ends: tuple[str, str], label: str, height: int
) -> Panel:
    low, high = ends
    reach = [row[name] for row in rows for name in (of, low, high) if row[name]]
    real = of == "gain"
    y = ratio_axis(label, [1.0, *reach], 1.2) if real else log2_axis(label, reach or [1, 2], 1.3)
    lines = [Line(points=((x.low, 1.0), (x.high, 1.0)), look="target")] if real else []
    for size in dict.fromkeys(row["size"] for row in rows):
        own = [row for row in rows if row["size"] == size and row[of] is not None]
        label_ = size if of == "D_K" else None
        points = tuple((float(row["max_steps"]), float(row[of])) for row in own)
        if points:
            lines.append(Line(points=points, look="series", label=label_, width_to_label=480))
    points_ = []
    for row in rows:
        bound = row[low]
        if row[of] is None and bound is None:
            continue
        points_.append(
            Point(
                x=row["max_steps"],
                y=row[of] if row[of] is not None else bound,
                key=f"{of.lower().replace('_', '-')}-{row['anchor']}",
                text=row["text"],
                cell=row["anchor"],
                h=row["h_star"],
                low=row[low] if row[of] is not None else None,
                high=row[high] if row[of] is not None else None,
                arrow=row[of] is None,
            )
        )
    return Panel(x=x, y=y, lines=tuple(lines), points=tuple(points_), height=height, links=True)


def _spread(steps: Sequence[int]) -> list[int]:
    """The limits to be labelled: at least half a doubling apart."""
    kept: list[int] = []
    for limit in steps:
        if not kept or limit >= 1.5 * kept[-1]:
            kept.append(limit)
    return kept


def _thousands(steps: int) -> str:
    return f"{steps // 1000:,}k" if steps % 1000 == 0 else f"{steps:,}"
