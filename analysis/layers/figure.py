"""What each layer caches to hold a graph, compared with the study's first layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rgr_dist.analysis.drawing.panel import Figure, Key, Line, Panel, Point
from rgr_dist.analysis.drawing.points import head_keys, interval_point
from rgr_dist.analysis.drawing.scales import log2_axis
from rgr_dist.analysis.page.section import Row
from rgr_dist.analysis.records import bits_of_graph
from rgr_dist.analysis.wording import in_words, span, with_range
from rgr_dist.paper import capacity_scale

CAPTION = (
    "The fewest numbers cached for each token with which a layer recovers the graph, the least "
    "over its head counts and learning rates, within {steps} training steps. Bars: every "
    "threshold may lie anywhere in its interval. The colour is the head count that has it. An "
    "arrow: no threshold is known, and the mark is the least that is not excluded. Grey: {first}. "
    "Dotted: the fewest that counting allows if each parameter held one bit and each cached number "
    "came with as many parameters as at the threshold; drawn only where the same threshold has "
    "both the fewest cached numbers and the fewest parameters."
)


def draw_costs(rows: Sequence[Row], first: str) -> Figure:
    """A panel for each layer: numbers cached for each token against the size of the graph.

    Args:
        rows: of ``costs.costs_of`` with ``text``, each size within one step limit.
        first: the layer that the others are compared with.
    """
    seen = [row for row in rows if row["cached"] is not None or row["cached_low"] is not None]
    reach = [row[f"cached{end}"] for row in seen for end in ("", "_low", "_high")]
    x = log2_axis("m′ log₂ m / d_model", [_scale(row) for row in seen], pad=1.3)
    reach += [bound for _, bound in _bounds(seen)]
    y = log2_axis("cached numbers", [cost for cost in reach if cost], pad=1.3)
    settings = [
        [row for row in seen if row.get("setting") == setting]
        for setting in dict.fromkeys(row.get("setting") for row in seen)
    ]
    beside = [Line(points=_line(rows, first), look="rest") for rows in settings]
    panels = []
    for model in dict.fromkeys(row["model"] for row in seen):
        own = [row for row in seen if row["model"] == model]
        lines = [
            Line(points=_bounds([row for row in rows if row["model"] == model]), look="guide")
            for rows in settings
        ]
        lines += beside if model != first else []
        lines += [Line(points=_line(rows, model), look="series") for rows in settings]
        panels.append(
            Panel(
                title=(model,),
                x=x,
                y=y,
                lines=tuple(lines),
                points=tuple(map(_point, own)),
                height=150,
            )
        )
    heads = [row["cached_h"] for row in seen if row["cached_h"]]
    legend = (*head_keys(heads), Key(text=first, line="rest"), Key(text="counting", line="guide"))
    return Figure(
        name="layers",
        title="Numbers cached for each token to hold a graph",
        caption=CAPTION.format(first=first, steps=span([row["max_steps"] for row in seen])),
        panels=tuple(panels),
        legend=legend,
        joins="sizes of one layer",
        columns=3,
    )


def _scale(row: Row) -> float:
    return capacity_scale(row["m"], row["d_model"], row["n_edges"])


def _bounds(own: Sequence[Row]) -> tuple[tuple[float, float], ...]:
    """For each size, the cached numbers at which a layer would have one parameter per bit."""
    arm = ("h", "d_k")
    known = [
        row
        for row in own
        if row["cached"] is not None
        and all(row[f"cached_{of}"] == row[f"parameters_{of}"] for of in arm)
    ]
    return tuple(
        sorted(
            (_scale(row), float(row["cached"]) * bits_of_graph(row) / float(row["parameters"]))
            for row in known
        )
    )


def _line(rows: Sequence[Row], model: str) -> tuple[tuple[float, float], ...]:
    """The thresholds of a layer, by size."""
    found = [row for row in rows if row["model"] == model and row["cached"] is not None]
    return tuple(sorted((_scale(row), float(row["cached"])) for row in found))


def _point(row: Row) -> Point:
    ends = ("cached_low", "cached_high")
    return interval_point(row, _scale(row), "cached", *ends, h=row["cached_h"])


def size_of(row: Mapping[str, Any]) -> str:
    """A row's size in words: ``(64, 16)``, or ``(64, 16, length 64)``."""
    parts = row["m"], row["d_model"], in_words(row.get("setting") or "")
    return f"({', '.join(str(part) for part in parts if part)})"


def tip(row: Mapping[str, Any]) -> str:
    """The words of a point: its size, its layer, and where its cheapest thresholds lie."""
    lines = [
        f"{size_of(row)}, {row['model']}",
        f"within {row['max_steps']:,} steps: {row['status']}",
    ]
    for paid in ("cached", "parameters"):
        if row[paid] is not None:
            lines.append(
                f"{ranged(row, paid)} {paid} at h = {row[f'{paid}_h']}, "
                f"d_k = {row[f'{paid}_d_k']}, learning rate {row[f'{paid}_learning_rate']:g}"
            )
    return "\n".join(lines)


def ranged(row: Mapping[str, Any], paid: str) -> str:
    """What a threshold costs, ``cached`` numbers or ``parameters``, with its range."""
    return with_range(row[paid], row[f"{paid}_low"], row[f"{paid}_high"])
