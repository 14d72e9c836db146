"""Ranks of databases, and what they say about a threshold."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.records import integer
from rgr_dist.facts.ranks import layer_rank_bound, triples_rank
from rgr_dist.problem.databases import sample_triples
from rgr_dist.study.cell import Cell


def problem_of(results: StudyResults, row: Mapping[Any, Any]) -> dict[str, Any]:
    """What listings say about the database of a row's cell, and about a layer at its threshold.

    Returns:
        ``database, facts, keys, queries, values``; ``rank_low`` and ``rank_high``, bounds on the
        rank of the database, means over the seeds; ``layer_rank_bound``, an upper bound on the rank
        of the logits of a layer at the threshold; ``parameters``, how many its heads have:
        2 d_model h (d_qk + d_vo). The last two are None without a threshold, and the ranks in a
        study without a run.
    """
    (cell,) = (one for one in results.study.cells if one.cell_id == row["cell_id"])
    database, d_vo = cell.database, integer(row["d_vo"])
    assert database is not None
    low = high = None
    if d_vo is not None or len(results.runs):  # thousands of seeds would take minutes
        low, high = database_rank(cell, results.study.search.seeds)
    told: dict[str, Any] = {
        "database": database.family,
        "facts": cell.m,
        "keys": database.keys,
        "queries": database.queries,
        "values": database.values,
        "rank_low": low,
        "rank_high": high,
        "layer_rank_bound": None,
        "parameters": None,
    }
    if d_vo is not None:
        h, d_qk = int(row["h"]), int(row["d_k"])
        told["layer_rank_bound"] = layer_bound(cell, h, d_vo)
        told["parameters"] = 2 * cell.d_model * h * (d_qk + d_vo)
    return told


@cache
def database_rank(cell: Cell, seeds: int) -> tuple[float, float]:
    """Bounds on the rank of a cell's database (``facts.ranks``), means over its first seeds."""
    assert cell.database is not None
    drawn = {
        sample_triples(cell.database, cell.problem_json, seed).tobytes() for seed in range(seeds)
    }
    ranks = [
        triples_rank(np.frombuffer(triples, dtype=np.int32).reshape(-1, 3)) for triples in drawn
    ]
    means = np.array(ranks, dtype=np.float64).mean(axis=0).tolist()
    return means[0], means[1]


def layer_bound(cell: Cell, h: int, d_vo: int) -> int:
    """A bound on the rank of a layer's logits (Prop. 3.5, as ``facts.ranks`` proves it)."""
    assert cell.database is not None
    shape = (cell.database.keys, cell.database.queries, cell.database.values)
    return layer_rank_bound(shape, h, d_vo, cell.d_model, cell.facts.residual)
