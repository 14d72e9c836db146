"""What heads of the widest useful width can hold, and whether training finds it.

A study of mode ``widest`` asks whether heads with d_k = d_model pass. Beside that stands what needs
no training: whether one head can be right on all pairs, decided exactly, and for several heads the
construction ``ours``, both on the graphs and embeddings of the study's own seeds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.analysis.page.section import Column, Section, Table
from rgr_dist.analysis.rows import Row, named
from rgr_dist.analysis.theory.phases_figure import MEANS, draw_phases
from rgr_dist.analysis.wording import plural
from rgr_dist.paper import compression
from rgr_dist.study.cell import Cell
from rgr_dist.study.construction import Construction
from rgr_dist.study.study import Study

OURS = Construction(iterations=400)


def is_of_phases(study: Study) -> bool:
    """Whether a study asks what the widest heads can do."""
    return study.search.mode == "widest" and study.cells[0].model == "max"


@per_study
def phases(results: StudyResults) -> pd.DataFrame:
    """What is known of each size at each head count, of a study that ``is_of_phases``.

    Returns:
        ``cell_id`` of the largest step limit, ``m, d_model, degree, h``; ``compression``,
        m′ / d_model; ``load``, m′ ln m / d_model²; ``passes_within``, the smallest step limit at
        which training passes, null if none is known; ``draws``; ``exact``, in how many of them
        weights of at most h heads are known that are right on all pairs (of several heads counted
        up to the first draw without); ``proved``, in how many it is proved that there are none,
        which is decided of one head alone; ``phase``, one of ``phases_figure.MEANS``.
    """
    study, rows = results.study, []
    table = results.thresholds[["cell_id", "h", "status"]]
    status = {(cell, int(h)): of for cell, h, of in table.itertuples(index=False, name=None)}
    for family in dict.fromkeys(study.budgets.values()):
        cell, exact = family[-1], set[int]()
        for h in sorted(map(int, study.search.arms)):
            exact, proved = _drawn(cell, h, range(study.search.seeds), exact)
            trained = {one.training.max_steps: status.get((one.cell_id, h)) for one in family}
            rows.append(_row(cell, h, trained, (len(exact), len(proved), study.search.seeds)))
    return pd.DataFrame(rows).astype({"passes_within": "Int64"})


def _drawn(cell: Cell, h: int, draws: Iterable[int], exact: set[int]) -> tuple[set[int], set[int]]:
    """The draws in which weights of h heads are known, and those in which none exist.

    Args:
        exact: those in which weights of fewer heads are known, which serve more heads too.
    """
    known, proved = set(exact), set[int]()
    for seed in draws:
        if seed in known:
            continue
        holds = _one_head(cell, seed) if h == 1 else _ours(cell, seed, h)
        if holds:
            known.add(seed)
        elif h > 1:
            break
        elif holds is False:
            proved.add(seed)
    return known, proved


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


def _one_head(cell: Cell, seed: int) -> bool | None:
    """Whether one head can be right on all pairs of a draw; None where neither was proved."""
    from rgr_dist.theory.construct import problem_of  # imports numba: half a second
    from rgr_dist.theory.one_head import decide

    problem = problem_of(cell, seed)
    return decide(problem.X, problem.graph).separable


def _ours(cell: Cell, seed: int, h: int) -> bool:
    """Whether the construction is right on all pairs of a draw; others may be where it is not."""
    from rgr_dist.theory.all_pairs import score_all_pairs
    from rgr_dist.theory.construct import build, problem_of

    problem = problem_of(cell, seed)
    layer = build("ours", OURS, problem, h, cell.d_model).layer
    return score_all_pairs(layer, problem.X, problem.graph).exact


def headline(results: StudyResults) -> str:
    """How many sizes are of each phase, for every head count."""
    table = phases(results)
    found = [
        f"for {plural(h, 'head')} {_counts(table.loc[table['h'] == h, 'phase'].tolist())}"
        for h in sorted(set(table["h"].tolist()))
    ]
    sizes = plural(len(table) // len(found), "size")
    return f"Of {sizes} of graph, and heads as wide as d_model: {'; '.join(found)}."


def _counts(phases_: Sequence[str]) -> str:
    """``6 easy, 1 hard, 8 impossible``."""
    return ", ".join(f"{phases_.count(one)} {one}" for one in MEANS if one in phases_)


def section(results: StudyResults) -> Section | None:
    """The figure and its table; None for a study of anything else."""
    if not is_of_phases(results.study):
        return None
    rows = named(results, phases(results))
    limits = sorted({cell.training.max_steps for cell in results.study.cells})
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
            "does. Exact: draws with known weights that are right on all pairs, of one head or of "
            "the construction; proved: draws of which a certificate says that one head has none."
        ),
        columns=[
            Column("size", lambda row: f"({row['m']}, {row['d_model']})", text=True, names=True),
            Column("h", "h"),
            Column("m′ ln m / d_model^2", "load", form=".2f"),
            Column("passes within", "passes_within"),
            Column("exact", lambda row: f"{row['exact']} of {row['draws']}", "exact"),
            Column("proved", lambda row: f"{row['proved']} of {row['draws']}", "proved"),
            Column("is", "phase", text=True),
        ],
        rows=rows,
        cell=None,
    )
