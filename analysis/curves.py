"""F1 against D_K: one row per probe, with the t-interval over its seeds (App. A.2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats

from rgr_dist.study.study import Study

CONFIDENCE = 0.95
"""Coverage of every interval in the analysis (App. A.2)."""

PROBE = ["cell_id", "m", "d_model", "degree", "h", "d_k", "D_K"]
"""What names a probe in the tables."""


def scored(runs: pd.DataFrame, study: Study) -> pd.DataFrame:
    """The runs that count for the study, each with a score, in the study's order of cells.

    Kept are the study's cells, heads and seeds, the latter being 0 to ``search.seeds`` - 1, so
    that the tables depend on the study alone however much the store holds. A diverged run is a
    result and has the worst score, 0 or an infinite error; a failed run is none and is left out.

    Returns:
        The columns of ``runs``, one row per (cell, h, d_k, seed).
    """
    order = {cell.cell_id: place for place, cell in enumerate(study.cells)}
    kept = runs[
        runs["cell_id"].isin(order)
        & runs["h"].map(study.search.lists)
        & (runs["seed"] < study.search.seeds)
    ]
    score = pd.to_numeric(kept["score"]).astype("float64")
    worst = np.inf if study.cells[0].minimised else 0.0
    score = score.mask(kept["stop_reason"] == "diverged", worst)
    kept = kept.assign(score=score, _place=kept["cell_id"].map(order))
    kept = kept[kept["score"].notna()]
    kept = kept.sort_values(["_place", "h", "d_k", "seed"], kind="stable").drop(columns="_place")
    return kept.drop_duplicates(["cell_id", "h", "d_k", "seed"]).reset_index(drop=True)


def t_interval(scores: Sequence[float]) -> tuple[float, float] | None:
    """95 % t-interval of the mean (App. A.2): mean ± t(0.975, n - 1) s / √n, not clipped to [0, 1].

    Returns:
        (low, high); of zero width where all scores are equal; None where there are fewer than two.
    """
    values = np.asarray(scores, dtype=np.float64)
    n = len(values)
    if n < 2:
        return None
    mean = float(values.mean())
    if not np.isfinite(mean):
        return mean, mean
    if np.ptp(values) == 0:
        return float(values[0]), float(values[0])
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1) * values.std(ddof=1) / np.sqrt(n))
    return mean - half, mean + half


def curves(runs: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Mean score against width, one row per probe, in the order (cell, h, d_k).

    Returns:
        ``cell_id, m, d_model, degree, h, d_k, D_K, n_seeds, mean_score, low, high, steps, seconds,
        complete``: low and high bound the 95 % t-interval and are null for a single seed, steps
        are contexts and seconds wall time, both summed over seeds; complete says whether every
        seed of the study ran.
    """
    rows = []
    for key, probe in scored(runs, study).groupby(PROBE, sort=False):
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
                "complete": len(scores) == study.search.seeds,
            }
        )
    kinds = dict.fromkeys([*PROBE[1:], "n_seeds", "steps"], "int64")
    kinds |= dict.fromkeys(["mean_score", "low", "high", "seconds"], "float64")
    columns = [*PROBE, "n_seeds", "mean_score", "low", "high", "steps", "seconds", "complete"]
    return pd.DataFrame(rows, columns=columns).astype({**kinds, "complete": "bool"})
