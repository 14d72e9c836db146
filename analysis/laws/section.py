"""The laws on the page: the main figure of D_K* or D_V*, and which law the cells support."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd

from rgr_dist.analysis.drawing.panel import Line
from rgr_dist.analysis.drawing.points import Curve
from rgr_dist.analysis.facts.tables import rows_of_facts
from rgr_dist.analysis.laws import conclusions
from rgr_dist.analysis.laws.candidates import Candidate, law_at
from rgr_dist.analysis.laws.families import laws_of_facts, pooled_laws
from rgr_dist.analysis.laws.figure import draw_families, draw_law, power_curve
from rgr_dist.analysis.laws.fits import Fits, fits_of
from rgr_dist.analysis.laws.published import equation, p_words
from rgr_dist.analysis.laws.scaling_laws import Law, by_name, distinct
from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.page.section import Column, Section, Table, cell_column
from rgr_dist.analysis.rows import named
from rgr_dist.analysis.thresholds.comparable import comparison_of, laws_for
from rgr_dist.analysis.thresholds.rows import drawn_cells_of
from rgr_dist.analysis.wording import MISSING, three_digits
from rgr_dist.paper import (
    IMPLIED,
    LAWS,
    PublishedLaw,
    capacity_scale,
    compression,
    is_narrow,
)


def has_sizes_to_compare(results: StudyResults) -> bool:
    """Whether two cells have a D_K* or a bound: a law has two parameters.

    The one head of construction ``one-head`` is as wide as d_model, so its width says nothing.
    """
    if results.study.record.algorithm == "one-head":
        return False
    rows = drawn_cells_of(results)
    return sum(row["D_K"] is not None or row["D_K_low"] is not None for row in rows) >= 2


def law(results: StudyResults) -> Section | None:
    """How the smallest width grows: the figure, the conclusions and, for D_V*, the fits."""
    total = results.study.search.sizes.total
    if total == "D_K":
        if not has_sizes_to_compare(results):
            return None
        fits = fits_of(results)
        law = conclusions.better_law(fits)
        figure = draw_law(
            drawn_cells_of(results),
            curves(results, law),
            published(results),
            by_size(law, fits.cells) if law and law.name != conclusions.PROPORTIONAL else None,
            is_beyond=is_beyond(results),
        )
        words = [_beside(fits, law) if law else conclusions.which_law(fits.candidates)]
        shown, files = [], {}
    else:
        rows, laws = rows_of_facts(results), laws_of_facts(results)
        if len({row["facts"] for row in rows}) < 2:
            return None
        figure = draw_families(rows, laws, results.study.search.sizes.shown_arm)
        words = conclusions.growths(pooled_laws(results))
        fitted = dataclasses.replace(_fits(results, laws), folded="Fits of D_V*")
        shown = [fitted] if laws else []
        files = {"facts-laws": pd.DataFrame(laws)}
    return Section(
        name="law",
        title="The law of D_K*" if total == "D_K" else figure.title,
        words=[line for line in words if line],
        figures=(figure,),
        shown=shown,
        files=files,
    )


def _beside(fits: Fits, law: Candidate) -> str:
    """The power law, and how far its AICc is behind or ahead of that of the law the data keep."""
    if not (than := _power_against(fits, law)):
        return ""
    fit = by_name(fits.laws)["D_K_power"]
    line = ": the dash-dotted line" if fit.is_trend else ""
    return f"{conclusions.growth_of(fit)}{line}. Its AICc is {than} than the law’s."


def _power_against(fits: Fits, law: Candidate) -> str:
    """How the AICc of the power law compares with a law's: ``9.5 worse``; empty if it has none."""
    power = next((one.gap for one in fits.candidates if one.name == conclusions.POWER), None)
    if power is None or law.gap is None:
        return ""
    gap = power - law.gap
    return f"{abs(gap):.1f} {'better' if gap < 0 else 'worse'}"


def by_size(law: Candidate, cells: pd.DataFrame) -> tuple[str, list[Line]]:
    """A law as a curve for each d_model and degree of the cells, over m.

    Returns:
        Words for the legend, and the curves: D_K* against m′ log₂ m / d_model, labelled where they
        differ in the degree alone (the cells of each d_model have labels of their own).
    """
    drawn = []
    each = [name for name in ("d_model", "degree") if cells[name].nunique() > 1]
    m = np.geomspace(cells["m"].min() / 2, cells["m"].max() * 2, 40)
    degrees = cells["n_edges"] / cells["m"]  # the mean degree for an edge list
    for d_model, degree in sorted(set(zip(cells["d_model"], degrees, strict=True))):
        sizes = pd.DataFrame({"m": m, "d_model": d_model, "n_edges": degree * m})
        D_K = np.exp(law_at(law, sizes))
        points = tuple(zip(degree * m * np.log2(m) / d_model, D_K, strict=True))
        label = f"degree = {degree:.3g}" if each == ["degree"] else None
        drawn.append(Line(points=points, look="ours", label=label, before=True))
    at = f", over m at each {' and '.join(each)}" if each else ""
    return f"{conclusions.with_numbers(law)}{at}", drawn


def curves(results: StudyResults, law: Candidate | None) -> list[tuple[str, str, Curve]]:
    """Our fits and the paper's: look, words, and D_K* as a function of m′ log₂ m / d_model.

    Args:
        law: the law that the data keep instead of the power law, which is then dash-dotted.
    """
    drawn: list[tuple[str, str, Curve]] = []
    fits = fits_of(results)
    if law is not None and law.name == conclusions.PROPORTIONAL:
        line = power_curve(law.parameters["c"], 1.0)
        drawn.append(("ours", conclusions.with_numbers(law), line))
    fitted = by_name(fits.laws)
    power = fitted.get("D_K_power")
    if power is not None and power.is_trend and power.factor and power.exponent:
        words = f"power law: {three_digits(power.factor)} x^{three_digits(power.exponent)}"
        than = _power_against(fits, law) if law is not None else ""
        words += f" (AICc {than})" if than else ""
        look = "ours" if law is None else "rest"
        drawn.append((look, words, power_curve(power.factor, power.exponent)))
    for name in ("D_K", "D_K_sparse"):
        fit = fitted.get(name)
        if fit is not None and fit.slope is not None:
            of = "" if name == "D_K" else f", {fit.cells}"
            words = f"least squares through 0, as in the paper{of}: {three_digits(fit.slope)} x"
            drawn.append(("also", words, power_curve(fit.slope, 1.0)))
    theirs = laws_for(results.study).get("D_K") or laws_for(results.study).get("D_K_sparse")
    if theirs is not None:
        drawn.append(("paper", f"the paper: {theirs.slope:g} x", power_curve(theirs.slope, 1.0)))
    return drawn


def published(results: StudyResults) -> list[dict[str, Any]]:
    """The D_K* and h* that the paper's Table 1 implies for our cells."""
    return [
        {
            "anchor": row["anchor"],
            "scale": capacity_scale(row["m"], row["d_model"]),
            "compression": compression(row["m"], row["d_model"]),
            "D_K": row["paper_D_K"],
            "h": row["paper_h"],
            "text": (
                f"{row['full']}, the paper\nD_K* = {row['paper_D_K']} at h* = "
                f"{row['paper_h']}, inferred from Table 1's d_k = {row['paper_d_k']}"
            ),
        }
        for row in named(results, comparison_of(results))
    ]


def is_beyond(results: StudyResults) -> bool:
    """Whether the paper's line of D_K* is fitted to cells of its base grid larger than any here."""
    law, here = laws_for(results.study).get("D_K"), published(results)
    fitted = [size for size in IMPLIED if law != LAWS["D_K_wide"] or not is_narrow(*size)]
    largest = max(capacity_scale(*size) for size in fitted)
    return law is not None and 0 < max((row["scale"] for row in here), default=0) < largest


def which_law(results: StudyResults) -> Section | None:
    """The candidates by AICc and leave-one-out error, the fits, each cell's part, lack of fit."""
    if results.study.record.algorithm == "one-head":
        return None
    fits = fits_of(results)
    words = [conclusions.which_law(fits.candidates)]
    if fits.candidates_wide:
        words.append(conclusions.which_law(fits.candidates_wide, "without d_model = 16, m > 64"))
    words.append(conclusions.left_out(fits))
    shown = []
    if any(one.status == "fitted" for one in fits.candidates):
        shown.append(_candidates(fits))
    shown.append(_fits(results, fits.laws, fits.rejected))
    if len(fits.cells):
        shown.append(_cells(results))
    if fits.lack_of_fit:
        shown.append(_lack_of_fit(results))
    return Section(
        name="laws",
        title="Which law?",
        words=[line for line in words if line],
        shown=shown,
        files={"fitted_cells": fits.cells},
    )


def _percent(name: str, head: str) -> Column:
    return Column(head, lambda row: None if row[name] is None else f"{100 * row[name]:.0f} %")


def _candidates(fits: Fits) -> Table:
    tested = {conclusions.PROPORTIONAL: "D_K", conclusions.POWER: "D_K_power"}
    rows = [dataclasses.asdict(one) for one in fits.candidates]
    for row in rows:
        if tested.get(row["name"]) in fits.rejected:
            row["reason"] = "rejected by its lack-of-fit test"
        elif row["supported"] and row["name"] not in tested:
            row["reason"] = "lack of fit not tested"
    return Table(
        name="table-candidates",
        caption=(
            "Candidates for D_K*, fitted on the log scale by the likelihood of each cell’s "
            "interval, from the failing to the passing D_K. Gap: how far the AICc lies above the "
            "best. Error: typical error when the other cells predict a cell. Scatter: of D_K* "
            "about the law, with D_K* anywhere in its interval. A law is supported if its gap is "
            "at most 6 and smaller by more than 2 than the gap of every law that it extends."
        ),
        columns=[
            Column("law", "formula", text=True),
            Column("supported", lambda row: "yes" if row["supported"] else "", text=True),
            Column("gap", "gap", form=".1f"),
            Column("unknowns, with 95 % intervals", conclusions.unknowns, text=True),
            Column("weight", "weight", form=".2f"),
            _percent("loo_error", "error"),
            _percent("sigma", "scatter"),
            Column("note", lambda row: row["reason"] or "", text=True),
        ],
        rows=rows,
        cell=None,
    )


def _fits(results: StudyResults, laws: Sequence[Law], rejected: Collection[str] = ()) -> Table:
    theirs = laws_for(results.study)
    rows = [
        dataclasses.asdict(law)
        | {"fit": law_words(law, rejected), "paper": paper_law_words(theirs.get(law.name))}
        for law in sorted(distinct(laws), key=lambda law: law.exponent is None)
    ]
    columns = [
        Column("of", "response", text=True),
        Column("n", "n"),
        Column("fit", "fit", text=True),
        Column("cells", "cells", text=True),
        Column("censored", "n_censored"),
        Column("by", "estimator", text=True),
        _percent("scatter", "scatter"),
    ]
    caption = "Every fit, 95 % intervals in brackets."
    if any(row["r2"] is not None for row in rows):
        columns.append(Column("R²", "r2", form="z.3f"))
        columns.append(Column("R², centred", "r2_centred", form="z.3f"))
        caption += (
            " R² of a line through the origin is the uncentred one, which the paper’s figures "
            "point to (laws.json has every number)."
        )
    if theirs:
        columns.append(Column("the paper", "paper", text=True))
    if not comparison_of(results).empty:
        caption += " The paper’s fits most likely hold more cells than its base grid."
    return Table(name="table-laws", caption=caption, columns=columns, rows=rows, cell=None)


def law_words(law: Law, rejected: Collection[str] = ()) -> str:
    """One fit with its intervals, or why there is none.

    Args:
        rejected: names of laws that their lack-of-fit test rejects.
    """

    def known(name: str) -> str:
        ends = (three_digits(getattr(law, f"{name}_{end}")) for end in ("low", "high"))
        return f"{three_digits(getattr(law, name))} [{', '.join(ends)}]"

    x = conclusions.predictor(law)
    if law.exponent is not None:
        fit = f"{law.response} ≈ {three_digits(law.factor)} · ({x}) ^ {known('exponent')}"
    elif law.slope is not None:
        more = "" if law.through_origin else f", intercept {known('intercept')}"
        fit = f"{law.response} ≈ {known('slope')} · ({x}){more}"
    else:
        return f"no fit: {law.reason}"
    return fit + ", rejected by its lack-of-fit test" * (law.name in rejected)


def paper_law_words(law: PublishedLaw | None) -> str:
    """The paper's counterpart of one of our laws."""
    if law is None:
        return MISSING
    r2 = "" if law.r2 is None else f", R² {law.r2:g}"
    return f"{equation(law)}{r2} ({law.source})"


def _cells(results: StudyResults) -> Table:
    return Table(
        name="table-parts",
        caption=(
            "What each cell contributes to the power law. Ratio: D_K* · d_model / (m′ log₂ m). "
            "Seeds: standard deviation of log D_K* when seeds are drawn again; resolution: what a "
            "step of d_k leaves open. Residual: of the middle of the step from the failing to the "
            "passing width, in log D_K. Leverage: on the log scale, and in the paper’s line "
            "through the origin. Without it: the exponent from the other cells."
        ),
        columns=[
            cell_column(),
            Column("D_K*", "D_K"),
            Column("ratio", "ratio", form=".3f"),
            Column("power law", "predicted", form=".1f"),
            Column("residual", "residual", form=".3f"),
            Column("seeds", "seed_sd", form=".3f"),
            Column("resolution", "resolution", form=".3f"),
            Column("leverage", "leverage", form=".2f"),
            Column("the paper’s", "leverage_paper", form=".2f"),
            Column("without it", "exponent_without", form=".2f"),
        ],
        rows=named(results, fits_of(results).cells),
    )


def _lack_of_fit(results: StudyResults) -> Table:
    return Table(
        name="table-lack-of-fit",
        caption=(
            "Do seeds and the resolution of d_k explain how far D_K* scatters about a law? χ² "
            "sums the cells’ squared distances from the law, each divided by the variance that "
            "seeds and resolution explain. Scatter: of D_K* about the law with the least "
            "χ², whose numbers differ from those of the fits above."
        ),
        columns=[
            Column("D_K* goes as", lambda row: conclusions.FORMS[row["law"]], text=True),
            Column("p", lambda row: p_words(row["p_value"])),
            _percent("scatter", "scatter"),
            _percent("noise", "seeds and resolution"),
            Column("χ²", "chi2", form=".0f"),
            Column("degrees of freedom", "degrees"),
        ],
        rows=[dataclasses.asdict(test) for test in fits_of(results).lack_of_fit],
        cell=None,
    )
