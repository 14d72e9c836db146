"""How many bits a parameter of trained layers needs: their scores once the weights are rounded."""

from __future__ import annotations

import pandas as pd

from rgr_dist.search.probe_verdict import passes
from rgr_dist.store.store import Store
from rgr_dist.study.study import Study

KEYS = ["cell_id", "m", "d_model", "h", "d_k", "D_K", "precision", "bits"]
UNROUNDED = "float32"


def stored_all_pairs(store: Store, study: Study, best: pd.DataFrame) -> pd.DataFrame:
    """The rows of ``ALL_PAIRS`` at the thresholds of a study's cells, whichever study wrote them.

    Args:
        best: the table of ``rgr_dist.analysis.thresholds.best.best``.
    """
    tables = [store.read_study_table(name, "all_pairs") for name in store.studies()]
    held = [table for table in tables if table is not None and len(table)]
    if not held:
        return pd.DataFrame()
    at = best[best["D_K"].notna()].assign(h=best["h_star"])[["cell_id", "h", "d_k"]]
    rows = pd.concat(held).merge(at.astype({"h": "int64", "d_k": "int64"}))
    return rows.drop_duplicates(["run_id", "precision"])


def rounded_means(rows: pd.DataFrame, target: float, minimise: bool = False) -> pd.DataFrame:
    """Means over the seeds of each threshold at each precision.

    Args:
        minimise: lower scores are better.

    Returns:
        ``cell_id, m, d_model, h, d_k, D_K, precision, bits, seeds, mean_score, passes, exact,
        mean_f1, mean_failed_pairs, least_margin``: the mean test score, whether it reaches the
        target, how many seeds are right on all pairs, and the means over all pairs.
    """
    return rows.groupby(KEYS, sort=False, as_index=False).agg(
        seeds=("score", "size"),
        mean_score=("score", "mean"),
        passes=("score", lambda scores: passes(scores.tolist(), target, minimise)),
        exact=("failed_pairs", lambda failed: int((failed == 0).sum())),
        mean_f1=("f1", "mean"),
        mean_failed_pairs=("failed_pairs", "mean"),
        least_margin=("margin", "min"),
    )


def rounded_thresholds(store: Store, study: Study, best: pd.DataFrame) -> pd.DataFrame:
    """``rounded_means`` of what the store holds of a study's thresholds; may be empty."""
    rows = stored_all_pairs(store, study, best)
    if rows.empty:
        return rows
    return rounded_means(rows, study.search.target, study.cells[0].minimised)


def bits_needed(means: pd.DataFrame) -> pd.DataFrame:
    """A row for each threshold: the fewest bits of a parameter with which it still passes.

    Integers alone, with one scale for a matrix. It is the smallest number of bits from which on
    every larger one that was tried passes too.

    Returns:
        ``cell_id, m, d_model, h, d_k, D_K, seeds, exact, mean_f1, mean_score, bits, tried_below``:
        exact and the means are of weights as trained; ``bits`` is null if no integer passes, and
        ``tried_below`` the largest number of bits that fails, null if none does.
    """
    rows = []
    for key, own in means.groupby(KEYS[:6], sort=False):
        whole = own[own["precision"].str.startswith("int")].sort_values("bits")
        fails = whole[~whole["passes"]]["bits"]
        below = None if fails.empty else int(fails.max())
        passing = whole[whole["bits"] > (below or 0)]["bits"]
        as_trained = own[own["precision"] == UNROUNDED]
        first = as_trained.iloc[0] if len(as_trained) else None
        rows.append(
            dict(zip(KEYS[:6], key, strict=True))
            | {
                "seeds": int(own["seeds"].iloc[0]),
                "exact": None if first is None else int(first["exact"]),
                "mean_f1": None if first is None else float(first["mean_f1"]),
                "mean_score": None if first is None else float(first["mean_score"]),
                "bits": None if passing.empty else int(passing.min()),
                "tried_below": below,
            }
        )
    return pd.DataFrame(rows)
