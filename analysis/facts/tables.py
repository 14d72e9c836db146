"""What a study of facts found: thresholds d_vo by setting, their laws, ranks and accuracies."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from analysis import wording
from analysis.laws.scaling_laws import Law, power_law
from analysis.load import StudyResults, per_study
from analysis.records import integer, parse_certificate, real
from analysis.rows import Row, name_keys
from analysis.runs import scored
from analysis.thresholds.findings import certificate_words
from analysis.wording import plural, three_digits
from rgr_dist.problem.databases import sample_triples
from rgr_dist.study.cell import Cell
from rgr_dist.study.study import Study
from rgr_dist.theory.ranks import layer_rank_bound, triples_rank
from search.best_arm import rank

Rows = list[dict[str, Any]]

SIZES_OF_A_LAW = 3
"""Fewest sizes whose thresholds are fitted: two would leave the exponent without an interval."""
WHOLE = ("d_vo", "D_V", "D_V_low", "D_V_high", "D_V_first", "n_seeds")
THRESHOLD_KEYS = (
    "model", "database", "facts", "keys", "queries", "values", "d_model", "h", "d_qk", "d_vo",
    "D_V", "D_V_low", "D_V_high", "status", "mean_score", "n_seeds", "certificate", "max_steps",
    "confirmed", "D_V_first", "rank_low", "rank_high", "layer_rank_bound", "parameters",
)  # fmt: skip
BEST_KEYS = (
    "database", "facts", "keys", "queries", "values", "d_model", "h", "d_qk", "d_vo", "D_V",
    "D_V_low", "D_V_high", "status", "rank_low", "rank_high", "max_steps",
)  # fmt: skip


@cache
def database_rank(cell: Cell, seeds: int) -> tuple[float, float]:
    """Bounds on the rank of a cell's database (``theory.ranks``), means over its first seeds."""
    assert cell.database is not None
    drawn = {
        sample_triples(cell.database, cell.problem_json, seed).tobytes() for seed in range(seeds)
    }
    ranks = [
        triples_rank(np.frombuffer(triples, dtype=np.int32).reshape(-1, 3)) for triples in drawn
    ]
    means = np.array(ranks, dtype=np.float64).mean(axis=0).tolist()
    return means[0], means[1]


def largest_width(study: Study, cell: Cell) -> int:
    """The largest d_vo that a study searches in a cell."""
    search = study.search
    return max(search.d_vo) if search.d_vo else search.max_d_vo or cell.d_model


def layer_bound(cell: Cell, h: int, d_vo: int) -> int:
    """The largest rank of the logits of a layer (Prop. 3.5, as ``theory.ranks`` proves it)."""
    assert cell.database is not None
    shape = (cell.database.keys, cell.database.queries, cell.database.values)
    return layer_rank_bound(shape, h, d_vo, cell.d_model, cell.facts.residual)


def threshold_rows(results: StudyResults) -> Rows:
    """The threshold of every (cell, setting), in the study's order; missing values are None.

    Returns:
        ``cell_id`` and ``THRESHOLD_KEYS``, and ``D_V_fails``, the largest D_V known to fail below
        the threshold. ``rank_low`` and ``rank_high`` bound the rank of the database, means over the
        seeds; ``layer_rank_bound`` that of the logits of a layer at the threshold. ``parameters``
        are those of its heads, 2 d_model h (d_qk + d_vo).
    """
    study = results.study
    cells = {cell.cell_id: cell for cell in study.cells}
    rows = []
    for row in results.thresholds.astype("object").to_dict("records"):
        cell = cells[row["cell_id"]]
        h, d_qk = int(row["h"]), int(row["d_k"])
        d_vo = integer(row["d_vo"])
        certificate = parse_certificate(row["certificate"])
        failed = ((certificate or {}).get("fail") or {}).get("D_V")
        widths = {name: integer(row[name]) for name in WHOLE}
        if row["status"] == "censored":
            failed = h * largest_width(study, cell)
            widths["D_V_low"] = failed + h
        rows.append(
            {
                "cell_id": cell.cell_id,
                **_of_cell(cell, study),
                "h": h,
                "d_qk": d_qk,
                **widths,
                "status": row["status"],
                "mean_score": real(row["mean_score"]),
                "certificate": certificate,
                "confirmed": None if pd.isna(row["confirmed"]) else bool(row["confirmed"]),
                "layer_rank_bound": None if d_vo is None else layer_bound(cell, h, d_vo),
                "parameters": None if d_vo is None else 2 * cell.d_model * h * (d_qk + d_vo),
                "D_V_fails": failed or 0,
            }
        )
    return rows


def best_rows(rows: Rows, study: Study) -> Rows:
    """Of every cell the setting of the smallest D_V; ties go by mean score, then by the setting.

    A cell is ``open`` while one of its settings is; without a threshold it has that of a setting.

    Args:
        rows: of ``threshold_rows``.
    """
    arm = study.search.sizes.shown(study.search.sizes.arm)
    best = []
    for cell in study.cells:
        own = [row for row in rows if row["cell_id"] == cell.cell_id]
        found = [row for row in own if row["D_V"] is not None]
        first = min(
            found, key=lambda row: rank(row["D_V"], row["mean_score"], row[arm]), default=None
        )
        row = dict(first or own[0])
        if first is None:
            row |= dict.fromkeys(("h", "d_qk", "d_vo", "D_V"))
            row["D_V_low"] = min((r["D_V_low"] for r in own if r["D_V_low"]), default=None)
        if any(one["status"] == "open" for one in own):
            row["status"] = "open"
        best.append(row)
    return best


def _of_cell(cell: Cell, study: Study) -> dict[str, Any]:
    database = cell.database
    assert database is not None
    low, high = database_rank(cell, study.search.seeds)
    return {
        "model": cell.model,
        "database": database.family,
        "facts": cell.m,
        "keys": database.keys,
        "queries": database.queries,
        "values": database.values,
        "d_model": cell.d_model,
        "max_steps": cell.training.max_steps,
        "rank_low": low,
        "rank_high": high,
    }


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


def records(rows: Rows, keys: Sequence[str]) -> Rows:
    """Rows with these keys alone."""
    return [{key: row[key] for key in keys} for row in rows]


def sections(results: StudyResults) -> dict[str, Rows]:
    """The lists ``thresholds`` and ``best`` of ``rgr thresholds --format json``."""
    names, rows = results.study.cell_names, threshold_rows(results)
    lists = (
        ("thresholds", rows, THRESHOLD_KEYS),
        ("best", best_rows(rows, results.study), BEST_KEYS),
    )
    return {
        name: [
            {"cell": names[row["cell_id"]], **record}
            for row, record in zip(some, records(some, keys), strict=True)
        ]
        for name, some, keys in lists
    }


@per_study
def rows_of_facts(results: StudyResults) -> list[Row]:
    """The thresholds of a study of facts, with names and words."""
    search, rows = results.study.search, []
    for row in threshold_rows(results):
        row |= name_keys(results, row)
        row["D_V_words"] = wording.with_range(row["D_V"], row["D_V_low"], row["D_V_high"])
        row["certificate_words"] = certificate_words(
            json.dumps(row["certificate"]), search.seeds, target=search.target
        )
        low, high = row["rank_low"], row["rank_high"]
        row["rank_words"] = f"{low:,.0f}" if low == high else f"{low:,.0f} to {high:,.0f}"
        at = f"h = {row['h']}, d_qk = {row['d_qk']}"
        row["text"] = f"{row['full']}, {at}\nD_V {row['D_V_words']}, {row['status']}"
        rows.append(row)
    return rows


@per_study
def laws_of_facts(results: StudyResults) -> list[Law]:
    """The laws of D_V*."""
    return laws(rows_of_facts(results), results.study)
