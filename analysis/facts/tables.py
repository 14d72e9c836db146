"""What a study of facts found: thresholds d_vo by setting, their laws, ranks and accuracies."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from rgr_dist.analysis import wording
from rgr_dist.analysis.laws.scaling_laws import Law, power_law
from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.analysis.rows import Row, name_keys
from rgr_dist.analysis.runs import scored
from rgr_dist.analysis.thresholds.best import largest_width
from rgr_dist.analysis.thresholds.database_ranks import layer_bound
from rgr_dist.analysis.thresholds.listing import threshold_records
from rgr_dist.analysis.wording import plural, three_digits
from rgr_dist.study.cell import Cell
from rgr_dist.study.study import Study

Rows = list[dict[str, Any]]

SIZES_OF_A_LAW = 3
"""Fewest sizes whose thresholds are fitted: two would leave the exponent without an interval."""


@per_study
def rows_of_facts(results: StudyResults) -> list[Row]:
    """The records of every (cell, setting) of a study of facts, with names and words.

    ``D_V_fails`` is the largest D_V known to fail below the threshold; 0 if none is.
    """
    rows, table = [], results.thresholds.to_dict("records")
    for row, stored in zip(threshold_records(results), table, strict=True):
        row["cell_id"] = stored["cell_id"]
        failed = ((row["certificate"] or {}).get("fail") or {}).get("D_V")
        if row["status"] == "censored":
            failed = row["D_V_low"] - row["h"]
        row["D_V_fails"] = failed or 0
        row |= name_keys(results, row)
        row["D_V_words"] = wording.with_range(row["D_V"], row["D_V_low"], row["D_V_high"])
        low, high = row["rank_low"], row["rank_high"]
        row["rank_words"] = f"{low:,.0f}" if low == high else f"{low:,.0f} to {high:,.0f}"
        at = f"h = {row['h']}, d_qk = {row['d_qk']}"
        row["text"] = f"{row['full']}, {at}\nD_V {row['D_V_words']}, {row['status']}"
        rows.append(row)
    return rows


def laws(rows: Rows, study: Study) -> list[Law]:
    """Power laws of D_V* on the number of facts, and on the rank bound of their database.

    One of each family of databases at each setting, and one of all families there.

    Cells of the training, settings of facts and d_model that most have; each counts with the
    interval from its failing to its passing D_V, open above where censored. Fewer than
    ``SIZES_OF_A_LAW`` sizes with a threshold have no law.
    """
    sizes = study.search.sizes
    arm = sizes.shown(sizes.arm)
    frame = pd.DataFrame(rows)
    usual = [cell.cell_id for cell in study.cells if _is_usual(cell, study)]
    frame = frame[frame["cell_id"].isin(usual) & frame["status"].isin(["found", "censored"])]
    frame = frame.assign(
        D_V_passes=frame["D_V"].astype("float64").fillna(math.inf),
        D_V_fails=frame["D_V_fails"].astype("float64"),
    )
    fitted = []
    arms = () if study.search.arms == "all" else study.search.arms
    families = list(dict.fromkeys(frame["database"]))
    groups: list[str | None] = [None, *families] if len(families) > 1 else [None]
    predictors = (
        ("facts", "number of facts", "facts"),
        ("rank", "rank bound of the database", "rank_high"),
    )
    for setting, family in itertools.product(arms, groups):
        own = frame[frame[arm] == setting]
        where, name_of = f"{arm} = {setting}", f"{arm}={setting}"
        if family is not None:
            own = own[own["database"] == family]
            where, name_of = f"{where}, {family}", f"{name_of}_{family}"
        for name, predictor, column in predictors:
            if own.loc[own["status"] == "found", column].nunique() < SIZES_OF_A_LAW:
                continue
            ends = ("D_V_fails", "D_V_passes")
            law = power_law(f"D_V_{name}_{name_of}", ("D_V*", predictor), where, own, column, ends)
            fitted.append(law)
    return fitted


def headline(rows: Rows, study: Study) -> str:
    """The finding of a study in a sentence."""
    found = [row for row in rows if row["d_vo"] is not None]
    if not found:
        return "No threshold was found."
    arm = study.search.sizes.shown(study.search.sizes.arm)
    low, high = (choose(found, key=lambda row: row["D_V"]) for choose in (min, max))
    ends = [f"{row['D_V']} for {row['facts']:,} facts at {arm} = {row[arm]}" for row in (low, high)]
    return (
        f"{len(found)} of {plural(len(rows), 'threshold')} found; the smallest D_V goes from "
        f"{ends[0]} to {ends[1]}."
    )


def grid_runs(study: Study) -> int:
    """Runs of a full grid: every width up to its limit in every setting, with every seed."""
    limits = [largest_width(study, cell) for cell in study.cells]
    return sum(limits) * len(study.search.arms) * study.search.seeds


def grid_seconds(study: Study, runs: pd.DataFrame) -> float | None:
    """About what a full grid takes of one core, at the mean time of each cell's stored runs."""
    seconds = runs[runs["seconds"] > 0].groupby("cell_id")["seconds"].mean()
    if not set(seconds.index) >= {cell.cell_id for cell in study.cells}:
        return None
    each = len(study.search.arms) * study.search.seeds
    return sum(
        largest_width(study, cell) * each * float(seconds[cell.cell_id]) for cell in study.cells
    )


def growth(fitted: Sequence[Law]) -> list[str]:
    """How D_V* grows, a sentence for each law."""
    said = []
    for law in fitted:
        if law.exponent is None:
            said.append(f"No law of D_V* on the {law.predictor} at {law.cells}: {law.reason}.")
            continue
        ends = f"{three_digits(law.exponent_low)} to {three_digits(law.exponent_high)}"
        censored = f", {law.n_censored} of them censored" if law.n_censored else ""
        scatter = f"{math.expm1(law.scatter or 0.0):.0%}"
        said.append(
            f"At {law.cells}, D_V* grows as the {law.predictor} to the power "
            f"{three_digits(law.exponent)} (95 % profile limits {ends}, "
            f"{plural(law.n, 'cell')}{censored}); the cells scatter by {scatter} about it."
        )
    return said


def _is_usual(cell: Cell, study: Study) -> bool:
    """Whether a cell has the training, the settings of facts and the d_model of most cells."""
    protocols = [(one.training, one.facts, one.d_model) for one in study.cells]
    usual = max(protocols, key=protocols.count)
    return (cell.training, cell.facts, cell.d_model) == usual


@per_study
def runs(results: StudyResults) -> Rows:
    """The scored runs of the study's search, with the bound on the rank of their logits.

    Returns:
        ``cell_id, h, d_qk, d_vo, D_V, seed, score, argmax_accuracy, softmax_accuracy, rank_logits,
        rank_argmax, rank_bound, by_tau``: the last a list of (tau, accuracy, rank).
    """
    study = results.study
    cells = {cell.cell_id: cell for cell in study.cells}
    rows = []
    for row in scored(results.searched, study).astype("object").to_dict("records"):
        if pd.isna(row["rank_logits"]):
            continue
        h, d_vo = int(row["h"]), int(row["d_vo"])
        rows.append(
            {
                "cell_id": row["cell_id"],
                "h": h,
                "d_qk": int(row["d_k"]),
                "d_vo": d_vo,
                "D_V": h * d_vo,
                "seed": int(row["seed"]),
                "score": float(row["score"]),
                "argmax_accuracy": float(row["argmax_accuracy"]),
                "softmax_accuracy": float(row["softmax_accuracy"]),
                "rank_logits": int(row["rank_logits"]),
                "rank_argmax": int(row["rank_argmax"]),
                "rank_bound": layer_bound(cells[row["cell_id"]], h, d_vo),
                "by_tau": json.loads(row["by_tau"]),
            }
        )
    return rows


def by_tau(rows: Rows) -> Rows:
    """Means over runs at each tau: accuracy, rank of softmax≥tau(L), and that rank over L's own.

    Args:
        rows: of ``runs``.
    """
    taus = sorted({tau for row in rows for tau, _, _ in row["by_tau"]})
    told = []
    for tau in taus:
        at = [(row, a, r) for row in rows for t, a, r in row["by_tau"] if t == tau]
        told.append(
            {
                "tau": tau,
                "accuracy": float(np.mean([a for _, a, _ in at])),
                "rank": float(np.mean([r for _, _, r in at])),
                "above_bound": sum(r > row["rank_bound"] for row, _, r in at),
                "gap": float(np.mean([abs(r - row["rank_logits"]) for row, _, r in at])),
                "n": len(at),
            }
        )
    return told


@per_study
def laws_of_facts(results: StudyResults) -> list[Law]:
    """The laws of D_V*."""
    return laws(rows_of_facts(results), results.study)


def pooled_laws(results: StudyResults) -> list[Law]:
    """The laws of all families of databases together, where there is one setting."""
    if len(results.study.search.arms) > 1:
        return []
    return [law for law in laws_of_facts(results) if ", " not in law.cells]
