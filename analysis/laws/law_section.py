"""The law of D_K*: the main figure, with the ratio that a proportional law makes constant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from analysis.laws import conclusions
from analysis.laws.figure import draw_law
from analysis.laws.fits import fits_of
from analysis.laws.scaling_laws import by_name
from analysis.load import StudyResults
from analysis.page.section import Section
from analysis.rows import named
from analysis.thresholds.comparable import comparison_of, laws_for
from analysis.thresholds.rows import drawn_cells_of
from analysis.wording import three_digits
from rgr_dist.paper import capacity_scale

Curve = Callable[[float], float]


def section(results: StudyResults) -> Section | None:
    """The figure of D_K* and its ratio to the law's scale."""
    if not results.study.record.finds_D_K:
        return None
    figure = draw_law(drawn_cells_of(results), curves(results), published(results))
    said = (
        conclusions.ratios(fits_of(results)),
        conclusions.which_law(fits_of(results).candidates),
    )
    words = [line for line in said if line] if fits_of(results).candidates else []
    return Section(name="law", title="The law of D_K*", words=words, figures=(figure,))


def curves(results: StudyResults) -> list[tuple[str, str, Curve]]:
    """Our fits and the paper's: look, words, and D_K* as a function of m′ log₂ m / d_model."""
    drawn: list[tuple[str, str, Curve]] = []
    fitted = by_name(fits_of(results).laws)
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
    theirs = laws_for(results.study).get("D_K") or laws_for(results.study).get("D_K_sparse")
    if theirs is not None:
        drawn.append(("paper", f"the paper: {theirs.slope:g} x", _power(theirs.slope, 1.0)))
    return drawn


def published(results: StudyResults) -> list[dict[str, Any]]:
    """The D_K* and h* that the paper's Table 1 implies for our cells."""
    rows = []
    for row in named(results, comparison_of(results)):
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
