"""The two tables at the centre: the threshold of every (cell, h), and the best of every cell."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pandas as pd

from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.analysis.runs import scored
from rgr_dist.paper import capacity_scale, compression
from rgr_dist.planning.budgets import records
from rgr_dist.study.study import Study

THRESHOLD = [
    *("model", "graph", "degree", "m", "d_model", "h", "d_k", "D_K", "D_K_low", "D_K_high"),
    *("status", "mean_score", "n_seeds", "fails_above", "certificate"),
]
"""The columns of a threshold that ``rgr thresholds`` lists."""

BEST = [
    *("m", "d_model", "degree", "max_steps", "D_K", "D_K_low", "D_K_high"),
    *("h_star", "h_low", "h_high", "d_k", "confirmed"),
]
"""The columns of a best that ``rgr thresholds`` lists."""

SIGNIFICANCE = 0.05
"""Level of the paired t-test that decides which head counts h_low and h_high span (App. A.2)."""

POOL_MARGIN = 0.10
"""Share by which a head count's D_K may exceed D_K* to be compared with h* (App. A.2)."""

SAME = 1e-12
"""Scores that differ by less are equal up to rounding."""

Row = dict[str, Any]


@per_study
def thresholds(results: StudyResults) -> pd.DataFrame:
    """The threshold of every (cell, h), in the study's order.

    Returns:
        The columns of ``THRESHOLD``: d_k and D_K are null unless found; D_K_low and D_K_high are
        the ends of App. A.2's interval, or the least D_K not ruled out and the least that passes;
        ``fails_above`` lists larger d_k that fail; ``certificate`` has the probes ``pass`` and
        ``fail`` of d_k and the one below, and ``fresh``. Then ``cell_id, cell, n_edges, max_steps,
        confirmed``; ``D_K_fails``, the largest D_K that fails at these heads, 0 if none does, null
        unless found; ``is_best``, whether these heads are h*.
    """
    study, table = results.study, results.thresholds
    order = {cell.cell_id: i for i, cell in enumerate(study.cells)}
    table = table[table["h"].isin(study.search.heads) & table["cell_id"].isin(order)]
    table = table.assign(order=table["cell_id"].map(order)).sort_values(["order", "h"])
    sides = [json.loads(text) if isinstance(text, str) else None for text in table["certificate"]]
    failing = [(one or {}).get("fail") or {"d_k": 0} for one in sides]
    found = table["D_K"].notna()
    fails = table["h"] * pd.Series([one["d_k"] for one in failing], table.index, dtype="Int64")
    table = table.assign(
        cell=table["cell_id"].map(study.cell_names),
        certificate=pd.Series(sides, table.index, dtype="object"),
        fails_above=table["fails_above"].map(lambda above: [] if above is None else [*above]),
        D_K_fails=fails.where(found),
    )
    ranked = table[found].sort_values(["D_K", "mean_score", "h"], ascending=[True, False, True])
    stars = ranked.drop_duplicates("cell_id").index
    columns = [*THRESHOLD, "cell_id", "cell", "n_edges", "max_steps", "confirmed", "D_K_fails"]
    table = table.assign(is_best=table.index.isin(stars))[[*columns, "is_best"]]
    return with_kinds(table.reset_index(drop=True))


def with_kinds(table: pd.DataFrame, reals: Sequence[str] = ()) -> pd.DataFrame:
    """The table with its columns as pandas' own kinds, which may lack values.

    Args:
        reals: columns of reals, also where all their values happen to be whole.
    """
    table = table.convert_dtypes()
    empty = [name for name in table if len(table) and table[name].isna().all()]
    return table.astype(dict.fromkeys(empty, "Int64") | dict.fromkeys(reals, "Float64"))


@per_study
def best(results: StudyResults) -> pd.DataFrame:
    """D_K* and h* of every cell, in the study's order, with or without a threshold.

    h* has the smallest D_K found, then the better mean, then the fewer heads. ``h_low`` and
    ``h_high`` span the head counts that App. A.2 cannot tell from it. Where no head count is found,
    D_K_low is the least D_K that none of them rules out, if all were tried.

    Returns:
        The columns of ``BEST``, then ``cell_id, cell, model, graph, n_edges, status, mean_score,
        n_seeds, certificate, D_K_fails``, those of h*; status is ``open`` while any head count's
        is. ``largest``: no cell that differs in the step limit alone has a larger one. ``scale``,
        m′ log₂ m / d_model; ``compression``, m′ / d_model. ``protocol``: how training and contexts
        differ from those of most cells, ``learning_rate = 0.01``.
    """
    study, table = results.study, thresholds(results)
    by_cell = dict(list(table.groupby("cell_id")))
    stars = {row["cell_id"]: row for row in records(table[table["is_best"].astype(bool)])}
    spans, protocols = heads_alike(results), _protocols(study)
    largest = {family[-1].cell_id for family in study.budgets.values()}
    rows = []
    for cell in study.cells:
        own = by_cell.get(cell.cell_id, table.iloc[:0])
        heads = 1 if cell.record.algorithm == "one-head" else len(study.search.heads)
        row: Row = {"status": _status(own, heads)}
        if star := stars.get(cell.cell_id):
            row |= star | {"status": row["status"], "h_star": star["h"]}
            row["h_low"], row["h_high"] = spans[cell.cell_id]
            row["D_K_low"], row["D_K_high"] = _ends(own, row["D_K"])
        elif len(own) == heads and own["D_K_low"].notna().all():
            row["D_K_low"] = own["D_K_low"].min()
        size = cell.m, cell.d_model, cell.n_edges
        row |= {
            "cell_id": cell.cell_id,
            "cell": study.cell_names[cell.cell_id],
            "model": cell.model_name,
            "graph": cell.graph.family,
            "m": cell.m,
            "d_model": cell.d_model,
            "degree": cell.graph.degree,
            "n_edges": cell.n_edges,
            "max_steps": cell.training.max_steps,
            "largest": cell.cell_id in largest,
            "scale": capacity_scale(*size),
            "compression": compression(*size),
            "protocol": protocols[cell.cell_id],
        }
        rows.append(row)
    columns = [*BEST, "cell_id", "cell", "model", "graph", "n_edges", "status", "mean_score"]
    columns += ["n_seeds", "certificate", "D_K_fails", "largest", "scale", "compression"]
    table = pd.DataFrame(rows, columns=[*columns, "protocol"])
    return with_kinds(table, ("mean_score", "scale", "compression"))


def heads_alike(results: StudyResults) -> dict[str, tuple[int, int]]:
    """The fewest and the most heads that cannot be told from h*, by cell_id (App. A.2).

    Compared are the head counts that pass at most ``POOL_MARGIN`` above D_K*, or one step of their
    d_k, each at its threshold: a step is usually more than that share. Those stay whose scores
    differ from those of h* by no more than chance: a paired t-test over the seeds that both ran,
    two-sided, p > ``SIGNIFICANCE``. Fewer than two seeds are no evidence.
    """
    table, none = thresholds(results), pd.Series(dtype="float64")
    probe = ["cell_id", "h", "d_k"]
    table = table.loc[table["D_K"].notna(), [*probe, "D_K", "is_best"]]
    runs = scored(results.searched, results.study)[[*probe, "seed", "score"]]
    runs = runs.merge(table[probe], on=probe).set_index("seed")
    scores = dict(iter(runs.groupby(probe)["score"]))
    spans = {}
    for cell_id, own in table.groupby("cell_id", sort=False):
        star = own[own["is_best"].astype(bool)].iloc[0]
        best_scores = scores.get((cell_id, star["h"], star["d_k"]), none)
        kept = [
            h
            for h, d_k in zip(own["h"], own["d_k"], strict=True)
            if _is_near(star["D_K"], h, d_k)
            and _is_alike(scores.get((cell_id, h, d_k), none), best_scores)
        ]
        spans[str(cell_id)] = min(kept), max(kept)
    return spans


def _is_alike(ours: pd.Series[Any], theirs: pd.Series[Any]) -> bool:
    """Whether two probes' scores, by seed, differ by no more than chance."""
    from scipy.special import stdtr  # a quarter of a second, and many commands test nothing

    gap = (ours - theirs).dropna().to_numpy(float)
    if len(gap) < 2:
        return True
    error = gap.std(ddof=1) / math.sqrt(len(gap))
    if error < SAME:  # the same gap at every seed
        return bool(abs(gap.mean()) < SAME)
    return bool(2 * stdtr(len(gap) - 1, -abs(gap.mean()) / error) > SIGNIFICANCE)


def _ends(own: pd.DataFrame, D_K: int) -> tuple[Any, Any]:
    """The ends of D_K*'s interval: the least of its head counts', where they are known.

    The upper end counts those near D_K* alone, whose intervals do not depend on what was pruned.
    """
    tried = own[own["status"].isin(["found", "pruned"])]
    near = own[[_is_near(D_K, h, d_k) for h, d_k in zip(own["h"], own["d_k"], strict=True)]]
    known = own.loc[own["D_K"].notna(), "D_K_low"].notna().any()
    return tried["D_K_low"].min() if known else pd.NA, near["D_K_high"].min()


def _is_near(best: int, h: int, d_k: Any) -> bool:
    """Whether a threshold is at most ``POOL_MARGIN``, or one step of its d_k, above the best."""
    within = math.floor(best * (1 + POOL_MARGIN) + 1e-9) // h
    return d_k is not pd.NA and bool(d_k <= max(within, best // h + (h <= best)))


def _status(own: pd.DataFrame, heads: int) -> str:
    """The status of a cell from those of its head counts."""
    statuses = set(own["status"])
    if len(own) < heads or "open" in statuses:
        return "open"
    return "found" if "found" in statuses else "censored"


def _protocols(study: Study) -> dict[str, str]:
    """How each cell's protocol, the step limit aside, differs from the most frequent one."""
    own = {
        cell.cell_id: {
            key: value
            for key, value in study.keys_of(cell).items()
            if key.startswith(("model", "context.", "training.", "embedding."))
            and key not in ("training.max_steps", "embedding.digest")
        }
        for cell in study.cells
    }
    families = {family[-1].cell_id for family in study.budgets.values()}
    counted = Counter(
        tuple(own[cell.cell_id].items()) for cell in study.cells if cell.cell_id in families
    )
    usual = dict(counted.most_common(1)[0][0])
    return {
        cell_id: ", ".join(
            f"{key.split('.')[-1]} = {f'{value:g}' if isinstance(value, float) else value}"
            for key, value in keys.items()
            if value != usual.get(key, not key.startswith("embedding.") and value)
        )
        for cell_id, keys in own.items()
    }


def listed(table: pd.DataFrame, columns: Sequence[str], study: Study) -> pd.DataFrame:
    """The columns that ``rgr thresholds`` lists, after ``cell`` if sizes tell no cells apart."""
    return table[[*(["cell"] if study.has_alike_cells else []), *columns]]
