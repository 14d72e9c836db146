"""Which law: every fit and candidate, and each cell's part in them."""

from __future__ import annotations

from typing import Any

from analysis.laws import conclusions
from analysis.laws.candidates import Candidate
from analysis.laws.fits import fits_of
from analysis.laws.scaling_laws import distinct
from analysis.load import StudyResults
from analysis.page.section import Column, Section, Table, cell_column
from analysis.rows import named
from analysis.thresholds.comparable import comparison_of, laws_for
from analysis.wording import fixed, three_digits


def section(results: StudyResults) -> Section | None:
    """The candidates by AICc and leave-one-out error, the fits, the cells' parts."""
    if not results.study.record.finds_D_K:
        return None
    fits = fits_of(results)
    words = [
        conclusions.which_law(fits.candidates),
        conclusions.log_factor(fits.candidates),
        conclusions.lack_of_fit(fits.lack_of_fit),
        conclusions.leverage(fits),
        conclusions.left_out(fits),
    ]
    if fits.candidates_wide:
        words.insert(1, conclusions.which_law(fits.candidates_wide, "without d_model = 16, m > 64"))
    shown = []
    if any(one.status == "fitted" for one in fits.candidates):
        shown.append(_candidates(fits.candidates))
    shown.append(_fits(results))
    if len(fits.cells):
        shown.append(_cells(results))
    return Section(
        name="laws",
        title="Which law?",
        words=[line for line in words if line],
        shown=shown,
        files={"fitted_cells": fits.cells},
    )


def _candidates(candidates: list[Candidate]) -> Table:
    rows = [one.to_json() for one in candidates]

    def number(name: str, head: str, form: str) -> Column:
        return Column(head, lambda row: None if row[name] is None else format(row[name], form))

    return Table(
        name="table-candidates",
        caption=(
            "Candidates for D_K*, fitted on the log scale by the likelihood of each cell’s "
            "interval, from the failing to the passing D_K. Behind: in AICc. Error: of a cell "
            "predicted from the others. A law is kept if it is at most 6 behind and no mere "
            "extension of a better one."
        ),
        columns=[
            Column("law", lambda row: row["formula"], text=True),
            Column("unknowns, with 95 % intervals", _unknowns, text=True),
            number("gap", "behind", ".1f"),
            number("weight", "weight", ".2f"),
            Column("error", lambda row: _percent(row["loo_error"])),
            Column("scatter", lambda row: _percent(row["sigma"])),
            Column("kept", lambda row: "yes" if row["supported"] else "", text=True),
            Column("note", lambda row: row["reason"] or "", text=True),
        ],
        rows=rows,
        cell=None,
    )


def _unknowns(row: Any) -> str:
    return ", ".join(
        f"{name} = {three_digits(value)} "
        f"[{three_digits(row['low'][name])}, {three_digits(row['high'][name])}]"
        for name, value in row["parameters"].items()
    )


def _percent(log_error: float | None) -> str | None:
    return None if log_error is None else f"{100 * log_error:.0f} %"


def _fits(results: StudyResults) -> Table:
    rows = [
        {
            "response": law.response,
            "cells": law.cells,
            "n": law.n,
            "fit": conclusions.law_words(law),
            "estimator": law.estimator,
            "r2": law.r2,
            "r2_centred": law.r2_centred,
            "paper": conclusions.paper_law_words(laws_for(results.study).get(law.name)),
        }
        for law in sorted(distinct(fits_of(results).laws), key=lambda law: law.exponent is None)
    ]

    def share(name: str, head: str) -> Column:
        return Column(head, lambda row: None if row[name] is None else fixed(row[name], 3))

    columns = [
        Column("of", lambda row: row["response"], text=True),
        Column("fit", lambda row: row["fit"], text=True),
        Column("cells", lambda row: row["cells"], text=True),
        Column("n", lambda row: row["n"]),
        Column("by", lambda row: row["estimator"], text=True),
        share("r2", "R²"),
        share("r2_centred", "R², centred"),
    ]
    if laws_for(results.study):
        columns.append(Column("the paper", lambda row: row["paper"], text=True))
    caption = (
        "Every fit, 95 % intervals in brackets. R² of a line through the origin is the uncentred "
        "one, which the paper’s figures point to (laws.json has every number)"
    )
    if not comparison_of(results).empty:
        caption += "; the paper’s fits most likely hold more cells than its base grid"
    return Table(name="table-laws", caption=f"{caption}.", columns=columns, rows=rows, cell=None)


def _cells(results: StudyResults) -> Table:
    def number(name: str, head: str, form: str = ".3f") -> Column:
        return Column(head, lambda row: None if row[name] is None else format(row[name], form))

    return Table(
        name="table-parts",
        caption=(
            "Each cell’s part in the power law. Ratio: D_K* · d_model / (m′ log₂ m). Seeds: "
            "standard deviation of log D_K* when seeds are drawn again; resolution: what a step "
            "of d_k leaves open. Residual: of log D_K*. Leverage: on the log scale, and in the "
            "paper’s line through the origin. Without it: the exponent that the other cells give."
        ),
        columns=[
            cell_column(),
            Column("D_K*", lambda row: row["D_K"]),
            number("ratio", "ratio"),
            number("predicted", "power law", ".1f"),
            number("residual", "residual"),
            number("seed_sd", "seeds"),
            number("resolution", "resolution"),
            number("leverage", "leverage", ".2f"),
            number("leverage_paper", "the paper’s", ".2f"),
            number("exponent_without", "without it", ".2f"),
        ],
        rows=named(results, fits_of(results).cells),
    )
