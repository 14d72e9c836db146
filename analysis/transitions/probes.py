"""Score against D_K: one row per probe, with the t-interval over its seeds (App. A.2)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.analysis.rows import Row, name_keys, rows_of
from rgr_dist.analysis.runs import asked, scored
from rgr_dist.search.seed_test import t_interval

PROBE = ["cell_id", "m", "d_model", "degree", "h", "d_k", "D_K"]
"""Columns that identify a probe."""

COLLAPSED = 0.5
"""A run collapsed if it diverged or scores less than this share of its probe's median."""


@per_study
def probes_of(results: StudyResults) -> pd.DataFrame:
    """Mean score against width, one row per probe of the search, in the order (cell, h, d_k).

    Returns:
        ``cell_id, m, d_model, degree, h, d_k, D_K, n_seeds, mean_score, low, high, steps, seconds,
        complete``: low and high bound the 95 % t-interval and are null for a single seed; steps
        (contexts) and seconds (wall time) are summed over seeds; complete says whether all
        ``search.seeds`` ran. Where a pass lies below a fail, ``search.extra_seeds`` adds more;
        near a threshold, ``search.transition_seeds`` does.

        ``passing``, the seeds whose own score reaches the target; ``diverged``; ``collapsed``, the
        runs that diverged or score less than half the probe's median; ``failed``, runs that could
        not be trained; ``mean_low, mean_high``, the least and the greatest that the mean over all
        seeds can be: equal where complete; mean_high is null for an incomplete mean error.
    """
    runs, study = results.searched, results.study
    minimised, target = study.record.minimised, study.search.target
    good = scored(runs, study)
    reaches = good["score"] <= target if minimised else good["score"] >= target
    good = good.assign(
        passing=reaches,
        diverged=good["stop_reason"] == "diverged",
        collapsed=collapsed(good, minimised),
    )
    by_probe = good.groupby(PROBE, sort=False)
    table = by_probe[["steps", "seconds", "passing", "diverged", "collapsed"]].sum()
    scores = by_probe["score"].agg(list)
    n_seeds = scores.map(len).astype("int64")
    ends = [t_interval(own) or (np.nan, np.nan) for own in scores]
    mean = scores.map(np.mean).astype("float64")
    tries = asked(runs, study)
    lost = tries[tries["stop_reason"] == "failed"].groupby(PROBE, sort=False).size()
    missing = (study.search.seeds - n_seeds).clip(lower=0)
    total, seeds = mean * n_seeds, n_seeds + missing
    highest = (total + missing) / seeds
    columns = ["n_seeds", "mean_score", "low", "high", "steps", "seconds", "complete"]
    columns += ["passing", "diverged", "collapsed", "failed", "mean_low", "mean_high"]
    counts = dict.fromkeys(["steps", "passing", "diverged", "collapsed", "failed"], "int64")
    return (
        table.assign(
            n_seeds=n_seeds,
            mean_score=mean,
            low=[low for low, _ in ends],
            high=[high for _, high in ends],
            complete=missing == 0,
            failed=lost.reindex(table.index, fill_value=0),
            mean_low=total / seeds,
            mean_high=highest.where(missing == 0, np.nan) if minimised else highest,
        )
        .astype(counts | dict.fromkeys(["seconds", "low", "high"], "float64"))[columns]
        .reset_index()
        .astype(dict.fromkeys(PROBE[1:], "int64"))
    )


def collapsed(scored_runs: pd.DataFrame, minimised: bool) -> pd.Series[bool]:
    """Which runs diverged, or scored less than half their probe's median and were not given up."""
    diverged = scored_runs["stop_reason"] == "diverged"
    if minimised:
        return diverged
    median = scored_runs.groupby(PROBE, sort=False)["score"].transform("median")
    is_low = scored_runs["score"] < COLLAPSED * median
    return diverged | (is_low & (scored_runs["stop_reason"] != "given_up"))


def mean_words(row: Any) -> str:
    """A probe's mean and its seeds: ``0.5648, of the 2 seeds that ran; of all, at most 0.9130``.

    Args:
        row: of ``probes_of``; its ``complete`` says whether every seed ran.
    """
    mean = f"{row['mean_score']:.4f}"
    if row["complete"]:
        return f"{mean}, of {row['n_seeds']} seeds"
    ran = "one seed" if row["n_seeds"] == 1 else f"{row['n_seeds']} seeds"
    seeds = f"{mean}, of the {ran} that ran"
    return (
        seeds if pd.isna(row["mean_high"]) else f"{seeds}; of all, at most {row['mean_high']:.4f}"
    )


@per_study
def probe_rows_of(results: StudyResults) -> list[Row]:
    """The rows of ``probes_of`` with names and words."""
    rows = []
    for row in rows_of(probes_of(results)):
        row |= name_keys(results, row)
        mean = mean_words(row)
        if row["complete"] and row["low"] is not None:
            mean += f" [{row['low']:.4f} to {row['high']:.4f}]"
        lost = [f"{row[name]} {name}" for name in ("collapsed", "diverged", "failed") if row[name]]
        row["text"] = "\n".join(
            [
                f"h = {row['h']}, d_k = {row['d_k']}, D_K = {row['D_K']}",
                f"mean {mean}",
                *([", ".join(lost)] if lost else []),
            ]
        )
        rows.append(row)
    return rows
