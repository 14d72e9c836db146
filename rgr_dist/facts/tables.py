"""What a study of facts found: the value width that holds each database, and its rank."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.analysis.runs import scored
from rgr_dist.analysis.tables import best, with_kinds
from rgr_dist.facts.cell import FactsCell
from rgr_dist.facts.databases import sample_triples
from rgr_dist.facts.ranks import layer_rank_bound, triples_rank


@per_study
def widths(results: StudyResults) -> pd.DataFrame:
    """The smallest value width of each cell, in the study's order.

    Returns:
        ``cell_id, cell, status``; ``database``, its family; ``facts, keys, queries, values``,
        ``d_model, d_qk, h``; ``d_vo`` of a head, and over all heads ``D_V, D_V_low, D_V_high``;
        ``rank_low`` and ``rank_high``, bounds on the rank of the database, means over the seeds;
        ``layer_rank_bound``, the largest rank that the logits of a layer of this D_V can have.
        Widths are null unless found.
    """
    names = {"h_star": "h", "d_k": "d_vo", "D_K": "D_V", "D_K_low": "D_V_low"}
    found = best(results).rename(columns={**names, "D_K_high": "D_V_high"}).set_index("cell_id")
    rows = list[dict[str, Any]]()
    for cell in results.study.cells:
        assert isinstance(cell, FactsCell)
        own, database = found.loc[cell.cell_id], cell.database
        low, high = database_rank(cell, results.study.search.seeds)
        row = {"cell_id": cell.cell_id, "cell": own["cell"], "status": own["status"]}
        row |= {"database": database.family, "facts": cell.m, "d_model": cell.d_model}
        row |= dict(zip(("keys", "queries", "values"), database.shape, strict=True))
        row |= {"d_qk": None if cell.facts.total else cell.facts.d_qk}
        row |= {name: own[name] for name in ("h", "d_vo", "D_V", "D_V_low", "D_V_high")}
        row |= {"rank_low": low, "rank_high": high, "layer_rank_bound": None}
        if not pd.isna(own["D_V"]):
            h, d_vo = int(own["h"]), int(own["d_vo"])
            row["d_qk"] = cell.d_qk(d_vo)
            row["layer_rank_bound"] = layer_bound(cell, h, d_vo)
        rows.append(row)
    return with_kinds(pd.DataFrame(rows), ("rank_low", "rank_high"))


@cache
def database_rank(cell: FactsCell, seeds: int) -> tuple[float, float]:
    """Bounds on the rank of a cell's database (``facts.ranks``), means over its first seeds."""
    drawn = [sample_triples(cell.database, cell.problem_json, seed) for seed in range(seeds)]
    ranks = np.array([triples_rank(triples)[:2] for triples in drawn], dtype=np.float64)
    low, high = ranks.mean(axis=0).tolist()
    return low, high


def layer_bound(cell: FactsCell, h: int, d_vo: int) -> int:
    """A bound on the rank of a layer's logits (Prop. 3.5, as ``facts.ranks`` proves it)."""
    return layer_rank_bound(cell.database.shape, h, d_vo, cell.d_model, cell.facts.residual)


@per_study
def taus(results: StudyResults) -> pd.DataFrame:
    """Means over the trained layers of the search, each measured at several tau.

    Returns:
        ``tau``; ``accuracy``, the share of triples whose value has a probability of at least tau;
        ``rank`` of softmax≥tau(L), from below; ``gap``, how far it is from that of L, whichever
        way; ``above_bound``, how many of the ``layers`` have a rank above the bound on that of L.
    """
    cells = {cell.cell_id: cell for cell in results.study.cells}
    runs, rows = scored(results.searched, results.study), []
    for cell_id, h, d_vo, text in runs[["cell_id", "h", "d_k", "details"]].itertuples(index=False):
        if isinstance(text, str):
            cell, told = cells[cell_id], json.loads(text)
            assert isinstance(cell, FactsCell)
            bound = layer_bound(cell, int(h), int(d_vo))
            for tau, accuracy, rank in told["by_tau"]:
                gap = abs(rank - told["rank_logits"])
                rows.append((tau, accuracy, rank, gap, rank > bound, 1))
    columns = ["tau", "accuracy", "rank", "gap", "above_bound", "layers"]
    table = pd.DataFrame(rows, columns=columns).groupby("tau", as_index=False)
    means = dict.fromkeys(columns[1:4], "mean") | dict.fromkeys(columns[4:], "sum")
    return with_kinds(table.agg(means), columns[:4])
