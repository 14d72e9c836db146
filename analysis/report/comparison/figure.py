"""Two studies side by side: D_K* of one against that of the other, and their ratio."""

from __future__ import annotations

from collections.abc import Sequence

from rgr_dist.analysis.drawing.panel import Figure, Line, Panel, Point
from rgr_dist.analysis.drawing.points import head_keys, interval_point
from rgr_dist.analysis.drawing.scales import log2_axis, ratio_axis
from rgr_dist.analysis.page.section import Row

CAPTION = (
    "First: D_K* of {second} against D_K* of {first}; on the line they are equal. Then their ratio "
    "against m′ log₂ m / d_model. Bars run from the optimistic to the conservative D_K*, sideways "
    "for {first} and upright for {second}; those of the ratio, over all ratios that both intervals "
    "allow. Colour and shape are h* of {second}."
)


def draw_side_by_side(pairs: Sequence[Row], first: str, second: str) -> Figure:
    """A point for each cell that has a D_K* in both studies.

    Args:
        pairs: rows of ``comparison.widths.pairs_of``: both D_K*, their ratio and its ends.
        first, second: what the studies are called.
    """
    both = [row for row in pairs if row["ratio"] is not None]
    reach = [row[f"{of}_{side}"] for row in both for of in ("D_K", "low", "high") for side in "ab"]
    reach = [value for value in reach if value]
    x = log2_axis(f"D_K* of {first}", reach or [1, 2], pad=1.3)
    y = log2_axis(f"D_K* of {second}", reach or [1, 2], pad=1.3)
    ends = [row[end] for row in both for end in ("ratio", "ratio_low", "ratio_high") if row[end]]
    scale = log2_axis("m′ log₂ m / d_model", [row["scale"] for row in both] or [1, 2], pad=1.3)
    beside = ratio_axis("ratio of D_K*", [1.0, *ends], pad=1.2)
    level = Line(points=((x.low, x.low), (x.high, x.high)), look="target")
    return Figure(
        name="side-by-side",
        title=f"D_K* of {second} against {first}",
        caption=CAPTION.format(first=first, second=second),
        panels=(
            Panel(
                x=x, y=y, height=300, links=True,
                lines=(level, *_across(both)),
                points=_points(both, "D_K_a", "D_K_b", "low_b", "high_b"),
            ),
            Panel(
                x=scale, y=beside, height=300, links=True,
                lines=(Line(points=((scale.low, 1), (scale.high, 1)), look="target"),),
                points=_points(both, "scale", "ratio", "ratio_low", "ratio_high"),
            ),
        ),
        legend=head_keys((row["h_b"] for row in both), f"h* of {second}"),
        columns=2,
    )  # fmt: skip


def _across(rows: Sequence[Row]) -> list[Line]:
    """The intervals of the first study, where both of their ends are known."""
    return [
        Line(
            points=((row["low_a"], row["D_K_b"]), (row["high_a"], row["D_K_b"])),
            look="head",
            h=row["h_b"],
        )
        for row in rows
        if row["low_a"] and row["high_a"] and row["low_a"] < row["high_a"]
    ]


def _points(rows: Sequence[Row], x: str, *of: str) -> tuple[Point, ...]:
    return tuple(interval_point(row, row[x], *of, h=row["h_b"]) for row in rows)
