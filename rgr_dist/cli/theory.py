"""The verb ``bounds``: what theory requires of a layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rgr_dist.cli.listing import Format, print_listing
from rgr_dist.cli.options import LARGEST, How
from rgr_dist.faults import UserError

if TYPE_CHECKING:
    from rgr_dist.theory.one_head import OneHead

MEANING = {
    "separable": "yes: weights of one head are right on all m² pairs; no: a verified certificate "
    "proves that there are none, at any d_k; empty: neither was proved",
    "margin": "distance of the nearest score to tau, where |W_Q W_Kᵀ| = 1",
}


def bounds(
    m: Annotated[int, typer.Option("--m", min=2, max=LARGEST, help="Items.")],
    d_model: Annotated[int, typer.Option(min=1, max=LARGEST, help="Embedding width.")],
    edges: Annotated[int | None, typer.Option(min=1, help="Relations m'; m if left out.")] = None,
    one_head: Annotated[
        bool, typer.Option("--one-head", help="Decide whether one head can hold drawn graphs.")
    ] = False,
    draws: Annotated[int, typer.Option(min=1, help="With --one-head: how many graphs.")] = 10,
    how: How = Format.TABLE,
) -> None:
    """The D_K that counting requires, or whether any weights of one head can hold a graph.

    Counting (Sec. 9) gives one line for each number of bits that a parameter is assumed to hold. No
    line is *the* bound, since that number is not known beforehand. If m' = m, permutations are
    listed too. With --one-head, graphs and embeddings are drawn as a study's seeds are:
    permutations, or with --edges regular graphs of that many relations. JSON has each draw's
    certificate: weights that are right on every pair, or a proof that no weights are.
    """
    if one_head:
        rows = _one_head_rows(m, d_model, edges or m, draws)
        if how is not Format.JSON:
            rows = [{key: row[key] for key in row if key != "certificate"} for row in rows]
        facts = _share_separable(rows) | (MEANING if how is Format.TABLE else {})
        print_listing({"rows": rows}, how, facts=facts)
        return
    from rgr_dist.planning.budgets import records
    from rgr_dist.theory.bounds import counting_table

    if edges is not None and edges > m * (m - 1):
        raise UserError(f"--edges {edges}: at most m (m - 1) = {m * (m - 1)} of m = {m} items")
    table = counting_table(m, d_model, edges)
    print_listing({"rows": records(table)}, how)


def _one_head_rows(m: int, d_model: int, edges: int, draws: int) -> list[dict[str, Any]]:
    """One row for each draw of graph and embedding, the same as a run with that seed trains on."""
    from rich.console import Console
    from rich.progress import track

    from rgr_dist.study.cell import Cell
    from rgr_dist.study.errors import validated
    from rgr_dist.theory.construct import problem_of
    from rgr_dist.theory.one_head import decide

    keys: dict[str, Any] = {"m": m, "d_model": d_model, "context": {"length": min(16, m)}}
    if edges != m:
        if edges % m:
            raise UserError(f"--edges {edges}: with --one-head, give a multiple of m = {m}")
        keys["graph"] = {"family": "regular", "degree": edges // m}
    cell, console = validated(Cell, keys, "--"), Console(stderr=True)
    rows = list[dict[str, Any]]()
    hidden = not console.is_terminal
    for draw in track(range(draws), "draws", console=console, transient=True, disable=hidden):
        problem = problem_of(cell, draw)
        found = decide(problem.X, problem.graph)
        rows.append(
            {
                "m": m,
                "d_model": d_model,
                "edges": edges,
                "draw": draw,
                "separable": found.separable,
                "margin": found.margin,
                "certificate_residual": found.residual,
                "certificate": _certificate(found),
            }
        )
    return rows


def _certificate(found: OneHead) -> dict[str, Any] | None:
    """What proves a draw: W and tau of x_iᵀ W x_j > tau, or lambda as [source, target, lambda]."""
    import numpy as np

    if found.layer is not None:
        W = found.layer.W_Q @ found.layer.W_K.T
        return {"W": W.tolist(), "tau": found.layer.tau}
    if found.certificate is None:
        return None
    i, j = np.nonzero(found.certificate)
    weights = found.certificate[i, j].tolist()
    return {"pairs": [list(pair) for pair in zip(i.tolist(), j.tolist(), weights, strict=True)]}


def _share_separable(rows: list[dict[str, Any]]) -> dict[str, Any]:
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
