"""What ``rgr bounds --one-head`` lists: whether one head can hold a graph, draw by draw."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rgr_dist.cli.options import check_output, check_room

if TYPE_CHECKING:
    from rgr_dist.study.cell import Cell
    from rgr_dist.theory.construct import Problem
    from rgr_dist.theory.one_head import OneHead

FACTS = {
    "separable": "yes: weights of one head are right on all m² pairs; no: a verified certificate "
    "proves that there are none, at any d_k; empty: neither was proved",
    "margin": "distance of the nearest score to tau, where |W_Q W_Kᵀ| = 1",
}


def one_head_rows(cell: Cell, draws: int, save: Path | None) -> list[dict[str, Any]]:
    """One row for each draw of graph and embedding, the same as a run with that seed trains on.

    Args:
        save: where the weights or the certificate of draw 0 go; None to keep neither.

    Raises:
        UserError: it would not fit in memory, or the file cannot be written.
    """
    from rgr_dist.theory.construct import problem_of
    from rgr_dist.theory.draws import tracked
    from rgr_dist.theory.one_head import decide, memory

    if save is not None:
        check_output("--save", save, ".safetensors")
    what = f"--one-head: m = {cell.m} and d_model = {cell.d_model} need"
    available = check_room(memory(cell.m, cell.d_model), what)
    rows = []
    for draw in tracked(range(draws)):
        problem = problem_of(cell, draw)
        found = decide(problem.X, problem.graph, available)
        if save is not None and draw == 0:
            _save(save, problem, found)
        rows.append(
            {
                "m": cell.m,
                "d_model": cell.d_model,
                "draw": draw,
                "separable": found.separable,
                "margin": found.margin,
                "certificate_residual": found.residual,
            }
        )
    return rows


def share_separable(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The share of draws that one head can hold, with a 95 % Clopper-Pearson interval."""
    from scipy import stats

    decided = [row["separable"] for row in rows if row["separable"] is not None]
    facts: dict[str, Any] = {"undecided_draws": len(rows) - len(decided)}
    if decided:
        share = stats.binomtest(sum(decided), len(decided))
        interval = share.proportion_ci(0.95, method="exact")
        facts |= {
            "share_separable": share.statistic,
            "share_low": float(interval.low),
            "share_high": float(interval.high),
        }
    return facts


def _save(path: Path, problem: Problem, found: OneHead) -> None:
    """Write what proves draw 0: its embedding, its edges, and the weights or the certificate."""
    import numpy as np

    from rgr_dist.theory.draws import save_tensors
    from rgr_dist.theory.matchings import edges_of

    tensors = {"embedding": np.ascontiguousarray(problem.X), "edges": edges_of(problem.graph)}
    if found.layer is not None:
        tensors |= {"W_Q": found.layer.W_Q, "W_K": found.layer.W_K}
        tensors["tau"] = np.array([found.layer.tau])
    if found.certificate is not None:
        tensors["certificate"] = found.certificate
    save_tensors(path, tensors)
