"""How sharp the passage from failing to passing is, and whether it is the same in every cell.

Seeds are paired, so the probes of a cell are not independent of each other, and a search trains
most seeds near the threshold: fits describe these runs, and the seeds of a study decide its
verdicts.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, fdtrc

from analysis.laws.candidates import predict
from analysis.laws.fits import Fits, fits_of
from analysis.laws.interval_likelihood import Array
from analysis.load import StudyResults, per_study
from analysis.rows import Row, name_keys, rows_of
from analysis.runs import asked, scored
from analysis.transitions import logistic, score_curves
from analysis.transitions.curves import PROBE, curves
from rgr_dist.study.study import Study

COLLAPSED = 0.5
"""A run collapsed if it diverged or scores less than this share of its probe's median."""

WIDTHS_OF_A_FIT = 4
"""Fewest key widths at which a curve of three unknowns is fitted to the scores."""

WIDEST = 3.0
"""Width, in doublings of D_K, from which a curve of scores is called flat."""

LEAST_SUM = 1e-12
"""Squares of scores from 0 to 1 that sum up to no more than this are rounding."""

HEAD = ["cell_id", "h"]

PROBE_KINDS = {
    "passing": "int64", "diverged": "int64", "collapsed": "int64", "failed": "int64",
    "mean_low": "float64", "mean_high": "float64",
}  # fmt: skip
TRANSITION_KINDS = {
    "cell_id": "object", "m": "int64", "d_model": "int64", "degree": "int64", "h": "int64",
    "n_probes": "int64", "n_runs": "int64", "collapsed": "int64", "failed": "int64",
    "score_status": "object", "top": "float64", "score_middle": "float64",
    "score_width": "float64", "share_status": "object", "share_middle": "float64",
    "share_low": "float64", "share_high": "float64", "share_width": "float64",
    "share_width_low": "float64", "share_width_high": "float64",
}  # fmt: skip


def probes(runs: pd.DataFrame, study: Study) -> pd.DataFrame:
    """One row per probe: ``analysis.transitions.curves.curves`` and what its mean leaves out.

    Returns:
        The columns of ``curves`` (``mean_score`` is of the ``n_seeds`` that ran, and of all seeds
        only where ``complete``); ``mean_low, mean_high``, what the mean over all seeds can at
        worst and at best be, equal where complete, null where an error has no bound; ``passing``,
        the seeds whose own score reaches the target; ``diverged``; ``collapsed``, the runs that
        diverged or score less than half the probe's median; ``failed``, runs that could not be
        trained.
    """
    table = curves(runs, study)
    good = scored(runs, study, every_seed=True)
    minimised = study.cells[0].minimised
    score = good["score"]
    reaches = score <= study.search.target if minimised else score >= study.search.target
    diverged = good["stop_reason"] == "diverged"
    counts = (
        good.assign(passing=reaches, diverged=diverged, collapsed=_collapsed(good, minimised))
        .groupby(PROBE, sort=False)[["passing", "diverged", "collapsed"]]
        .sum()
    )
    tries = asked(runs, study)
    lost = tries[tries["stop_reason"] == "failed"].groupby(PROBE, sort=False).size()
    keys = pd.MultiIndex.from_frame(table[PROBE])
    total = table["mean_score"] * table["n_seeds"]
    seeds = table["n_seeds"].clip(lower=study.search.seeds)
    missing = seeds - table["n_seeds"]
    highest = (total + missing) / seeds
    return table.assign(
        passing=counts["passing"].reindex(keys).to_numpy(),
        diverged=counts["diverged"].reindex(keys).to_numpy(),
        collapsed=counts["collapsed"].reindex(keys).to_numpy(),
        failed=lost.reindex(keys, fill_value=0).to_numpy(),
        mean_low=total / seeds,
        mean_high=highest.where(missing == 0, np.nan) if minimised else highest,
    ).astype(PROBE_KINDS)


def mean_words(row: Any) -> str:
    """The mean of a probe with what it is of: ``0.5648, of 2 of 10 seeds``.

    Args:
        row: of ``probes``; its ``complete`` says whether every seed ran.
    """
    mean = f"{row['mean_score']:.4f}"
    if row["complete"]:
        return f"{mean}, of {row['n_seeds']} seeds"
    ran = "one seed" if row["n_seeds"] == 1 else f"{row['n_seeds']} seeds"
    seeds = f"{mean}, of the {ran} that ran"
    return (
        seeds if pd.isna(row["mean_high"]) else f"{seeds}; of all, at most {row['mean_high']:.4f}"
    )


def transitions(
    runs: pd.DataFrame, study: Study, table: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Logistic fits for each head count of each cell, in log₂ D_K.

    *Score:* least squares of every run's score on top / (1 + exp(-(log₂ D_K - middle) / width));
    collapsed runs are left out and counted. *Share of passing seeds:* binomial maximum likelihood
    of 1 / (1 + exp(-(log₂ D_K - middle) / width)). A middle is told as a D_K, a width in doublings.

    Args:
        table: of ``probes``; computed if not given.

    Returns:
        ``cell_id, m, d_model, degree, h, n_probes, n_runs, collapsed, failed``; ``score_status``:
        ``fitted``, with ``top`` (the plateau), ``score_middle, score_width``; ``flat``, where no
        rise lies within a doubling of the widths that ran, or the curve explains the scores no
        better than one score at all widths (F test over runs, 5 %, which takes them for
        independent), with the median score as ``top``; ``too few widths``; ``an error``.
        ``share_status``: ``fitted``, with ``share_middle``, its 95 % profile-likelihood limits
        ``share_low, share_high``, null where the probes set none, and ``share_width`` with
        ``share_width_low, share_width_high``; ``sharp``, where every seed fails up to share_low
        and passes from share_high on; ``never``; ``always``; ``not rising``; ``too few widths``.
    """
    table = probes(runs, study) if table is None else table
    scores = _score_fits(runs, study)
    D_K, good, ran = (
        table[name].to_numpy(dtype=np.float64) for name in ("D_K", "passing", "n_seeds")
    )
    counts = table[["n_seeds", "collapsed", "failed"]].to_numpy()
    rows = []
    for key, at in table.groupby(HEAD, sort=False).indices.items():
        first = table.iloc[at[0]]
        n_runs, collapsed, failed = counts[at].sum(axis=0).tolist()
        rows.append(
            {
                **{name: first[name] for name in ("cell_id", "m", "d_model", "degree", "h")},
                "n_probes": len(at),
                "n_runs": n_runs,
                "collapsed": collapsed,
                "failed": failed,
                **scores.get(key, {"score_status": "too few widths"}),
                **_share_fit(D_K[at], good[at], ran[at] - good[at]),
            }
        )
    frame = pd.DataFrame(rows, columns=list(TRANSITION_KINDS), dtype="object")
    return frame.astype({k: kind for k, kind in TRANSITION_KINDS.items() if kind != "object"})


def _collapsed(scored_runs: pd.DataFrame, minimised: bool) -> pd.Series[bool]:
    """Which runs diverged or score less than a share of their probe's median."""
    diverged = scored_runs["stop_reason"] == "diverged"
    if minimised:
        return diverged
    median = scored_runs.groupby(PROBE, sort=False)["score"].transform("median")
    return diverged | (scored_runs["score"] < COLLAPSED * median)


def _score_fits(runs: pd.DataFrame, study: Study) -> dict[Any, dict[str, Any]]:
    """The fits to scores by (cell_id, h): columns ``top`` and ``score_*``."""
    own = scored(runs, study, every_seed=True)
    minimised = study.cells[0].minimised
    if minimised:
        heads = own.groupby(HEAD, sort=False).indices
        return {key: {"score_status": "an error"} for key in heads}
    kept = own[~_collapsed(own, minimised)]
    means = kept.groupby([*HEAD, "D_K"], sort=False)["score"].agg(["size", "mean"]).reset_index()
    heads = means.groupby(HEAD, sort=False).indices
    heads = {key: at for key, at in heads.items() if len(at) >= WIDTHS_OF_A_FIT}
    if not heads:
        return {}
    x, y, weight = np.zeros((3, len(heads), max(map(len, heads.values()))))
    for i, at in enumerate(heads.values()):
        part = means.iloc[at]
        x[i, : len(at)] = np.log2(part["D_K"].to_numpy(dtype=np.float64))
        y[i, : len(at)], weight[i, : len(at)] = part["mean"], part["size"]
    curves = score_curves.fit(x, y, weight)
    medians = kept.groupby(HEAD, sort=False)["score"].median().to_dict()
    within = kept["score"] - kept.groupby([*HEAD, "D_K"], sort=False)["score"].transform("mean")
    spreads = within.pow(2).groupby([kept[name] for name in HEAD], sort=False).sum().to_dict()
    found: dict[Any, dict[str, Any]] = {}
    for i, (key, at) in enumerate(heads.items()):
        widths, at_width, n = x[i, : len(at)], y[i, : len(at)], weight[i, : len(at)]
        top, middle, width = (float(part[i]) for part in (curves.top, curves.middle, curves.width))
        curve = top * expit((widths - middle) / width)
        is_beyond = not widths.min() - 1 <= middle <= widths.max() + 1 or width > WIDEST
        if is_beyond or not _rises(at_width, n, curve, spreads[key]):
            found[key] = {"score_status": "flat", "top": medians[key]}
            continue
        found[key] = {
            "score_status": "fitted",
            "top": top,
            "score_middle": 2.0**middle,
            "score_width": width,
        }
    return found


def _rises(mean: Array, n: Array, curve: Array, within: float) -> bool:
    """Whether a curve explains the scores better than one score at all widths, by an F test.

    Args:
        mean: score at each width.
        n: how many runs it is of.
        within: squares of the runs' scores about these means, summed.
    """
    left = within + float((n * (mean - curve) ** 2).sum())
    explained = within + float((n * (mean - np.average(mean, weights=n)) ** 2).sum()) - left
    if explained <= LEAST_SUM:
        return False
    degrees = float(n.sum()) - 3
    return left == 0 or float(fdtrc(2, degrees, explained / 2 / (left / degrees))) < 0.05


def _share_fit(D_K: Array, good: Array, bad: Array) -> dict[str, Any]:
    """The fit to the shares of passing seeds of one head count's probes: columns ``share_*``."""
    if not good.any():
        return {"share_status": "never", "share_low": float(D_K.max())}
    if not bad.any():
        return {"share_status": "always", "share_high": float(D_K.min())}
    last_fail, first_pass = float(D_K[bad > 0].max()), float(D_K[good > 0].min())
    if last_fail < first_pass:
        middle = float(np.sqrt(last_fail * first_pass))
        ends = {"share_low": last_fail, "share_high": first_pass}
        return {"share_status": "sharp", "share_middle": middle, **ends}
    if len(np.unique(D_K)) < 2:
        return {"share_status": "too few widths"}
    x, share = np.log2(D_K), good / (good + bad)
    if np.ptp(share) == 0 or np.corrcoef(x, share)[0, 1] <= 0:
        return {"share_status": "not rising"}
    curve = logistic.fit(x, good, bad)
    low, high = logistic.middle_limits(x, good, bad, curve)
    narrowest, widest = logistic.width_limits(x, good, bad, curve)
    return {
        "share_status": "fitted",
        "share_middle": 2.0**curve.middle,
        "share_low": None if low is None else 2.0**low,
        "share_high": None if high is None else 2.0**high,
        "share_width": curve.width,
        "share_width_low": narrowest,
        "share_width_high": widest,
    }


@dataclass(frozen=True, kw_only=True)
class Collapse:
    """How well the cells' transitions lie on one curve when D_K is divided by a law.

    The curve is a logistic one in log₂(D_K / law) of the share of passing seeds at h*, common to
    all cells; ``deviance`` is twice what its log-likelihood lacks of that of the observed shares.

    Attributes:
        law: the candidate's name; ``own D_K*`` divides by each cell's own threshold: what is left
            then is how far the transitions differ in width, and what pairing of seeds does.
        reduced_chi2: deviance over degrees of freedom: near 1 where seeds explain all of it.
        middle: D_K / law at which half of the seeds pass.
        width: in doublings; the curve rises from 12 % to 88 % over four of them.
        points: ``cell_id, m, d_model, degree, h, D_K, scaled, n_seeds, passing, share, mean_score,
            complete, collapsed, failed``; scaled is D_K / law.
    """

    law: str
    formula: str
    n_cells: int
    n_probes: int
    deviance: float
    degrees: int
    middle: float
    width: float
    points: pd.DataFrame = dataclasses.field(repr=False)

    @property
    def reduced_chi2(self) -> float:
        """Deviance over degrees of freedom."""
        return self.deviance / self.degrees

    def to_json(self) -> dict[str, Any]:
        """The collapse as JSON-ready values, without its points."""
        own = {
            f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "points"
        }
        return own | {"reduced_chi2": self.reduced_chi2}


OWN = "own D_K*"


def collapses(table: pd.DataFrame, fits: Fits) -> list[Collapse]:
    """The collapse under each cell's own threshold, then under each law that was fitted.

    Args:
        table: of ``probes``.
    """
    cells = fits.cells[fits.cells["D_K"].notna()]
    keys = cells.assign(h=cells["h_star"].astype("int64"))[["cell_id", "h"]]
    own = table.merge(keys, on=["cell_id", "h"])
    if len(cells) < 2 or own.empty:
        return []
    laws = {OWN: ("each cell's own D_K*", cells["D_K"].to_numpy(dtype=np.float64))}
    for candidate in fits.candidates:
        if candidate.status == "fitted":
            at = predict(candidate, fits.cells, cells)[0]
            laws[candidate.name] = (candidate.formula, at)
    found = []
    for law, (formula, values) in laws.items():
        by_cell = dict(zip(cells["cell_id"], values, strict=True))
        points = own.assign(
            scaled=own["D_K"] / own["cell_id"].map(by_cell), share=own["passing"] / own["n_seeds"]
        )
        one = _collapse(law, formula, points)
        if one is not None:
            found.append(one)
    return found


def _collapse(law: str, formula: str, points: pd.DataFrame) -> Collapse | None:
    x = np.log2(points["scaled"].to_numpy(dtype=np.float64))
    good = points["passing"].to_numpy(dtype=np.float64)
    bad = points["n_seeds"].to_numpy(dtype=np.float64) - good
    degrees = len(points) - 2
    if degrees < 1 or not good.any() or not bad.any() or np.ptp(x) == 0:
        return None

    curve = logistic.fit(x, good, bad)
    columns = "cell_id m d_model degree h D_K scaled n_seeds passing share mean_score complete"
    return Collapse(
        law=law,
        formula=formula,
        n_cells=int(points["cell_id"].nunique()),
        n_probes=len(points),
        deviance=curve.deviance,
        degrees=degrees,
        middle=2.0**curve.middle,
        width=curve.width,
        points=points[[*columns.split(), "collapsed", "failed"]].reset_index(drop=True),
    )


@per_study
def probes_of(results: StudyResults) -> pd.DataFrame:
    """Mean score of every probe of a study, and what it leaves out."""
    return probes(results.searched, results.study)


@per_study
def transitions_of(results: StudyResults) -> pd.DataFrame:
    """Logistic fits of the transition of every (cell, h) of a study."""
    return transitions(results.searched, results.study, probes_of(results))


@per_study
def collapses_of(results: StudyResults) -> list[Collapse]:
    """The transitions of all cells of a study at h*, over D_K divided by each law."""
    return collapses(probes_of(results), fits_of(results))


@per_study
def probe_rows_of(results: StudyResults) -> list[Row]:
    """The rows of ``probes`` with names and words."""
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
