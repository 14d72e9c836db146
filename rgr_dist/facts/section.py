"""What a report says of a study of facts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from rgr_dist.analysis.figures import style
from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.page import Section, Table
from rgr_dist.analysis.wording import plural, span
from rgr_dist.facts.tables import taus, widths

AXES = {
    "facts": "facts",
    "rank_high": "bound on the rank of the database",
    "d_qk": "$d_{\\mathrm{qk}}$",
}
CAPTION = (
    "The smallest D_V = h · d_vo that holds a database, with its interval over seeds. Lines join "
    "databases of one family, or the widths d_qk of one database. The rank is bounded by Prop. 2.1 "
    "of arXiv:2502.05076."
)


TERMS = (
    "Facts are triples (key, query, value). In this study d_k is the width d_vo of a head’s "
    "values, so D_K is D_V = h · d_vo; d_qk is the width of its keys and queries; m is the number "
    "of facts."
)
RANKS = (
    "Ranks of the database are bounds, means over seeds: from the rank of its unfoldings to that "
    "of Prop. 2.1. The bound on the layer is the largest rank that its logits can have (Prop. 3.5)."
)
TAUS = (
    "Means over the trained layers: the share of facts whose value has a probability of at least "
    "τ, the rank of softmax≥τ(L) from below, and how far it is from that of the logits L. Above "
    "the bound: layers whose rank exceeds what their logits can have."
)


def finding(results: StudyResults) -> str:
    """The finding, in a sentence."""
    rows = widths(results)
    found = rows[rows["D_V"].notna()]
    if found.empty:
        return "No threshold was found."
    of = f"{len(found)} of {plural(len(rows), 'cell')}"
    facts = span(found["facts"].tolist())
    return f"D_V* is {span(found['D_V'].tolist())} in {of} of {facts} facts."


def section(results: StudyResults) -> Section:
    """D_V* against what the study varies: d_qk, or the number of facts and their rank."""
    rows, measured = widths(results), taus(results)
    varied = ["d_qk"] if rows["d_qk"].nunique() > 1 else ["facts", "rank_high"]

    def draw(ax: Any = None, width: float = style.WIDE) -> list[Axes]:
        return draw_widths(rows, varied, ax=ax, width=width)

    figure = style.Figure(name="facts", caption=CAPTION, draw=draw, panels=len(varied))
    listed = rows.drop(columns=["cell_id", "status", "keys", "queries", "values", "h", "D_V_low"])
    shown = [Table(name="table-facts", caption=RANKS, rows=listed.drop(columns="D_V_high"))]
    if len(measured):
        shown.append(Table(name="table-taus", caption=TAUS, rows=measured))
    return Section(
        name="facts",
        title="Facts that a layer holds",
        words=[TERMS],
        figures=[figure] if rows["D_V"].notna().any() else [],
        tables=shown,
    )


def tables(results: StudyResults) -> dict[str, pd.DataFrame]:
    """The tables of a report, by name: ``facts`` and ``taus``."""
    return {"facts": widths(results).drop(columns="cell_id"), "taus": taus(results)}


def draw_widths(
    rows: pd.DataFrame,
    varied: Sequence[str],
    *,
    ax: Axes | Sequence[Axes] | None = None,
    width: float = style.WIDE,
) -> list[Axes]:
    """D_V* against each of some columns, a panel for each.

    Args:
        rows: of ``tables.widths``.
        varied: of ``AXES``.
    """
    axes = style.axes_of(ax, len(varied), width, 2.6)
    alike = ["database", *(["facts"] if "d_qk" in varied else [])]
    groups = list(rows.groupby(alike, sort=False))
    for each, column in zip(axes, varied, strict=True):
        style.log_axis(each, "x", rows[column].dropna(), "")
        style.log_axis(each, "y", [*rows["D_V"].dropna(), *rows["D_V_high"].dropna()], "")
        each.set_xlabel(AXES[column])
        for at, (_, own) in enumerate(groups):
            look = _look(at)
            found = own[own["D_V"].notna()].sort_values(column)
            each.plot(found[column], found["D_V"], color=look["color"], linewidth=0.8)
            for row in found.to_dict("records"):
                tip = f"{row['cell']}, d_qk = {row['d_qk']}: D_V* = {row['D_V']}"
                style.bar(each, row[column], row["D_V_low"], row["D_V_high"])
                face = style.LIGHT["page"] if row["status"] == "open" else look["color"]
                style.mark(each, row[column], row["D_V"], tip, **look, markerfacecolor=face)
    axes[0].set_ylabel("$D_{\\mathrm{V}}$*")
    names = [", ".join(map(str, key)) + " facts" * (len(key) > 1) for key, _ in groups]
    marks = [Line2D([], [], linestyle="none", **_look(at)) for at in range(len(groups))]
    style.legend(axes[0], (), list(zip(marks, names, strict=True)))
    return axes


def _look(at: int) -> dict[str, Any]:
    colours = [light for light, _ in style.HEADS.values()]
    return {"color": colours[at % len(colours)], "marker": style.SHAPES[at % len(style.SHAPES)]}
