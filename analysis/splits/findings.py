"""The findings of a transformer's study, in sentences: accuracy by split, and collapsed runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from rgr_dist.analysis.wording import number, plural
from rgr_dist.study.study import Study

EMBEDDINGS = {
    "gaussian": "random unit vectors, drawn afresh for each seed, not GPT-2's",
    "vectors": "the rows of a file",
}
"""Where the items' vectors come from, by embedding family."""


def headline(table: pd.DataFrame) -> list[str]:
    """The finding of the study: what splitting D_K gains at each cell, and which runs collapsed.

    Args:
        table: of ``rgr_dist.analysis.splits.accuracy.splits_of``.
    """
    if table.empty:
        return ["No run yet."]
    best = table.loc[table.groupby("cell_id", sort=False)["accuracy"].idxmax()]
    gains = [
        f"At m = {row['m']}, d_model = {row['d_model']}, accuracy is at best "
        f"{row['accuracy']:.3f}, with {plural(row['h'], 'head')} at D_K = {row['D_K']}{_gain(row)}."
        for row in best.to_dict("records")
    ]
    return [*gains, collapses(table)]


def _gain(row: Mapping[Any, Any]) -> str:
    if not row["n_pairs"]:
        return ""
    gain = number(row["gain"], "+.3f")
    if pd.isna(row["gain_low"]):
        return f": {gain} over one head, from one pair of seeds"
    ends = " to ".join(number(row[end], "+.3f") for end in ("gain_low", "gain_high"))
    return f": {gain} over one head (95 % interval {ends})"


def collapses(table: pd.DataFrame) -> str:
    """How many runs collapsed, and how many answered mostly NULL."""
    runs, collapsed, nulls = (int(table[n].sum()) for n in ("n_seeds", "collapsed", "null_runs"))
    return (
        f"{collapsed:,} of {plural(runs, 'run')} collapsed: they score below a random guess among "
        f"the context's items. Of all runs, {nulls:,} answered mostly NULL."
    )


def vectors(study: Study) -> str:
    """Where the items' vectors come from."""
    families = dict.fromkeys(cell.embedding.family for cell in study.cells)
    return "; ".join(EMBEDDINGS.get(family, family) for family in families)
