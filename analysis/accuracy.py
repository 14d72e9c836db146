"""Accuracy against D_K, split among heads: what the transformer's study is read from (Sec. 7.3).

Runs are paired by seed: one seed means the same permutation, embeddings and batches at every
split, so what more heads gain at equal D_K is the mean of its seeds' differences.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from analysis.curves import scored, t_interval
from analysis.wording import plural
from rgr_dist.study.study import Cell, Study

MOSTLY = 0.5
"""Share of test queries from which a run answered NULL to most of them."""

KINDS = {
    "cell_id": "object", "m": "int64", "d_model": "int64", "D_K": "int64", "h": "int64",
    "d_k": "int64", "n_seeds": "int64", "accuracy": "float64", "low": "float64",
    "high": "float64", "collapsed": "int64", "null_rate": "float64", "null_runs": "int64",
    "n_pairs": "int64", "gain": "float64", "gain_low": "float64", "gain_high": "float64",
}  # fmt: skip


def splits(runs: pd.DataFrame, study: Study) -> pd.DataFrame:
    """One row per (cell, D_K, h) that has run, in that order.

    Returns:
        ``cell_id, m, d_model, D_K, h, d_k, n_seeds``, the mean ``accuracy`` with its 95 %
        t-interval ``low, high``; how many runs ``collapsed``, which is to answer worse than a
        guess among the items of the context; the mean ``null_rate``, and ``null_runs``, how many
        answered NULL to most queries; and of the ``n_pairs`` seeds that one head also ran at this
        D_K, the mean ``gain`` in accuracy over it with its paired t-interval ``gain_low,
        gain_high``, null where there are none.
    """
    rows = []
    of_study = scored(runs, study)
    for cell in study.cells:
        own = of_study[of_study["cell_id"] == cell.cell_id]
        for (D_K, h), probe in own.groupby(["D_K", "h"], sort=True):
            scores = probe.set_index("seed")["score"]
            alone = own[(own["D_K"] == D_K) & (own["h"] == 1)].set_index("seed")["score"]
            gains = [] if h == 1 else (scores - alone).dropna().to_list()
            nulls = probe["null_rate"].astype("float64")
            low, high = t_interval(scores.to_list()) or (None, None)
            gain_low, gain_high = t_interval(gains) or (None, None)
            rows.append(
                {
                    "cell_id": cell.cell_id,
                    "m": cell.m,
                    "d_model": cell.d_model,
                    "D_K": D_K,
                    "h": h,
                    "d_k": probe["d_k"].iloc[0],
                    "n_seeds": len(scores),
                    "accuracy": float(scores.mean()),
                    "low": low,
                    "high": high,
                    "collapsed": int((scores < guess(cell)).sum()),
                    "null_rate": float(nulls.mean()) if nulls.notna().any() else None,
                    "null_runs": int((nulls >= MOSTLY).sum()),
                    "n_pairs": len(gains),
                    "gain": float(np.mean(gains)) if gains else None,
                    "gain_low": gain_low,
                    "gain_high": gain_high,
                }
            )
    return pd.DataFrame(rows, columns=list(KINDS)).astype(KINDS)


def guess(cell: Cell) -> float:
    """Accuracy of a guess among the items of the context, two in each of its slots."""
    return 1 / (2 * cell.context.length)


def headline(table: pd.DataFrame) -> str:
    """What the best split answers right beside one head at equal D_K, in a sentence a cell."""
    if table.empty:
        return "No run yet."
    lines = []
    for _, own in table.groupby("cell_id", sort=False):
        rows = own.to_dict("records")
        place = f"At m = {rows[0]['m']}, d_model = {rows[0]['d_model']}, accuracy is "
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
        lines.append(f"{place}{'; '.join(each)}.")
    return " ".join(lines)


def _accuracy(row: Mapping[Any, Any]) -> float:
    return float(row["accuracy"])


def collapse_words(table: pd.DataFrame) -> str:
    """How many runs collapsed, at which splits, and how many of all answered NULL."""
    runs, collapsed = int(table["n_seeds"].sum()), table[table["collapsed"] > 0]
    nulls = int(table["null_runs"].sum())
    null = f"{plural(nulls, 'run')} answered mostly NULL" if nulls else "none answered mostly NULL"
    if collapsed.empty:
        return f"No run of {runs} collapsed, below a guess among the items of the context; {null}."
    places = "; ".join(
        f"{row['collapsed']} of {row['n_seeds']} at h = {row['h']}, D_K = {row['D_K']}"
        for row in collapsed.to_dict("records")
    )
    return (
        f"{plural(int(collapsed['collapsed'].sum()), 'run')} of {runs} collapsed, below a guess "
        f"among the items of the context: {places}; {null}."
    )


def _gain(row: Mapping[Any, Any]) -> str:
    gain = f"{row['gain']:+.3f}".replace("-", "−")
    if pd.isna(row["gain_low"]):
        return f"{gain}, from one pair of seeds"
    ends = " to ".join(f"{row[end]:+.3f}".replace("-", "−") for end in ("gain_low", "gain_high"))
    return f"{gain}, 95 % interval {ends}"
