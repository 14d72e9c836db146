"""The findings of a transformer's study, in sentences: accuracy by split, and collapsed runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from rgr_dist.analysis.wording import plural
from rgr_dist.study.study import Study

EMBEDDINGS = {
    "gaussian": "random unit vectors, drawn afresh for each seed, not GPT-2's",
    "table": "a model's token embeddings, most frequent tokens first, with end of text as NULL",
    "stand-in": "a synthetic stand-in that resembles GPT-2's token embeddings, not GPT-2's own",
}
"""Where the items' vectors come from, by embedding family."""


def headline(table: pd.DataFrame) -> str:
    """The finding of the study: what splitting D_K among heads gains, and which runs collapsed.

    Args:
        table: of ``rgr_dist.analysis.splits.accuracy.splits``.
    """
    return gains(table) if table.empty else f"{gains(table)} {collapses(table)}"


def asked(study: Study) -> str:
    """What the study asks."""
    cells = plural(len(study.cells), "cell")
    sizes = ", ".join(f"({cell.m}, {cell.d_model})" for cell in study.cells[:3])
    sizes += ", …" if len(study.cells) > 3 else ""
    return (
        "Of one transformer block, trained to look up a stored relation and then a pair in its "
        f"context, we asked how the accuracy depends on the number of heads h that share one total "
        f"key width D_K, for {cells} of m items in d_model dimensions: (m, d_model) = {sizes}."
    )


def gains(table: pd.DataFrame) -> str:
    """For each cell, the accuracy of the best split beside that of one head at equal D_K.

    Args:
        table: of ``rgr_dist.analysis.splits.accuracy.splits``.
    """
    if table.empty:
        return "No run yet."
    lines = []
    for _, own in table.groupby("cell_id", sort=False):
        rows = own.to_dict("records")
        cell = f"At m = {rows[0]['m']}, d_model = {rows[0]['d_model']}, accuracy is "
        alone = {row["D_K"]: row["accuracy"] for row in rows if row["h"] == 1}
        each = []
        for D_K, rivals in own[own["gain"].notna()].groupby("D_K"):
            best = max(rivals.to_dict("records"), key=_accuracy)
            each.append(
                f"{best['accuracy']:.3f} with {best['h']} heads, {alone[D_K]:.3f} with one, "
                f"at D_K = {D_K} ({_gain(best)})"
            )
        if not each:  # nothing to compare with one head
            best = max(rows, key=_accuracy)
            heads = plural(int(best["h"]), "head")
            each = [f"at best {best['accuracy']:.3f}, with {heads} at D_K = {best['D_K']}"]
        lines.append(f"{cell}{'; '.join(each)}.")
    return " ".join(lines)


def _accuracy(row: Mapping[Any, Any]) -> float:
    return float(row["accuracy"])


def collapses(table: pd.DataFrame) -> str:
    """How many runs collapsed, at which splits, and how many answered mostly NULL."""
    runs, collapsed = int(table["n_seeds"].sum()), table[table["collapsed"] > 0]
    nulls = int(table["null_runs"].sum())
    null = f"{plural(nulls, 'run')} answered mostly NULL" if nulls else "none answered mostly NULL"
    if collapsed.empty:
        guessed = "fell below a random guess among the context's items"
        return f"None of {plural(runs, 'run')} {guessed}; {null}."
    where = "; ".join(
        f"{row['collapsed']} of {row['n_seeds']} at h = {row['h']}, D_K = {row['D_K']}"
        for row in collapsed.to_dict("records")
    )
    return (
        f"{collapsed['collapsed'].sum():,} of {plural(runs, 'run')} collapsed, below a random "
        f"guess among the context's items: {where}; {null}."
    )


def _gain(row: Mapping[Any, Any]) -> str:
    gain = f"{row['gain']:+.3f}".replace("-", "−")
    if pd.isna(row["gain_low"]):
        return f"{gain}, from one pair of seeds"
    ends = " to ".join(f"{row[end]:+.3f}".replace("-", "−") for end in ("gain_low", "gain_high"))
    return f"{gain}, 95 % interval {ends}"


def vectors(study: Study) -> str:
    """Where the items' vectors come from."""
    families = dict.fromkeys(cell.embedding.family for cell in study.cells)
    return "; ".join(EMBEDDINGS.get(family, family) for family in families)
