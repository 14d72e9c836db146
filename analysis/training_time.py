"""Thresholds as training lengthens: D_K* at every step limit, and what several heads gain.

A threshold holds for one step limit T. Where a cell has several, D_K*(T) falls as T grows, and so
may the gain of several heads, D_K(1) / D_K*.
"""

from __future__ import annotations

import pandas as pd

from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.analysis.tables import best, thresholds, with_kinds


@per_study
def gains(results: StudyResults) -> pd.DataFrame:
    """The best head count against one head, at every step limit of every cell that has several.

    Returns:
        By cell and growing limit: ``cell_id``; ``family``, the cell_id at the largest limit; ``m,
        d_model, degree, max_steps, status, D_K, D_K_low, D_K_high, h_star, h_low, h_high``; the
        same of one head, ``D_K_one, one_low, one_high, one_status``; ``gain``, D_K_one / D_K.
        ``gain_low`` and ``gain_high`` divide opposite ends of the two intervals, so that they
        cover at least what either covers; null where an end is not known. If one head has no
        threshold, gain is null and gain_low is what its least width not ruled out would give.
    """
    study = results.study
    largest = {
        cell.cell_id: family[-1].cell_id
        for family in study.budgets.values()
        for cell in family
        if len(family) > 1
    }
    table, one = best(results), thresholds(results)
    names = {"D_K": "D_K_one", "D_K_low": "one_low", "D_K_high": "one_high", "status": "one_status"}
    one = one.loc[one["h"] == 1, ["cell_id", *names]].rename(columns=names)
    table = table[table["cell_id"].isin(largest)].merge(one, on="cell_id", how="left")
    place = {cell_id: i for i, cell_id in enumerate(dict.fromkeys(largest.values()))}
    table = table.assign(family=table["cell_id"].map(largest))
    table = table.assign(place=table["family"].map(place)).sort_values(["place", "max_steps"])
    low, high = (table[name].astype("Float64") for name in ("D_K_low", "D_K_high"))
    is_over = table["status"] != "open"
    table = table.assign(
        gain=(table["D_K_one"] / table["D_K"]).where(is_over),
        gain_low=(table["one_low"] / high).where(is_over),
        gain_high=(table["one_high"] / low).where(is_over & table["D_K_one"].notna()),
    )
    columns = ["cell_id", "family", "m", "d_model", "degree", "max_steps", "status", "D_K"]
    columns += ["D_K_low", "D_K_high", "h_star", "h_low", "h_high", *names.values()]
    gain = ["gain", "gain_low", "gain_high"]
    return with_kinds(table[[*columns, *gain]].reset_index(drop=True), gain)
