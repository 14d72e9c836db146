"""The law of D_K*: the main figure, with the ratio that a proportional law makes constant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from analysis import conclusions
from analysis.figures.law import draw_law
from analysis.laws import by_name
from analysis.report.section import Section
from analysis.report.tables import Tables
from analysis.wording import three_digits
from rgr_dist.paper import capacity_scale

Curve = Callable[[float], float]


def section(tables: Tables) -> Section:
    """The figure of D_K* and its ratio to the law's scale."""
    figure = draw_law(tables.drawn_cells, curves(tables), published(tables))
    said = (conclusions.ratios(tables.fits), conclusions.which_law(tables.fits.candidates))
    words = [line for line in said if line] if tables.fits.candidates else []
    return Section(name="law", title="The law of D_K*", words=words, figures=(figure,))


def curves(tables: Tables) -> list[tuple[str, str, Curve]]:
    """Our fits and the paper's: look, words, and D_K* as a function of m′ log₂ m / d_model."""
    drawn: list[tuple[str, str, Curve]] = []
    fitted = by_name(tables.laws)
    power = fitted.get("D_K_power")
    if power is not None and power.factor is not None and power.exponent is not None:
        words = f"power law: {three_digits(power.factor)} x^{three_digits(power.exponent)}"
        drawn.append(("ours", words, _power(power.factor, power.exponent)))
    for name in ("D_K", "D_K_sparse"):
        law = fitted.get(name)
        if law is not None and law.slope is not None:
            of = "" if name == "D_K" else f", {law.cells}"
            words = f"our cells by the paper’s estimator{of}: {three_digits(law.slope)} x"
            drawn.append(("also", words, _power(law.slope, 1.0)))
    theirs = tables.published.get("D_K") or tables.published.get("D_K_sparse")
    if theirs is not None:
        drawn.append(("paper", f"the paper: {theirs.slope:g} x", _power(theirs.slope, 1.0)))
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


def _power(factor: float, exponent: float) -> Curve:
    return lambda x: factor * x**exponent
