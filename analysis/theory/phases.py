"""What heads of the widest useful width can hold, and whether training finds it.

A study of mode ``widest`` asks whether heads with d_k = d_model pass. Its answers are compared with
those of the constructions that it lists, on the same graphs and embeddings: whether one head can be
right on all pairs, decided exactly, and for several heads the construction ``ours``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.analysis.page.section import Column, Section, Table
from rgr_dist.analysis.rows import Row, named
from rgr_dist.analysis.theory.phases_figure import draw_phases
from rgr_dist.analysis.wording import plural
from rgr_dist.paper import compression
from rgr_dist.study.cell import Cell
from rgr_dist.study.study import Study


def is_of_phases(study: Study) -> bool:
    """Whether a study asks what the widest heads can do."""
    return study.search.mode == "widest" and study.cells[0].model == "max"


@per_study
def phases(results: StudyResults) -> pd.DataFrame:
    """What is known about each size at each head count, in a study that ``is_of_phases``.

    Returns:
        ``cell_id`` of the largest step limit, ``m, d_model, degree, h``; ``compression``,
        m′ / d_model; ``load``, m′ ln m / d_model²; ``passes_within``, the smallest step limit at
        which training passes, null if none is known; ``draws``; ``exact``, in how many of them
        weights of at most h heads are known that are right on all pairs; ``proved``, in how many
        it is proved that there are none, which is decided for one head only; ``phase``, one of
        ``phases_figure.MEANS``.
    """
    study, rows = results.study, []
    table = results.thresholds[["cell_id", "h", "status"]]
    status = {(cell, int(h)): of for cell, h, of in table.itertuples(index=False, name=None)}
    for family in dict.fromkeys(study.budgets.values()):
        if family[0].model != study.record.name:
            continue
        for h in sorted(map(int, study.search.arms)):
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


def headline(results: StudyResults) -> str:
    """At how many sizes training passes, by head count, and at how many one head is ruled out."""
    table = phases(results)
    found = [
        f"{table.loc[table['h'] == h, 'passes_within'].notna().sum()} with {plural(h, 'head')}"
        for h in sorted(set(table["h"].tolist()))
    ]
    sizes = plural(len(table) // len(found), "size")
    proved = int((table["phase"] == "impossible").sum())
    beyond = f" At {proved}, a proof rules one head out." if proved else ""
    return f"Of {sizes}, training passes at {', '.join(found)}, each as wide as d_model.{beyond}"


def one_head_headline(results: StudyResults) -> str:
    """At how many sizes one head can be right on every pair, and at how many no head can be."""
    study, runs = results.study, results.searched
    whole = {cell.cell_id: runs[runs["cell_id"] == cell.cell_id] for cell in study.cells}
    ended = [own for own in whole.values() if own["seed"].nunique() >= study.search.seeds]
    exact = sum(bool((own["score"] == 1).all()) for own in ended)
    proved = sum(
        bool(((own["score"] < 1) & (own["stop_reason"] == "converged")).all()) for own in ended
    )
    rest = len(whole) - exact - proved
    sizes = plural(len(whole), "size")
    others = f"; at {rest} the draws differ or are not decided" if rest else ""
    return (
        f"Of {sizes}, one head as wide as d_model can be right on every pair in all draws at "
        f"{exact}; at {proved} it is proved, draw by draw, that none can be{others}."
    )


def section(results: StudyResults) -> Section:
    """The figure and its table."""
    rows = named(results, phases(results))
    trained = (cell for cell in results.study.cells if cell.model == results.study.record.name)
    limits = sorted({cell.training.max_steps for cell in trained})
    return Section(
        name="phases",
        title="Impossible, hard and easy",
        figures=(draw_phases(rows, limits),),
        shown=(_table(rows),),
        files={"phases": phases(results)},
    )


def _table(rows: Sequence[Row]) -> Table:
    return Table(
        name="table-phases",
        caption=(
            "Heads with d_k = d_model. Passes within: the smallest step limit at which training "
            "passes. Exact: draws with known weights that are right on all pairs, of one head or "
            "of the construction. Proved: draws for which a certificate shows that one head has "
            "no such weights."
        ),
        columns=[
            Column("size", lambda row: f"({row['m']}, {row['d_model']})", text=True, names=True),
            Column("h", "h"),
            Column("m′ ln m / d_model^2", "load", form=".2f"),
            Column("passes within", "passes_within"),
            Column("exact", lambda row: f"{row['exact']} of {row['draws']}", "exact"),
            Column("proved", lambda row: f"{row['proved']} of {row['draws']}", "proved"),
            Column("phase", "phase", text=True),
        ],
        rows=rows,
        cell=None,
    )
