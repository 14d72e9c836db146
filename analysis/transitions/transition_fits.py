"""How sharp the transition from fail to pass is: curves for each head count of each cell.

Seeds are paired, so the probes of a cell are not independent of each other, and a search trains
most seeds near the threshold. The fits describe these runs; they decide no verdict.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.special import fdtrc

from rgr_dist.analysis.laws.interval_likelihood import Array
from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.analysis.runs import scored
from rgr_dist.analysis.transitions import score_curves
from rgr_dist.analysis.transitions.probes import collapsed, probes_of
from rgr_dist.analysis.transitions.share_curves import Shares
from rgr_dist.search.confidence_interval import CONFIDENCE

WIDTHS_OF_A_FIT = 4
"""Fewest key widths at which a curve of three unknowns is fitted to the scores."""

WIDEST = 3.0
"""Width, in doublings of D_K, above which a curve of scores is called flat."""

LEAST_SUM = 1e-12
"""A sum of squares of scores from 0 to 1 that is no larger than this is rounding error."""

HEAD = ["cell_id", "h"]

KINDS = {
    "cell_id": "object", "m": "int64", "d_model": "int64", "degree": "int64", "h": "int64",
    "n_probes": "int64", "n_runs": "int64", "collapsed": "int64", "failed": "int64",
    "score_status": "object", "top": "float64", "score_middle": "float64",
    "score_width": "float64", "share_status": "object", "share_middle": "float64",
    "share_low": "float64", "share_high": "float64", "share_width": "float64",
    "share_width_low": "float64", "share_width_high": "float64",
}  # fmt: skip


@per_study
def transitions_of(results: StudyResults) -> pd.DataFrame:
    """Logistic fits for each head count of each cell, in log₂ D_K.

    *Score:* least squares of every run's score on top / (1 + exp(-(log₂ D_K - middle) / width));
    collapsed runs are left out and counted. *Share of passing seeds:* binomial maximum likelihood
    of 1 / (1 + exp(-(log₂ D_K - middle) / width)). A middle is given as a D_K, a width in
    doublings.

    Returns:
        ``cell_id, m, d_model, degree, h, n_probes, n_runs, collapsed, failed``; ``score_status``:
        ``fitted``, with ``top`` (the plateau), ``score_middle, score_width``; ``flat``, with the
        median score as ``top``, where the middle is more than a doubling outside the widths that
        ran, the curve is wider than ``WIDEST``, or it explains the scores no better than one score
        at all widths (F test at 5 % over runs taken as independent); ``too few widths``; ``an
        error``. ``share_status``: ``fitted``, with ``share_middle``, its 95 % profile-likelihood
        limits ``share_low, share_high``, null where the probes set none, and ``share_width`` with
        ``share_width_low, share_width_high``; ``sharp``, where every seed fails up to share_low
        and passes from share_high on; ``never``; ``always``; ``not rising``; ``too few widths``.
    """
    study, table = results.study, probes_of(results)
    minimised = study.record.minimised
    good = scored(results.searched, study, every_seed=True)
    kept = dict(list(good[~collapsed(good, minimised)].groupby(HEAD, sort=False)))
    rows = []
    for key, own in table.groupby(HEAD, sort=False):
        first = own.iloc[0]
        score = {"score_status": "an error"} if minimised else _score_fit(kept.get(key))
        rows.append(
            {name: first[name] for name in ("cell_id", "m", "d_model", "degree", "h")}
            | {"n_probes": len(own), "n_runs": own["n_seeds"].sum()}
            | {name: own[name].sum() for name in ("collapsed", "failed")}
            | score
            | _share_fit(own)
        )
    return pd.DataFrame(rows, columns=list(KINDS), dtype="object").astype(KINDS)


@per_study
def rejected_of(results: StudyResults) -> set[tuple[str, int]]:
    """The (cell_id, h) whose fitted curve misses the shares by more than the luck of seeds, at 5 %.

    The test is ``Shares.p_value``, of the deviance.
    """
    by_head = dict(list(probes_of(results).groupby(HEAD, sort=False)))
    rejected = set()
    for cell_id, h, status in transitions_of(results)[[*HEAD, "share_status"]].itertuples(
        index=False
    ):
        if status == "fitted":
            shares = shares_of(by_head[cell_id, h])
            p = shares.p_value(shares.fit())
            if p is not None and p < 1 - CONFIDENCE:
                rejected.add((cell_id, h))
    return rejected


def _score_fit(runs: pd.DataFrame | None) -> dict[str, Any]:
    """The fit to the scores of one head count's runs: columns ``top`` and ``score_*``."""
    if runs is None or runs["D_K"].nunique() < WIDTHS_OF_A_FIT:
        return {"score_status": "too few widths"}
    by_width = runs.groupby("D_K")["score"]
    y = by_width.mean().to_numpy()
    n: Array = np.asarray(by_width.count(), dtype=np.float64)
    x = np.log2(np.unique(runs["D_K"].to_numpy(dtype=np.float64)))
    curve = score_curves.fit(x, y, n)
    within = float(((runs["score"] - by_width.transform("mean")) ** 2).sum())
    is_beyond = not x.min() - 1 <= curve.middle <= x.max() + 1 or curve.width > WIDEST
    if is_beyond or not _rises(y, n, curve.at(x), within):
        return {"score_status": "flat", "top": runs["score"].median()}
    return {
        "score_status": "fitted",
        "top": curve.top,
        "score_middle": 2.0**curve.middle,
        "score_width": curve.width,
    }


def _rises(mean: Array, n: Array, curve: Array, within: float) -> bool:
    """Whether a curve explains the scores better than one score at all widths, by an F test.

    Args:
        mean: mean score at each width.
        n: number of runs at each width.
        within: sum of squares of the runs' scores about these means.
    """
    left = within + float((n * (mean - curve) ** 2).sum())
    explained = within + float((n * (mean - np.average(mean, weights=n)) ** 2).sum()) - left
    if explained <= LEAST_SUM:
        return False
    degrees = float(n.sum()) - 3
    return left == 0 or float(fdtrc(2, degrees, explained / 2 / (left / degrees))) < 0.05


def _share_fit(probes: pd.DataFrame) -> dict[str, Any]:
    """The fit to the shares of passing seeds of one head count's probes: columns ``share_*``."""
    D_K, shares = probes["D_K"].to_numpy(dtype=np.float64), shares_of(probes)
    fails, passes = D_K[shares.bad > 0], D_K[shares.good > 0]
    if not len(passes):
        return {"share_status": "never", "share_low": D_K.max()}
    if not len(fails):
        return {"share_status": "always", "share_high": D_K.min()}
    last_fail, first_pass = fails.max(), passes.min()
    if last_fail < first_pass:
        middle = np.sqrt(last_fail * first_pass)
        ends = {"share_low": last_fail, "share_high": first_pass}
        return {"share_status": "sharp", "share_middle": middle, **ends}
    if len(np.unique(D_K)) < 2:
        return {"share_status": "too few widths"}
    share = shares.good / (shares.good + shares.bad)
    if np.ptp(share) == 0 or np.corrcoef(shares.x, share)[0, 1] <= 0:
        return {"share_status": "not rising"}
    curve = shares.fit()
    low, high = shares.middle_limits(curve)
    narrowest, widest = shares.width_limits(curve)
    return {
        "share_status": "fitted",
        "share_middle": 2.0**curve.middle,
        "share_low": None if low is None else 2.0**low,
        "share_high": None if high is None else 2.0**high,
        "share_width": curve.width,
        "share_width_low": narrowest,
        "share_width_high": widest,
    }


def shares_of(probes: pd.DataFrame, width: str = "D_K") -> Shares:
    """The numbers of seeds that pass and fail, against log₂ of a column of widths."""
    good = probes["passing"].to_numpy(dtype=np.float64)
    bad = probes["n_seeds"].to_numpy(dtype=np.float64) - good
    return Shares(np.log2(probes[width].to_numpy(dtype=np.float64)), good, bad)
