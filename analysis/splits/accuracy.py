"""Accuracy against D_K for each split among heads: the table of a transformer's study (Sec. 7.3).

Runs are paired by seed: a seed means the same permutation, embeddings and batches at every split.
The gain of more heads at equal D_K is thus the mean of the per-seed differences.
"""

from __future__ import annotations

import math

import pandas as pd

from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.analysis.runs import scored
from rgr_dist.analysis.transitions.probes import probes_of
from rgr_dist.search.seed_test import t_interval
from rgr_dist.study.cell import Cell

MOSTLY = 0.5
"""The least share of NULL answers at which a run is said to answer mostly NULL."""

KINDS = {
    "cell_id": "object", "m": "int64", "d_model": "int64", "D_K": "int64", "h": "int64",
    "d_k": "int64", "n_seeds": "int64", "accuracy": "float64", "low": "float64",
    "high": "float64", "collapsed": "int64", "null_rate": "float64", "null_runs": "int64",
    "n_pairs": "int64", "gain": "float64", "gain_low": "float64", "gain_high": "float64",
}  # fmt: skip


@per_study
def splits_of(results: StudyResults) -> pd.DataFrame:
    """One row per (cell, D_K, h) that has runs, in this order: its accuracy and what it gains.

    Returns:
        ``cell_id, m, d_model, D_K, h, d_k, n_seeds``, the mean ``accuracy`` with its 95 %
        t-interval ``low, high``, cut to 0 and 1; ``collapsed``, the number of runs below a random
        guess among the context's items; the mean ``null_rate``; ``null_runs``, the number that
        answered mostly NULL; ``n_pairs``, the number of seeds that also ran with one head at this
        D_K (0 for one head itself), and over these the mean ``gain`` in accuracy over one head,
        with its t-interval ``gain_low, gain_high``. The gain is null without pairs.
    """
    study, pair = results.study, ["cell_id", "D_K", "seed"]
    good = scored(results.searched, study)
    alone = good[good["h"] == 1][[*pair, "score"]].rename(columns={"score": "alone"})
    good = good.merge(alone, how="left", on=pair).astype({"null_rate": "float64"})
    chance = good["cell_id"].map({cell.cell_id: guess(cell) for cell in study.cells})
    good = good.assign(
        collapsed=good["score"] < chance.astype("float64"),
        null_runs=good["null_rate"] >= MOSTLY,
        gain=(good["score"] - good["alone"]).where(good["h"] > 1),
    )
    by_split = good.groupby(["cell_id", "h", "d_k"], sort=False)
    counted = by_split.agg(
        collapsed=("collapsed", "sum"),
        null_rate=("null_rate", "mean"),
        null_runs=("null_runs", "sum"),
        n_pairs=("gain", "count"),
        gain=("gain", "mean"),
    )
    ends = [
        t_interval(own.dropna().to_list()) or (math.nan, math.nan) for _, own in by_split["gain"]
    ]
    counted = counted.assign(
        gain_low=[low for low, _ in ends], gain_high=[high for _, high in ends]
    )
    means = probes_of(results).rename(columns={"mean_score": "accuracy"})
    means = means.drop(columns="collapsed")
    table = means.merge(counted.reset_index(), on=["cell_id", "h", "d_k"])
    order = pd.Categorical(table["cell_id"], [cell.cell_id for cell in study.cells])
    table = table.assign(order=order).sort_values(["order", "D_K", "h"], ignore_index=True)
    table[["low", "high"]] = table[["low", "high"]].clip(0, 1)
    return table[list(KINDS)].astype(KINDS)


def guess(cell: Cell) -> float:
    """Accuracy of a random guess among the items of the context, two to a pair."""
    return 1 / (2 * cell.context.length)
