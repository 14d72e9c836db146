"""Trained, constructed and trivial widths with the lines of the counting bound, by family."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rgr_dist.analysis.drawing.panel import Figure, Key, Line, Panel, Point
from rgr_dist.analysis.drawing.points import head_keys
from rgr_dist.analysis.drawing.scales import log2_axis, ratio_axis
from rgr_dist.analysis.page.section import Row
from rgr_dist.analysis.wording import with_range

CAPTION = (
    "Total key width D_K by the number of items m, a panel for each family of cells. Filled marks: "
    "the trained threshold D_K*, with its interval over seeds. Hollow marks: the smallest width at "
    "which alternating projections are known to be exact on all pairs of every draw. Colour and "
    "shape are the number of heads. Thin lines: the counting bound, each for a supposed number of "
    "bits per parameter: the more a parameter holds, the less width is needed."
)

BITS = {2.0: "2 bits", 1.0: "1 bit", 0.5: "½ bit", 0.25: "¼ bit"}
"""Bits per parameter of each line of the bound, around what trained layers hold, and its label."""


def draw_three_curves(families: Sequence[tuple[str, Sequence[Row]]], target: float) -> Figure:
    """A panel for each family of cells, on logarithmic axes that all panels share.

    Args:
        families: title and rows of ``beside_training.curves_table`` with ``anchor`` and
            ``full``, by growing m.
        target: mean score that a trained threshold reaches.
    """
    every = [row for _, rows in families for row in rows]
    columns = [*(f"bound_{b:g}" for b in BITS), "trained", "trained_high", "constructed", "trivial"]
    widths = [row[name] for row in every for name in columns if row[name]]
    x = log2_axis("m", [row["m"] for row in every], pad=1.25, above=2.1)
    y = ratio_axis("D_K", widths, pad=1.25)
    panels = tuple(
        Panel(
            title=(title,),
            x=x,
            y=y,
            lines=tuple(_lines(rows)),
            points=tuple(_points(rows)),
            height=230,
            links=True,
        )
        for title, rows in families
    )
    made = any(row["constructed"] for row in every)
    heads = {row["h_star"] for row in every} | {row["constructed_h"] for row in every}
    legend = [Key(text=f"trained, mean F1 of {target:g} or more", line="ours")]
    if made:
        legend.append(Key(text="constructed, exact in every draw (hollow)", line="also"))
    if any(row["trivial"] for row in every):
        legend.append(Key(text="trivial: a head for each edge", line="paper"))
    legend += [
        Key(text="counting bound, by bits per parameter", line="series"),
        *head_keys(h for h in heads if h),
    ]
    return Figure(
        name="three-curves",
        title="Bound, trained, constructed and trivial widths",
        caption=CAPTION,
        panels=panels,
        legend=tuple(legend),
        hollow="",
        columns=3,
    )


def _lines(rows: Sequence[Row]) -> list[Line]:
    drawn = [
        Line(points=_places(rows, f"bound_{b:g}"), look="series", label=words, level=True)
        for b, words in BITS.items()
    ]
    for name, look in ("trivial", "paper"), ("constructed", "also"), ("trained", "ours"):
        drawn.append(Line(points=_places(rows, name), look=look))
    return [line for line in drawn if len(line.points) > 1]


def _places(rows: Sequence[Row], name: str) -> tuple[tuple[float, float], ...]:
    return tuple((float(row["m"]), float(row[name])) for row in rows if row[name])


def _points(rows: Sequence[Row]) -> list[Point]:
    points = []
    for row in rows:
        about: dict[str, Any] = {"x": row["m"], "cell": row["anchor"]}
        if row["constructed"]:
            text = (
                f"{row['full']}, constructed\nD_K = {row['constructed']} at h = "
                f"{row['constructed_h']}, exact in {row['constructed_draws']} draws"
            )
            h = row["constructed_h"]
            points.append(Point(**about, y=row["constructed"], h=h, text=text, hollow=True))
        if row["trained"]:
            ends = {"low": row["trained_low"], "high": row["trained_high"]}
            so_far = ", so far" if row["status"] == "open" else ""
            text = (
                f"{row['full']}, trained\nD_K* = {with_range(row['trained'], *ends.values())} "
                f"at h* = {row['h_star']}{so_far}\n"
                f"{row['bits_per_parameter']:.2f} bits of the graph per parameter"
            )
            points.append(Point(**about, y=row["trained"], h=row["h_star"], text=text, **ends))
    return points
