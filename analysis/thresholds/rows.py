"""The cells and the thresholds of every setting, as rows with words."""

from __future__ import annotations

import pandas as pd

from rgr_dist.analysis import wording
from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.analysis.rows import Row, named
from rgr_dist.analysis.thresholds.best_heads import best_of, with_bounds
from rgr_dist.analysis.thresholds.certificates import certificate_words
from rgr_dist.paper import capacity_scale, compression


@per_study
def thresholds_of(results: StudyResults) -> pd.DataFrame:
    """The thresholds, with the bounds of ``with_bounds``, in the study's order."""
    order = {cell.cell_id: i for i, cell in enumerate(results.study.cells)}
    table = with_bounds(results.thresholds, results.study)
    table = table.assign(_order=table["cell_id"].map(order))
    table = table.sort_values(["_order", results.study.search.sizes.arm])
    return table.drop(columns="_order").reset_index(drop=True)


@per_study
def cells_of(results: StudyResults) -> list[Row]:
    """The rows of ``best_of`` by size, with the law's scales, names and words.

    ``largest`` says whether no cell that differs in the step limit alone has a larger one.
    """
    axis = results.study.search.sizes
    largest = {family[-1].cell_id for family in results.study.budgets.values()}
    rows = []
    for row in named(results, best_of(results)):
        sizes = (row["m"], row["d_model"], row["n_edges"])
        row["largest"] = row["cell_id"] in largest
        row |= {"scale": capacity_scale(*sizes), "compression": compression(*sizes)}
        ends = (row[axis.low], row[axis.high])
        if results.study.search.total:  # the only width at its d_qk has no neighbours to bound it
            ends = (None, None)
        row["width_words"] = wording.with_range(row[axis.total], *ends)
        row["arm_words"] = wording.with_range(
            row[axis.best_arm], *(row[f"{axis.shown_arm}_{end}"] for end in ("low", "high"))
        )
        row["certificate_words"] = certificate_words(row["certificate"], results.study)
        lines = [row["full"], f"{axis.total}*: {row['width_words']}, {row['status']}"]
        if row[axis.total] is not None:
            lines.append(
                f"{axis.shown_arm}* = {row['arm_words']}, {axis.value} = {row[axis.value]}"
            )
        row["text"] = "\n".join(lines)
        rows.append(row)
    return rows


@per_study
def drawn_cells_of(results: StudyResults) -> list[Row]:
    """The cells that figures show: of those that differ in the step limit alone, the largest."""
    return [row for row in cells_of(results) if row["largest"]]
