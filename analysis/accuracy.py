"""Accuracy at every split of D_K among heads: the table of a transformer's study (Sec. 7.3).

Runs are paired by seed: a seed means the same permutation, embeddings and batches at every split.
The gain of more heads at equal D_K is thus the mean of the differences by seed.
"""

from __future__ import annotations

import math

import pandas as pd

from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.analysis.probes import probes
from rgr_dist.analysis.runs import scored
from rgr_dist.analysis.tables import with_kinds
from rgr_dist.search.seed_test import t_interval


@per_study
def accuracy(results: StudyResults) -> pd.DataFrame:
    """One row per (cell, D_K, h) that has runs, in this order.

    Returns:
        ``cell_id, m, d_model, D_K, h, d_k, n_seeds``; the mean ``accuracy`` with its 95 %
        t-interval ``low, high``; the mean ``null_rate``, of answers NULL; ``n_pairs``, the seeds
        that also ran with one head at this D_K, and over these the mean ``gain`` over one head,
        with its t-interval ``gain_low, gain_high``; null for one head, and without pairs.
    """
    good = scored(results.searched, results.study)
    pair = ["cell_id", "D_K", "seed"]
    alone = good[good["h"] == 1][[*pair, "score"]].rename(columns={"score": "alone"})
    good = good.merge(alone, how="left", on=pair).astype({"null_rate": "float64"})
    good = good.assign(gain=(good["score"] - good["alone"]).where(good["h"] > 1))
    by_split = good.groupby(["cell_id", "h", "d_k"], sort=False)
    ends = [
        t_interval(own.dropna().to_list()) or (math.nan, math.nan) for _, own in by_split["gain"]
    ]
    told = by_split.agg(
        null_rate=("null_rate", "mean"), n_pairs=("gain", "count"), gain=("gain", "mean")
    ).assign(gain_low=[low for low, _ in ends], gain_high=[high for _, high in ends])
    table = probes(results).rename(columns={"mean_score": "accuracy"})
    table = table.merge(told.reset_index(), on=["cell_id", "h", "d_k"])
    place = {cell.cell_id: i for i, cell in enumerate(results.study.cells)}
    table = table.assign(place=table["cell_id"].map(place)).sort_values(["place", "D_K", "h"])
    reals = ["accuracy", "low", "high", "null_rate", "gain", "gain_low", "gain_high"]
    columns = ["cell_id", "m", "d_model", "D_K", "h", "d_k", "n_seeds", *reals[:4], "n_pairs"]
    return with_kinds(table[[*columns, *reals[4:]]].reset_index(drop=True), reals)
