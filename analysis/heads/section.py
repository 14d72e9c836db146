"""Heads, or values of d_qk: h* against compression, D_K(h) of each cell, settings near the best."""

from __future__ import annotations

import pandas as pd

from rgr_dist.analysis.heads.by_heads import by_heads_of, heads_of
from rgr_dist.analysis.heads.figures import draw_thresholds_by_head
from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.page.section import (
    Column,
    Section,
    Table,
    bits_column,
    cell_column,
)
from rgr_dist.analysis.records import with_bits
from rgr_dist.analysis.rows import named
from rgr_dist.analysis.thresholds.best_heads import pool_of
from rgr_dist.analysis.thresholds.listing import threshold_records
from rgr_dist.analysis.thresholds.rows import drawn_cells_of, thresholds_of


def section(results: StudyResults) -> Section:
    """How the smallest width depends on the number of heads, or on the key width."""
    study, rows = results.study, heads_of(results)
    axis, cells, figures = study.search.sizes, drawn_cells_of(results), []
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
