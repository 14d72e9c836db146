"""How many bits per parameter trained layers need: their scores with rounded weights."""

from __future__ import annotations

import pandas as pd

from rgr_dist.analysis.thresholds.known_weights import UNROUNDED
from rgr_dist.search.probe_verdict import passes
from rgr_dist.store.store import Store
from rgr_dist.study.study import Study

KEYS = ["cell_id", "m", "d_model", "h", "d_k", "D_K", "precision", "bits"]
AS_TRAINED = ["seeds", "exact", "mean_f1", "mean_score"]
"""Columns about the weights before rounding."""


def rounded_means(rows: pd.DataFrame, target: float) -> pd.DataFrame:
    """Means over the seeds of each threshold at each precision.

    Returns:
        ``cell_id, m, d_model, h, d_k, D_K, precision, bits, seeds, mean_score, passes, exact,
        mean_f1, mean_failed_pairs, least_margin``: the mean test score, whether it reaches the
        target, how many seeds are right on all pairs, and the means over all pairs.
    """
    return rows.groupby(KEYS, sort=False, as_index=False).agg(
        seeds=("score", "size"),
        mean_score=("score", "mean"),
        passes=("score", lambda scores: passes(scores.tolist(), target)),
        exact=("failed_pairs", lambda failed: int((failed == 0).sum())),
        mean_f1=("f1", "mean"),
        mean_failed_pairs=("failed_pairs", "mean"),
        least_margin=("margin", "min"),
    )


def rounded_thresholds(store: Store, study: Study, best: pd.DataFrame) -> pd.DataFrame:
    """``rounded_means`` at a study's thresholds, from the ``ALL_PAIRS`` of all studies; or empty.

    Args:
        best: the table of ``rgr_dist.analysis.thresholds.best_heads.best_of``.
    """
    tables = [store.read_study_table(name, "all_pairs") for name in store.studies()]
    held = [table for table in tables if table is not None and len(table)]
    if not held:
        return pd.DataFrame()
    at = best.assign(h=best["h_star"])[["cell_id", "h", "d_k"]].dropna()
    rows = pd.concat(held).merge(at.astype({"h": "int64", "d_k": "int64"}))
    rows = rows.drop_duplicates(["run_id", "precision"])
    return rounded_means(rows, study.search.target)


def bits_needed(means: pd.DataFrame) -> pd.DataFrame:
    """A row for each threshold: the fewest bits of a parameter with which it still passes.

    Only integers count, with one scale for each matrix. The answer is the smallest number of bits
    that passes together with every larger number that was tried.

    Returns:
        ``cell_id, m, d_model, h, d_k, D_K, seeds, exact, mean_f1, mean_score, bits, tried_below``:
        seeds, exact and the means describe weights as trained, and are null if those were not
        tested; ``bits`` is null if no integer passes; ``tried_below`` is the largest number of bits
        that fails, null if none does.
    """
    integers = means[means["precision"].str.startswith("int")]
    fails = integers[~integers["passes"]].groupby("cell_id")["bits"].max().rename("tried_below")
    integers = integers.join(fails, on="cell_id")
    passing = integers[integers["bits"] > integers["tried_below"].fillna(0)]
    trained = means[means["precision"] == UNROUNDED]
    return (
        means.drop_duplicates("cell_id")[KEYS[:6]]
        .merge(trained[["cell_id", *AS_TRAINED]], how="left", on="cell_id")
        .join(passing.groupby("cell_id")["bits"].min(), on="cell_id")
        .join(fails, on="cell_id")
        .astype(dict.fromkeys(["seeds", "exact", "bits", "tried_below"], "Int64"))
    )
