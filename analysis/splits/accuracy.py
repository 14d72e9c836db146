"""Accuracy against D_K for each split among heads: the table of a transformer's study (Sec. 7.3).

Runs are paired by seed: a seed means the same permutation, embeddings and batches at every split.
The gain of more heads at equal D_K is thus the mean of the per-seed differences.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.analysis.runs import scored
from rgr_dist.search.confidence_interval import t_interval
from rgr_dist.study.cell import Cell
from rgr_dist.study.study import Study

MOSTLY = 0.5
"""Share of NULL answers from which a run is said to answer mostly NULL."""

KINDS = {
    "cell_id": "object", "m": "int64", "d_model": "int64", "D_K": "int64", "h": "int64",
    "d_k": "int64", "n_seeds": "int64", "accuracy": "float64", "low": "float64",
    "high": "float64", "collapsed": "int64", "null_rate": "float64", "null_runs": "int64",
    "n_pairs": "int64", "gain": "float64", "gain_low": "float64", "gain_high": "float64",
}  # fmt: skip


@per_study
def splits_of(results: StudyResults) -> pd.DataFrame:
    """Accuracy of every split among heads of a study: ``splits`` of its runs."""
    return splits(results.runs, results.study)


def splits(runs: pd.DataFrame, study: Study) -> pd.DataFrame:
    """One row per (cell, D_K, h) with runs, in that order.

    Returns:
        ``cell_id, m, d_model, D_K, h, d_k, n_seeds``, the mean ``accuracy`` with its 95 %
        t-interval ``low, high``; ``collapsed``, the number of runs below a random guess among the
        context's items; the mean ``null_rate``; ``null_runs``, the number that answered mostly
        NULL; ``n_pairs``, the seeds that also ran with one head at this D_K, and over these the
        mean ``gain`` in accuracy over one head, with its t-interval ``gain_low, gain_high``. The
        gain is null without pairs.
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
    """Accuracy of a random guess among the items of the context, which holds two per pair."""
    return 1 / (2 * cell.context.length)
