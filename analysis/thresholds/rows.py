"""The cells and the thresholds of every head count, as rows with words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from analysis import wording
from analysis.load import StudyResults, per_study
from analysis.rows import Row, by_size, name_keys
from analysis.thresholds.best import best_of
from analysis.thresholds.findings import STATUS, certificate_words
from rgr_dist.paper import capacity_scale, compression


@per_study
def thresholds_of(results: StudyResults) -> pd.DataFrame:
    """The threshold of every (cell, h), in the study's order."""
    order = {cell.cell_id: i for i, cell in enumerate(results.study.cells)}
    table = results.thresholds
    ours = table[table["cell_id"].isin(order)]
    ours = ours.assign(_order=ours["cell_id"].map(order)).sort_values(["_order", "h"])
    return ours.drop(columns="_order").reset_index(drop=True)


@per_study
def cells_of(results: StudyResults) -> list[Row]:
    """The rows of ``best`` by size, with the law's scales, names and words.

    ``largest`` says which have the largest step limit of their family.
    """
    largest = {family[-1].cell_id for family in results.study.budgets.values()}
    rows = []
    for row in by_size(best_of(results)):
        sizes = (row["m"], row["d_model"], row["n_edges"])
        row |= name_keys(results, row)
        row["largest"] = row["cell_id"] in largest
        row |= {"scale": capacity_scale(*sizes), "compression": compression(*sizes)}
        row["D_K_words"] = wording.with_range(row["D_K"], row["D_K_low"], row["D_K_high"])
        row["h_words"] = wording.with_range(row["h_star"], row["h_low"], row["h_high"])
        row["certificate_words"] = certificate_of(results, row)
        row["text"] = _text(row)
        rows.append(row)
    return rows


@per_study
def drawn_cells_of(results: StudyResults) -> list[Row]:
    """The cells that figures show: of one problem under several step limits, the largest."""
    return [row for row in cells_of(results) if row["largest"]]


def certificate_of(results: StudyResults, row: Mapping[str, Any]) -> str:
    """The certificate of a row in words."""
    minimised, search = results.study.cells[0].minimised, results.study.search
    return certificate_words(row["certificate"], search.seeds, minimised, search.target)


def _text(row: Row) -> str:
    lines = [row["full"]]
    if row["D_K"] is None:
        bound = "" if row["D_K_words"] == wording.MISSING else f"D_K* {row['D_K_words']}, "
        lines.append(bound + STATUS[row["status"]])
    else:
        so_far = ", so far" if row["status"] == "open" else ""
        lines.append(f"D_K* = {row['D_K_words']}{so_far}")
        lines.append(f"h* = {row['h_words']}, d_k = {row['d_k']}")
    if row["certificate_words"] != wording.MISSING:
        lines.append(row["certificate_words"])
    return "\n".join(lines)
