"""Scores against D_K: one row a probe, with the t-interval over its seeds (App. A.2)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.analysis.runs import asked, scored
from rgr_dist.analysis.tables import with_kinds
from rgr_dist.search.seed_test import t_interval

PROBE = ["cell_id", "m", "d_model", "degree", "h", "d_k", "D_K"]
"""Columns that identify a probe."""


@per_study
def probes(results: StudyResults) -> pd.DataFrame:
    """The mean score of every probe of the search, in the order (cell, h, d_k).

    Returns:
        ``cell_id, m, d_model, degree, h, d_k, D_K, n_seeds, mean_score``; ``low, high``, the 95 %
        t-interval of the mean, cut to [0, 1] and null with one seed; ``passing``, the seeds whose
        own score reaches the target; ``diverged``; ``failed``, runs that could not be trained;
        ``complete``, whether all ``search.seeds`` ran: if not, the mean is of those that a verdict
        took; ``steps`` (contexts) and ``seconds`` (of one core), sums over seeds.
    """
    runs, study = results.searched, results.study
    minimised, target = study.record.minimised, study.search.target
    good = scored(runs, study)
    good = good.assign(
        passing=good["score"] <= target if minimised else good["score"] >= target,
        diverged=good["stop_reason"] == "diverged",
    )
    by_probe = good.groupby(PROBE, sort=False)
    table = by_probe[["passing", "diverged", "steps", "seconds"]].sum()
    scores = by_probe["score"].agg(list)
    ends = np.array([t_interval(own) or (np.nan, np.nan) for own in scores]).reshape(-1, 2)
    ends = np.clip(ends, 0.0, np.inf if minimised else 1.0)
    tries = asked(runs, study)
    lost = tries[tries["stop_reason"] == "failed"].groupby(PROBE, sort=False).size()
    table = table.assign(
        n_seeds=scores.map(len),
        mean_score=scores.map(np.mean),
        low=ends[:, 0],
        high=ends[:, 1],
        failed=lost.reindex(table.index, fill_value=0),
        complete=scores.map(len) >= study.search.seeds,
    )
    columns = ["n_seeds", "mean_score", "low", "high", "passing", "diverged", "failed"]
    columns += ["complete", "steps", "seconds"]
    reals = ("mean_score", "low", "high", "seconds")
    return with_kinds(table[columns].reset_index(), reals)
