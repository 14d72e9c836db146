"""Figures of a study of facts: ranks, tau."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rgr_dist.analysis.drawing.panel import Figure, Key, Line, Panel, Point
from rgr_dist.analysis.drawing.points import guide_key, interval_point
from rgr_dist.analysis.drawing.scales import Axis, Tick, log2_axis, score_axis, share_axis
from rgr_dist.analysis.page.section import Row

MOST_NAMES = 8
"""With more marks than this, their names would hide each other: only their tips have them."""
RANKS = (
    "The bound on the rank of the logits that a layer of this D_V can have (Prop. 3.5), at the "
    "smallest D_V that holds the database{of_each}, against the bound on the database’s own "
    "rank (Prop. 2.1). Dotted: equality. Below it, a layer holds a database of higher rank than "
    "its logits can have, provided that the database’s bound is exact."
)
SPLITS = (
    "The mean over seeds of the share of facts held, with its 95 % t-interval, at every way to "
    "split the same d_qk + d_vo. Dashed: the target. Dotted: D_V*, the narrowest split whose mean "
    "reaches it. The axis widens towards 1."
)
TAU = (
    "Means over the trained layers of the search, each measured at every τ: the share of asked "
    "triples whose value has a probability of at least τ, and how far the rank of the 0/1 tensor "
    "softmax≥τ(L) is from that of the logits L, whichever way. A rank is the largest of an "
    "unfolding, a lower bound that cannot exceed the tensor's longest side."
)


def draw_ranks(rows: Sequence[Row], arm: str, is_of_each_arm: bool = True) -> Figure:
    """The rank that a layer's logits can have at its threshold, against the database's bound.

    Args:
        rows: of ``rgr_dist.analysis.facts.tables.rows_of_facts``, with a threshold.
        is_of_each_arm: whether the rows are the thresholds of each arm, not of each cell.
    """
    values = [float(row[name]) for row in rows for name in ("rank_high", "layer_rank_bound")]
    x = log2_axis("bound on the rank of the database", values or [1, 1024], pad=1.3)
    y = log2_axis("bound on the rank of the logits", values or [1, 1024], pad=1.3)
    ends = (max(x.low, y.low), min(x.high, y.high))
    alike: dict[tuple[str, int], list[Row]] = {}  # settings of one D_V have one mark
    for row in rows:
        alike.setdefault((row["anchor"], row["D_V"]), []).append(row)
    lines = [Line(points=((ends[0], ends[0]), (ends[1], ends[1])), look="guide")]
    points = []
    for rows_of_mark in alike.values():
        row, settings = rows_of_mark[0], ", ".join(str(one[arm]) for one in rows_of_mark)
        told = f"{row['full']}, h = {row['h']}, {arm} = {settings}\nD_V {row['D_V']}"
        x_, y_ = row["rank_high"], row["layer_rank_bound"]
        points.append(Point(x=x_, y=y_, text=told, cell=row["anchor"]))
        if not is_of_each_arm and len(alike) <= MOST_NAMES:
            lines.append(
                Line(
                    points=((x_, y_),),
                    look="series",
                    label=row["short"],
                    width_to_label=480,
                    before=x.at(x_) > 0.5,
                )
            )
    panel = Panel(
        x=x,
        y=y,
        height=320,
        lines=tuple(lines),
        points=tuple(points),
    )
    equality = Key(text="equality", line="guide")
    return Figure(
        name="ranks",
        title="Rank at the threshold against the rank of the database",
        caption=RANKS.format(of_each=f" at each {arm}" * is_of_each_arm),
        panels=(panel,),
        legend=(equality,),
    )


def draw_splits(rows: Sequence[Row], cells: Sequence[Row], total: int, target: float) -> Figure:
    """The mean score at every split of a total, a panel for each cell.

    Args:
        rows: of ``rgr_dist.analysis.facts.tables.by_split``, with the names of their cells.
        cells: rows of ``thresholds.rows.cells_of``.
    """
    narrowest = {row["anchor"]: (row["D_V"], row["d_vo"]) for row in cells if row["D_V"]}
    ticks = tuple(Tick(d_vo, str(d_vo)) for d_vo in range(1, total, max(1, round(total / 6))))
    x = Axis(f"d_vo, of d_qk + d_vo = {total}", 0, total, ticks, "linear")
    level = Line(points=((0, target), (total, target)), look="target")
    points: dict[tuple[str, str], list[Point]] = {}
    for row in rows:
        at = f"d_qk = {row['d_qk']}, d_vo = {row['d_vo']}"
        told = f"{row['full']}, {at}\nmean {row['mean_score']:.4f} over {row['n_seeds']} seeds"
        named = {**row, "text": told}
        point = interval_point(named, row["d_vo"], "mean_score", "low", "high")
        points.setdefault((row["anchor"], row["short"]), []).append(point)
    panels = []
    for (cell, name), own in points.items():
        y = score_axis("mean score")
        lines = [level, Line(points=tuple((point.x, point.y) for point in own), look="series")]
        title = [name]
        if cell in narrowest:
            D_V, d_vo = narrowest[cell]
            lines.append(Line(points=((d_vo, y.low), (d_vo, y.high)), look="guide"))
            title.append(f"D_V* = {D_V}")
        panels.append(
            Panel(title=tuple(title), x=x, y=y, lines=tuple(lines), points=tuple(own), cell=cell)
        )
    return Figure(
        name="totals",
        title="Score against the split of a fixed total",
        caption=SPLITS,
        panels=tuple(panels),
        legend=guide_key(cells, "D_V"),
        joins="neighbouring splits",
        columns=2,
    )


def draw_taus(rows: Sequence[Row]) -> Figure:
    """Accuracy, and the mean distance of the rank from that of the logits, against tau.

    Args:
        rows: of ``rgr_dist.analysis.facts.tables.by_tau``.
    """
    ticks = tuple(Tick(row["tau"], f"{row['tau']:g}".lstrip("0")) for row in rows)
    x = Axis("τ", 0.49, 1.0, ticks, "linear")
    top = math.ceil(max(row["gap"] for row in rows)) or 1
    marks = tuple(Tick(top * i / 4, f"{top * i / 4:g}") for i in range(5))
    y = Axis("distance from the rank of L", 0, top, marks, "linear")
    panels = []
    for key, axis, words in (
        ("accuracy", share_axis("accuracy at τ"), "accuracy"),
        ("gap", y, "distance"),
    ):
        at = tuple((row["tau"], row[key]) for row in rows)
        points = tuple(Point(x=a, y=b, text=f"τ = {a:g}\n{words} {b:.3f}") for a, b in at)
        lines = (Line(points=at, look="series"),)
        panels.append(Panel(x=x, y=axis, height=240, points=points, lines=lines))
    return Figure(
        name="taus",
        title="Accuracy and distance of ranks against τ",
        caption=TAU,
        panels=tuple(panels),
        joins="neighbouring τ",
        columns=2,
    )
