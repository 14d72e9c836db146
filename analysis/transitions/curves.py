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
        of a verdict ran. Where a pass lies below a fail, ``search.extra_seeds`` adds more; near a
        threshold ``search.transition_seeds`` does.
    """
    good = scored(runs, study, every_seed=True)
    probes = good.groupby(PROBE, sort=False)
    table = probes[["steps", "seconds"]].sum().reset_index()
    starts = np.flatnonzero(~good.duplicated(PROBE))  # the runs of a probe stand together
    scores = [part.tolist() for part in np.split(good["score"].to_numpy(), starts)[1:]]
    ends = [t_interval(own) or (np.nan, np.nan) for own in scores]
    n_seeds = [len(own) for own in scores]
    table = table.assign(
        n_seeds=n_seeds,
        mean_score=[float(np.mean(own)) for own in scores],
        low=[low for low, _ in ends],
        high=[high for _, high in ends],
        complete=[n >= study.search.seeds for n in n_seeds],
    )
    kinds = dict.fromkeys([*PROBE[1:], "n_seeds", "steps"], "int64")
    kinds |= dict.fromkeys(["mean_score", "low", "high", "seconds"], "float64")
    columns = [*PROBE, "n_seeds", "mean_score", "low", "high", "steps", "seconds", "complete"]
    return table[columns].astype({**kinds, "complete": "bool"})
