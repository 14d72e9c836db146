"""Heads, or values of d_qk: h* against compression, D_K(h) of each cell, settings near the best."""

from __future__ import annotations

import pandas as pd

from rgr_dist.analysis.drawing.points import Curve
from rgr_dist.analysis.heads.by_heads import by_heads_of, heads_of
from rgr_dist.analysis.heads.figures import draw_best_heads, draw_thresholds_by_head
from rgr_dist.analysis.laws.fits import fits_of
from rgr_dist.analysis.laws.scaling_laws import Law, by_name
from rgr_dist.analysis.laws.section import has_sizes_to_compare, published
from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.page.section import (
    Column,
    Section,
    Table,
    bits_column,
    cell_column,
    limit_columns,
)
from rgr_dist.analysis.records import with_bits
from rgr_dist.analysis.rows import named
from rgr_dist.analysis.thresholds.best_heads import pool_of
from rgr_dist.analysis.thresholds.comparable import laws_for
from rgr_dist.analysis.thresholds.listing import threshold_records
from rgr_dist.analysis.thresholds.rows import drawn_cells_of, thresholds_of
from rgr_dist.analysis.wording import three_digits
from rgr_dist.paper import PublishedLaw


def section(results: StudyResults) -> Section:
    """How the smallest width depends on the number of heads, or on the key width."""
    study, rows = results.study, heads_of(results)
    axis, cells, figures = study.search.sizes, drawn_cells_of(results), []
    if study.record.finds == "D_K" and has_sizes_to_compare(results):
        figures.append(draw_best_heads(cells, _curves(results), published(results)))
    if any(row[axis.total] is not None or row["at_least"] is not None for row in rows):
        is_every_width = results.study.search.mode == "threshold"
        figures.append(draw_thresholds_by_head(cells, rows, axis, is_every_width))
    shown = [_thresholds(results)] if rows else []
    if len(pool_of(results)):
        shown.append(_pool(results))
    one = axis.arms_key.removesuffix("s")
    thresholds = thresholds_of(results)
    return Section(
        name=axis.arms_key,
        title=axis.arms.capitalize(),
        figures=figures,
        shown=shown,
        files={
            "thresholds": with_bits(thresholds)
            if study.record.holds_bits
            else pd.DataFrame(threshold_records(results)).drop(columns="cell"),
            axis.arms_key: by_heads_of(results),
            f"{one}_pool": pool_of(results),
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
    rows, axis = heads_of(results), results.study.search.sizes
    of_graph = [bits_column()] if results.study.record.holds_bits else []
    columns = [
        cell_column(),
        Column(axis.shown_arm, axis.arm),
        Column(axis.total, "width_words", axis.total),
        Column(axis.value, axis.value, form=",.0f"),
        *of_graph,
        Column("mean", "mean_score", form="z.4f"),
        Column("status", "status", text=True),
    ]
    columns += limit_columns(rows)
    columns.append(Column(f"certificate, in {axis.value}", "certificate_words", text=True))
    each = "every head count" if axis.arm == "h" else f"every {axis.shown_arm}"
    return Table(
        name=f"table-{axis.arms_key}",
        caption=f"The threshold of {each}. ≥: no threshold is known, only a lower bound."
        + (f" Bits: of the graph, per parameter at that {axis.total}." if of_graph else ""),
        columns=columns,
        rows=rows,
        folded=f"Thresholds of {each}",
        file="thresholds",
    )


def _pool(results: StudyResults) -> Table:
    rows, axis = named(results, pool_of(results)), results.study.search.sizes
    return Table(
        name="table-pool",
        caption=(
            f"{axis.arms.capitalize()} that pass within 10 % of {axis.total}*, or one "
            f"step of their {axis.value} above it, each compared with {axis.shown_arm}* by a "
            "paired t-test on the seeds that both ran."
        ),
        columns=[
            cell_column(),
            Column(axis.shown_arm, axis.arm),
            Column(axis.total, axis.total),
            Column("kept", lambda row: "yes" if row["retained"] else "no", text=True),
            Column("mean", "mean_score", form="z.4f"),
            Column("seeds in common", "n_common"),
            Column("mean difference", "mean_difference", form="z.4f"),
            Column("p", "p_value", form=".3g"),
            Column("decided by", "rule", text=True),
        ],
        rows=rows,
        folded=f"{axis.arms.capitalize()} near {axis.total}*, compared with {axis.shown_arm}*",
        file=f"{axis.arms_key.removesuffix('s')}_pool",
    )
