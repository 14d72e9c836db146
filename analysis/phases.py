"""What heads of ample width can hold, and whether training finds it.

A study of phases asks whether heads at least as wide as d_model pass. Its answers are compared
with those of the constructions that it lists, on the same graphs and embeddings: whether one head
can be right on all pairs, decided exactly, and for several heads the construction ``ours``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.analysis.wording import plural
from rgr_dist.paper import compression
from rgr_dist.study.cell import Cell
from rgr_dist.study.study import Study


def is_of_phases(study: Study) -> bool:
    """Whether a study compares training at ample widths with constructions."""
    is_made = study.cells[-1].record.task == "construction"
    return study.search.mode == "grid" and study.cells[0].model == "max" and is_made


@per_study
def phases(results: StudyResults) -> pd.DataFrame:
    """What is known about each size at each head count, in a study that ``is_of_phases``.

    Returns:
        ``cell_id`` of the largest step limit, ``m, d_model, degree, h``; ``compression``,
        m′ / d_model; ``load``, m′ ln m / d_model²; ``passes_within``, the smallest step limit at
        which training passes, null if none is known; ``draws``; ``exact``, in how many of them
        weights of at most h heads are known that are right on all pairs; ``proved``, in how many
        it is proved that there are none, which is decided for one head only; ``phase``: ``easy`` or
        ``slow``, whether training passes within the smallest or only a larger step limit; ``hard``,
        if it passes at none and exact weights are known in every draw; ``impossible``, if it is
        proved in every draw that there are none; else ``open``.
    """
    study, rows = results.study, []
    table = results.thresholds[["cell_id", "h", "status"]]
    status = {(cell, int(h)): of for cell, h, of in table.itertuples(index=False, name=None)}
    for family in dict.fromkeys(study.budgets.values()):
        if family[0].model != study.record.name:
            continue
        for h in sorted(study.search.heads):
            trained = {one.training.max_steps: status.get((one.cell_id, h)) for one in family}
            rows.append(_row(family[-1], h, trained, _draws(results, family[-1], h)))
    return pd.DataFrame(rows).astype({"passes_within": "Int64"})


def _draws(results: StudyResults, cell: Cell, h: int) -> tuple[int, int, int]:
    """Numbers of draws: with known exact weights of at most h heads, proved to have none, all."""
    study, runs = results.study, results.searched
    alike = [one.cell_id for one in study.cells if one.problem_json == cell.problem_json]
    made = runs[runs["cell_id"].isin(alike) & (runs["model"] != cell.model) & (runs["h"] <= h)]
    exact = made["score"] == 1
    decided = (made["model"] == "one-head") & (made["stop_reason"] == "converged")
    proved = made[decided & ~exact & (made["h"] == h)]
    return made.loc[exact, "seed"].nunique(), len(proved), study.search.seeds


def _row(
    cell: Cell, h: int, trained: Mapping[int, str | None], draws: tuple[int, int, int]
) -> dict[str, Any]:
    exact, proved, n = draws
    limits = [limit for limit, status in trained.items() if status == "found"]
    phase = "impossible" if proved == n else "open"
    if limits:
        phase = "easy" if min(limits) == min(trained) else "slow"
    elif trained[max(trained)] == "censored" and exact == n:
        phase = "hard"
    return {
        "cell_id": cell.cell_id,
        "m": cell.m,
        "d_model": cell.d_model,
        "degree": cell.graph.degree,
        "h": h,
        "compression": compression(cell.m, cell.d_model, cell.n_edges),
        "load": cell.n_edges * math.log(cell.m) / cell.d_model**2,
        "passes_within": min(limits, default=None),
        "draws": n,
        "exact": exact,
        "proved": proved,
        "phase": phase,
    }


def finding(results: StudyResults) -> str:
    """In one sentence, at how many sizes training passes and how many a proof rules out."""
    table = phases(results)
    one = table[table["h"] == table["h"].min()]
    passing, proved = int(one["passes_within"].notna().sum()), (one["phase"] == "impossible").sum()
    heads = plural(int(one["h"].iloc[0]), "head")
    return (
        f"Of {plural(len(one), 'size')}, {heads} at least as wide as d_model can be trained at "
        f"{passing}; a proof rules out {proved}."
    )


def one_head_finding(results: StudyResults) -> str:
    """In one sentence, at how many sizes one head can be right on every pair in all draws."""
    study, runs = results.study, results.searched
    whole = {cell.cell_id: runs[runs["cell_id"] == cell.cell_id] for cell in study.cells}
    ended = [own for own in whole.values() if own["seed"].nunique() >= study.search.seeds]
    exact = sum(bool((own["score"] == 1).all()) for own in ended)
    proved = sum(
        bool(((own["score"] < 1) & (own["stop_reason"] == "converged")).all()) for own in ended
    )
    sizes = plural(len(whole), "size")
    return f"Of {sizes}, one head holds every draw at {exact}; a proof rules out {proved}."
