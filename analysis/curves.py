"""F1 against D_K: one row per probe, with the t-interval over its seeds (App. A.2)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from analysis.runs import scored
from rgr_dist.study.study import Study
from search.confidence_interval import t_interval

PROBE = ["cell_id", "m", "d_model", "degree", "h", "d_k", "D_K"]
"""Columns that identify a probe."""


def curves(runs: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Mean score against width, one row per probe, in the order (cell, h, d_k).

    Returns:
        ``cell_id, m, d_model, degree, h, d_k, D_K, n_seeds, mean_score, low, high, steps, seconds,
        complete``: low and high bound the 95 % t-interval and are null for a single seed; steps
        (contexts) and seconds (wall time) are summed over seeds; complete says whether every seed
        of a verdict ran. Near a threshold ``search.transition_seeds`` adds more.
    """
    rows = []
    for key, probe in scored(runs, study, transition=True).groupby(PROBE, sort=False):
        scores = probe["score"].to_list()
        low, high = t_interval(scores) or (None, None)
        rows.append(
            {
                **dict(zip(PROBE, key, strict=True)),
                "n_seeds": len(scores),
                "mean_score": float(np.mean(scores)),
                "low": low,
                "high": high,
                "steps": int(probe["steps"].sum()),
                "seconds": float(probe["seconds"].sum()),
                "complete": len(scores) >= study.search.seeds,
            }
        )
    kinds = dict.fromkeys([*PROBE[1:], "n_seeds", "steps"], "int64")
    kinds |= dict.fromkeys(["mean_score", "low", "high", "seconds"], "float64")
    columns = [*PROBE, "n_seeds", "mean_score", "low", "high", "steps", "seconds", "complete"]
    return pd.DataFrame(rows, columns=columns).astype({**kinds, "complete": "bool"})
