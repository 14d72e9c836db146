"""Thresholds as JSON-ready records: the lists that ``rgr thresholds --format json`` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.records import graph_bits_per_parameter, parse_certificate
from rgr_dist.analysis.rows import rows_of
from rgr_dist.analysis.thresholds.best_heads import best_of, with_bounds

Record = dict[str, Any]

SINCE = ("status", "mean_score", "n_seeds", "certificate", "max_steps", "confirmed")


def threshold_records(results: StudyResults) -> list[Record]:
    """One record per (cell, setting), with the name of the ``cell``; missing values are None.

    For relations: ``model, graph, degree, m, d_model``; the sizes ``h, d_k, D_K, D_K_low,
    D_K_high``; ``status, mean_score, n_seeds, certificate, max_steps, confirmed, D_K_first,
    bits_per_parameter``. For facts,
    ``OF_FACTS`` replaces the keys from graph to d_model, and the bounds on ranks, the
    and the ``parameters`` of the heads replace those after ``D_V_first``.
    """
    axis, table = results.study.search.sizes, results.thresholds
    shared = (*axis.keys, *SINCE, axis.first)
    if axis.value == "d_k":
        graph = ("graph", "degree", "m", "d_model")
        keys = ("model", *graph, *shared, "bits_per_parameter")
    else:
        ranks = ("rank_low", "rank_high", "layer_rank_bound", "parameters")
        keys = ("model", *OF_FACTS, *shared, *ranks)
        table = with_bounds(table, results.study)
    return _records(results, table, keys)


OF_FACTS = ("database", "facts", "keys", "queries", "values", "d_model")


def best_records(results: StudyResults) -> list[Record]:
    """One record per cell, with the name of the ``cell``; missing values are None.

    For relations: ``m, d_model, degree, D_K, D_K_low, D_K_high, h_star, h_low, h_high, d_k,
    max_steps, confirmed, D_K_first, bits_per_parameter``. For facts:
    ``OF_FACTS``, the sizes of the best setting, ``status, rank_low, rank_high, max_steps``.
    """
    axis = results.study.search.sizes
    if axis.value == "d_k":
        keys: tuple[str, ...] = (
            "m", "d_model", "degree", axis.total, axis.low, axis.high, "h_star", "h_low", "h_high",
            "d_k", "max_steps", "confirmed", axis.first, "bits_per_parameter",
        )  # fmt: skip
        return _records(results, best_of(results), keys)
    best = best_of(results).rename(columns={axis.best_arm: axis.arm})
    for size, width in axis.fixed:
        best[size] = pd.Series(width, best.index).where(best[axis.arm].notna())
    keys = (*OF_FACTS, *axis.keys, "status", "rank_low", "rank_high", "max_steps")
    return _records(results, best, keys)


def _records(results: StudyResults, table: pd.DataFrame, keys: Sequence[str]) -> list[Record]:
    study = results.study
    stored = {study.search.sizes.shown(str(name)): str(name) for name in table}
    records = []
    for row in rows_of(table):
        more = _of_problem(results, row)
        if "certificate" in keys:
            more["certificate"] = parse_certificate(row["certificate"])
        listed = {key: more[key] if key in more else row[stored[key]] for key in keys}
        records.append({"cell": study.cell_names[row["cell_id"]], **listed})
    return records


def _of_problem(results: StudyResults, row: Mapping[Any, Any]) -> Record:
    """The keys of a row's record that follow from the problem of its cell."""
    record = results.study.record
    if record.axis == "d_k":
        return {"bits_per_parameter": graph_bits_per_parameter(row) if record.holds_bits else None}
    from rgr_dist.analysis.thresholds.database_ranks import (
        problem_of,  # imports numba: half a second
    )

    return problem_of(results, row)
