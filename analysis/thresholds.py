"""From thresholds per head to D_K* and h* per cell, as in App. A.2."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from analysis.load import StudyResults
from analysis.records import integer, parse_certificate, real
from analysis.runs import scored
from rgr_dist.study.study import Cell, Study
from search.best_arm import largest_kept, rank

SIGNIFICANCE = 0.05
"""Level of the paired t-test that decides which head counts h_low and h_high span (App. A.2)."""

POOL_MARGIN = 0.10
"""Share by which a candidate's D_K may exceed D_K* (App. A.2), where that is more than one step of
its d_k."""

SAME_SCORE = 1e-12
"""Scores that differ by less are equal up to rounding."""

BEST_KINDS = {
    "cell_id": "object", "model": "object", "graph": "object", "m": "Int64", "d_model": "Int64",
    "degree": "Int64", "n_edges": "Int64", "D_K": "Int64", "D_K_low": "Int64", "D_K_high": "Int64",
    "h_star": "Int64", "h_low": "Int64", "h_high": "Int64", "d_k": "Int64", "status": "object",
    "mean_score": "float64", "n_seeds": "Int64", "certificate": "object", "max_steps": "Int64",
    "confirmed": "object", "D_K_first": "Int64",
}  # fmt: skip
POOL_KINDS = {
    "cell_id": "object", "m": "Int64", "d_model": "Int64", "degree": "Int64", "h": "Int64",
    "d_k": "Int64", "D_K": "Int64", "mean_score": "float64", "n_common": "Int64",
    "mean_difference": "float64", "p_value": "float64", "retained": "bool", "rule": "object",
}  # fmt: skip


def best_of(results: StudyResults) -> pd.DataFrame:
    """D_K* and h* of every cell of a study: ``best`` of its tables."""
    return best(results.thresholds, results.runs, results.study)


def best(thresholds: pd.DataFrame, runs: pd.DataFrame, study: Study) -> pd.DataFrame:
    """D_K* and h* of every cell of the study, in its order, with or without a threshold.

    h* is the head count with the smallest found D_K, ties broken by better mean score, then by
    fewer heads; [h_low, h_high] spans the retained heads of ``head_pool``. D_K_low is the smallest
    optimistic D_K (App. A.2) of the heads found or pruned, whose fails are tested like any other;
    D_K_high the smallest conservative D_K of those found near D_K*: neither depends on what was
    pruned. D_K_first is the smallest D_K that passes on the first seeds alone, confirmed whether
    that of h* passes on fresh ones. If no head is found, D_K, h* and d_k are null, D_K_low is the
    smallest D_K not excluded by every head (null unless every head of the study has a lower bound)
    and D_K_high the smallest known to pass.

    Returns:
        ``cell_id, model, graph, m, d_model, degree, n_edges, D_K, D_K_low, D_K_high, h_star, h_low,
        h_high, d_k, status, mean_score, n_seeds, certificate, max_steps, confirmed, D_K_first``.
        d_k, mean_score, n_seeds and certificate are those of h*'s threshold. status is the cell's:
        ``open`` while any head is open, ``inconsistent`` if an inconsistent head might have a
        smaller D_K, else ``found``, or ``censored`` if no head passes.
    """
    pool = head_pool(thresholds, runs, study)
    rows = []
    for cell, heads in _heads(thresholds, study):
        found = heads[heads["D_K"].notna()]
        row: dict[str, Any] = {
            "cell_id": cell.cell_id,
            "model": cell.model,
            "graph": cell.graph.family,
            "m": cell.m,
            "d_model": cell.d_model,
            "degree": cell.graph.degree,
            "n_edges": cell.n_edges,
            "max_steps": cell.training.max_steps,
            "confirmed": None,
            "D_K_first": _smallest(heads["D_K_first"]),
        }
        if found.empty:
            every = _has_every_head(heads, study) and bool(heads["D_K_low"].notna().all())
            row["D_K_low"] = _smallest(heads["D_K_low"]) if every else None
            row["D_K_high"] = _smallest(heads["D_K_high"])
        else:
            first = found.iloc[_best_head(found, cell.minimised)]
            retained = pool[(pool["cell_id"] == cell.cell_id) & pool["retained"]]["h"]
            row |= {name: first[name] for name in ("D_K", "d_k", "mean_score", "n_seeds")}
            row["confirmed"] = first["confirmed"]
            row |= {"h_star": first["h"], "h_low": retained.min(), "h_high": retained.max()}
            if found["D_K_low"].notna().any():
                searched = heads[heads["status"].isin(["found", "pruned"])]
                row["D_K_low"] = _smallest(searched["D_K_low"])
            row["D_K_high"] = _smallest(found[_near(found, first)]["D_K_high"])
            row["certificate"] = first["certificate"]
        row["status"] = _status(heads, found, study)
        rows.append(row)
    return _frame(rows, BEST_KINDS)


def head_pool(thresholds: pd.DataFrame, runs: pd.DataFrame, study: Study) -> pd.DataFrame:
    """The head counts near D_K*, each compared with h* on paired seeds (App. A.2).

    Candidates are the heads that pass near D_K*: at most ``POOL_MARGIN`` (10 %) above it, or one
    step of their d_k, each at its threshold, or at its smallest tested pass if it is inconsistent.
    (The paper takes heads "whose tested D_K lies within 10%"; we read this as a D_K that was tested
    and passed. A step is mostly more than 10 %, so that h* would be its own only candidate.) A
    candidate is retained if a two-sided paired t-test on the scores of the common seeds gives
    p > 0.05. Where no test is possible, ``rule`` says what decided:

    - ``best``: it is h* itself;
    - ``identical``: the score vectors are equal: no difference, retained;
    - ``constant gap``: every difference is the same non-zero number: certain, not retained;
    - ``too few seeds``: fewer than two common seeds: no evidence, retained.

    Returns:
        ``cell_id, m, d_model, degree, h, d_k, D_K, mean_score, n_common, mean_difference, p_value,
        retained, rule``; mean_difference is the candidate's score minus h*'s.
    """
    good = scored(runs, study)
    rows_of_probe = good.groupby(["cell_id", "h", "d_k"], sort=False).indices
    score, seed = good["score"].to_numpy(), good["seed"].to_numpy()

    def scores(cell: Cell, head: pd.Series[Any]) -> pd.Series[Any]:
        """The scores of a head's probe, by seed."""
        at = rows_of_probe.get((cell.cell_id, head["h"], head["d_k"]), [])
        return pd.Series(score[at], index=seed[at], dtype="float64")

    rows = []
    for cell, heads in _heads(thresholds, study):
        found = heads[heads["D_K"].notna()].reset_index(drop=True)
        if found.empty:
            continue
        first = found.iloc[_best_head(found, cell.minimised)]
        reference = scores(cell, first)
        passing = _passing(heads)
        for _, head in passing[_near(passing, first)].sort_values("h").iterrows():
            own = scores(cell, head)
            seeds = own.index.intersection(reference.index)
            gap = (own.loc[seeds] - reference.loc[seeds]).to_numpy(dtype=np.float64)
            if head["h"] == first["h"]:
                rule, p_value, retained = "best", None, True
            else:
                rule, p_value, retained = _compare(gap)
            rows.append(
                {
                    "cell_id": cell.cell_id,
                    "m": cell.m,
                    "d_model": cell.d_model,
                    "degree": cell.graph.degree,
                    **{name: head[name] for name in ("h", "d_k", "D_K", "mean_score")},
                    "n_common": len(seeds),
                    "mean_difference": float(gap.mean()) if len(gap) else None,
                    "p_value": p_value,
                    "retained": retained,
                    "rule": rule,
                }
            )
    return _frame(rows, POOL_KINDS)


def _compare(gap: npt.NDArray[np.float64]) -> tuple[str, float | None, bool]:
    """Rule, p-value and verdict for a candidate's paired score differences."""
    if len(gap) < 2:
        return "too few seeds", None, True
    if np.all(np.abs(gap) <= SAME_SCORE):
        return "identical", None, True
    if np.ptp(gap) <= SAME_SCORE:
        return "constant gap", None, False
    p_value = float(stats.ttest_rel(gap, np.zeros_like(gap)).pvalue)
    return "paired t-test", p_value, p_value > SIGNIFICANCE


def _near(heads: pd.DataFrame, first: pd.Series[Any]) -> list[bool]:
    """Which heads' widths are near that of the best one."""
    best_cost, widths = int(first["D_K"]), zip(heads["h"], heads["d_k"], strict=True)
    return [int(d_k) <= largest_kept(best_cost, int(h), POOL_MARGIN) for h, d_k in widths]


def _heads(thresholds: pd.DataFrame, study: Study) -> Iterator[tuple[Cell, pd.DataFrame]]:
    """Each cell's threshold rows for the study's heads, sorted by h, with nullable integers."""
    columns = ["h", "d_k", "D_K", "D_K_low", "D_K_high", "n_seeds", "D_K_first"]
    kinds = dict.fromkeys(columns, "Int64") | {"mean_score": "float64"}
    ours = thresholds[thresholds["h"].map(study.search.lists).astype(bool)]
    ours = ours.astype(kinds).sort_values("h", kind="stable")
    at = ours.groupby("cell_id", sort=False).indices
    for cell in study.cells:
        yield cell, ours.iloc[at.get(cell.cell_id, [])].reset_index(drop=True)


def _passing(heads: pd.DataFrame) -> pd.DataFrame:
    """The heads known to pass, each with the width at which it does."""
    passing = heads.copy()
    for i in passing.index[passing["status"] == "inconsistent"]:
        shown = (parse_certificate(passing.at[i, "certificate"]) or {}).get("pass") or {}
        for name in ("d_k", "D_K", "mean_score"):
            passing.at[i, name] = shown.get(name)
    return passing[passing["D_K"].notna()]


def _best_head(found: pd.DataFrame, minimised: bool) -> int:
    """Row of h*, as ``search.best_arm.rank`` has it."""

    def rank_of(i: int) -> tuple[int, float, int]:
        row = found.iloc[i]
        return rank(int(row["D_K"]), real(row["mean_score"]), int(row["h"]), minimised)

    return min(range(len(found)), key=rank_of)


def _smallest(values: pd.Series[Any]) -> int | None:
    return integer(values.min()) if values.notna().any() else None


def _has_every_head(heads: pd.DataFrame, study: Study) -> bool:
    """Whether every listed head has a row; under ``heads: all``, whether any head was tried."""
    searched = study.search.heads
    return len(heads) > 0 if searched == "all" else len(heads) == len(searched)


def _status(heads: pd.DataFrame, found: pd.DataFrame, study: Study) -> str:
    if not _has_every_head(heads, study) or (heads["status"] == "open").any():
        return "open"
    doubtful = heads[heads["status"] == "inconsistent"]["D_K_low"]
    if found.empty:
        return "inconsistent" if len(doubtful) else "censored"
    undercut = doubtful.isna() | (doubtful < found["D_K"].min())
    return "inconsistent" if undercut.any() else "found"


def _frame(rows: Iterable[dict[str, Any]], kinds: dict[str, str]) -> pd.DataFrame:
    frame = pd.DataFrame(list(rows), columns=list(kinds), dtype="object")
    return frame.astype({name: kind for name, kind in kinds.items() if kind != "object"})
