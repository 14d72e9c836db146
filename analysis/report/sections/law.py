"""The law of D_K*: the main figure, with the ratio that a proportional law makes constant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from analysis.figures.law import draw_law
from analysis.laws import CELLS_OF_A_LAW, by_name
from analysis.report.section import Section
from analysis.report.tables import Tables
from analysis.wording import three_digits
from rgr_dist.paper import capacity_scale

Curve = Callable[[float], float]


def section(tables: Tables) -> Section:
    """The figure of D_K* and its ratio to the law's scale."""
    figure = draw_law(tables.cells, curves(tables), published(tables))
    return Section(name="law", title="The law of D_K*", figures=(figure,))


def curves(tables: Tables) -> list[tuple[str, str, Curve]]:
    """Our fits and the paper's: look, words, and D_K* as a function of m′ log₂ m / d_model."""
    drawn = []
    fitted = by_name([x for x in tables.laws if x.slope is not None and x.n >= CELLS_OF_A_LAW])
    for name, look in ("D_K", "ours"), ("D_K_wide", "also"), ("D_K_sparse", "also"):
        law = fitted.get(name)
        if law is None or law.slope is None or (name == "D_K_wide" and law.n == fitted["D_K"].n):
            continue
        of = "" if look == "ours" else f" of {law.cells}"
        words = f"least squares{of}: {three_digits(law.slope)} x"
        drawn.append((look, words, _times(law.slope)))
    theirs = tables.published.get("D_K") or tables.published.get("D_K_sparse")
    if theirs is not None:
        drawn.append(("paper", f"the paper: {theirs.slope:g} x", _times(theirs.slope)))
    return drawn


def published(tables: Tables) -> list[dict[str, Any]]:
    """The D_K* and h* that the paper's Table 1 implies for our cells."""
    rows = []
    for row in tables.named(tables.comparison):
        rows.append(
            {
                "anchor": row["anchor"],
                "scale": capacity_scale(row["m"], row["d_model"]),
                "compression": row["m"] / row["d_model"],
                "D_K": row["paper_D_K"],
                "h": row["paper_h"],
                "text": (
                    f"{row['full']}, the paper\nD_K* = {row['paper_D_K']} at h* = "
                    f"{row['paper_h']}, inferred from Table 1's d_k = {row['paper_d_k']}"
                ),
            }
        )
    return rows


def _times(slope: float) -> Curve:
    return lambda x: slope * x
