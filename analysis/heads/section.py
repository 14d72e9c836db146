"""Heads: h* against compression, D_K(h) of each cell, and the heads near the best one."""

from __future__ import annotations

from analysis.heads.by_heads import by_heads_of, heads_of
from analysis.heads.figures import draw_best_heads, draw_thresholds_by_head
from analysis.laws.figure import Curve
from analysis.laws.fits import fits_of
from analysis.laws.scaling_laws import Law, by_name
from analysis.laws.section import published
from analysis.load import StudyResults
from analysis.page.section import Column, Section, Table, bits_column, cell_column
from analysis.records import with_bits
from analysis.rows import named
from analysis.thresholds.best import pool_of
from analysis.thresholds.comparable import laws_for
from analysis.thresholds.rows import drawn_cells_of, thresholds_of
from analysis.wording import fixed, three_digits
from rgr_dist.paper import PublishedLaw


def section(results: StudyResults) -> Section:
    """What the number of heads does to the smallest width."""
    figures = [draw_best_heads(drawn_cells_of(results), _curves(results), published(results))]
    if any(row["D_K"] is not None or row["at_least"] is not None for row in heads_of(results)):
        figures.append(draw_thresholds_by_head(drawn_cells_of(results), heads_of(results)))
    shown = [_thresholds(results)] if heads_of(results) else []
    if len(pool_of(results)):
        shown.append(_pool(results))
    return Section(
        name="heads",
        title="Heads",
        figures=figures,
        shown=shown,
        files={
            "thresholds": with_bits(thresholds_of(results)),
            "heads": by_heads_of(results),
            "head_pool": pool_of(results),
        },
    )


def _curves(results: StudyResults) -> list[tuple[str, str, Curve]]:
    drawn: list[tuple[str, str, Curve]] = []
    laws = by_name(fits_of(results).laws)
    power, line = laws.get("h_power"), laws.get("h")
    if power is not None and power.factor is not None and power.exponent is not None:
        factor, exponent = power.factor, power.exponent
        words = f"power law: {three_digits(factor)} x^{three_digits(exponent)}"
        drawn.append(("ours", words, lambda x: factor * x**exponent))
    if line is not None and line.slope is not None:
        words = f"our cells by least squares: {_equation(line)}"
        drawn.append(("also", words, _line(line)))
    theirs = laws_for(results.study).get("h")
    if theirs is not None:
        drawn.append(("paper", f"the paper: {_equation(theirs)}", _line(theirs)))
    return drawn


def _line(law: Law | PublishedLaw) -> Curve:
    slope, intercept = law.slope or 0.0, law.intercept or 0.0
    return lambda x: intercept + slope * x


def _equation(law: Law | PublishedLaw) -> str:
    intercept = law.intercept or 0.0
    sign = "−" if intercept < 0 else "+"
    return f"{three_digits(law.slope)} x {sign} {three_digits(abs(intercept))}"


def _thresholds(results: StudyResults) -> Table:
    rows = heads_of(results)
    columns = [
        cell_column(),
        Column("h", lambda row: row["h"]),
        Column("D_K", lambda row: row["D_K_words"], lambda row: row["D_K"]),
        Column("d_k", lambda row: row["d_k"]),
        bits_column(),
        Column(
            "mean", lambda row: None if row["mean_score"] is None else f"{row['mean_score']:.4f}"
        ),
        Column("certificate, in d_k", lambda row: row["certificate_words"], text=True),
        Column("status", lambda row: row["status"], text=True),
    ]
    if any(row["limited_by"] for row in rows):
        columns.append(Column("limited by", lambda row: row["limited_by"] or "", text=True))
    return Table(
        name="table-heads",
        caption=(
            "The threshold of every head count. ≥: a lower bound, where none is known. Bits: of "
            "the graph, per parameter at that D_K."
        ),
        columns=columns,
        rows=rows,
        folded=f"Thresholds of every head count: {len(rows)} rows",
    )


def _pool(results: StudyResults) -> Table:
    rows = named(results, pool_of(results))

    def digits(name: str, places: int) -> Column:
        head = {"mean_score": "mean", "mean_difference": "mean difference", "p_value": "p"}[name]
        return Column(head, lambda row: None if row[name] is None else fixed(row[name], places))

    return Table(
        name="table-pool",
        caption=(
            "Heads that pass within 10 % of D_K*, or one step of their d_k above it, each compared "
            "with h* by a paired t-test on the seeds that both ran."
        ),
        columns=[
            cell_column(),
            Column("h", lambda row: row["h"]),
            Column("D_K", lambda row: row["D_K"]),
            digits("mean_score", 4),
            Column("seeds in common", lambda row: row["n_common"]),
            digits("mean_difference", 4),
            digits("p_value", 3),
            Column("decided by", lambda row: row["rule"], text=True),
            Column("kept", lambda row: "yes" if row["retained"] else "no", text=True),
        ],
        rows=rows,
        folded=f"Head counts near D_K*, compared with h*: {len(rows)} rows",
    )
