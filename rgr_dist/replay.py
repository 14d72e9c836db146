"""From a study and its stored runs to the state of its search, without Ray or torch."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

import pandas as pd

from analysis import paper
from rgr_dist.study import Cell, Search, Study
from search.portfolio import Portfolio
from search.protocol import CellPlan, HeadResult
from search.seed_test import SeedTest


def law_width(cell: Cell) -> float:
    """The law's abscissa m' log2(m) / d_model."""
    return cell.n_edges * math.log2(cell.m) / cell.d_model


def plan_cell(cell: Cell, search: Search) -> CellPlan:
    """How a cell is searched: limits of every head, first guesses, kept margin."""
    default = 4 * law_width(cell)
    limits = {}
    for h in search.heads:
        largest = search.max_D_K if search.max_D_K is not None else max(default, 4 * h)
        limits[h] = max(1, math.floor(largest / h))
    grid = None
    if search.mode == "grid":
        widths = search.D_K or ()
        grid = {h: tuple(sorted(D // h for D in widths if D % h == 0)) for h in search.heads}
        limits = {h: max(d_ks) for h, d_ks in grid.items()}
    keep_within = search.keep_within if grid is None else None  # a grid is measured, not pruned
    heads = paper.LAWS["h"]
    return CellPlan(
        cell=cell.cell_id,
        limits=limits,
        guess_D_K=paper.LAWS["D_K"].slope * law_width(cell),
        guess_h=max(1.0, heads.slope * cell.n_edges / cell.d_model + heads.intercept),
        keep_within=keep_within,
        intervals=search.intervals,
        grid=grid,
    )


def step_cost(cell: Cell, D_K: float) -> float:
    """Multiply-adds of a training step, roughly: projections and their gradient."""
    return 6 * cell.context.length * cell.d_model * D_K


def open_portfolio(study: Study, runs: pd.DataFrame) -> Portfolio:
    """The study's search, told every stored run; cells that cost most come first.

    A run that diverged did not recover the graph: it counts as score 0. A run that failed
    is not evidence; it will be tried again.
    """
    by_cost = sorted(
        study.cells,
        key=lambda cell: -step_cost(cell, law_width(cell)) * cell.training.max_steps,
    )
    test = SeedTest(study.search.target, study.search.seeds)
    portfolio = Portfolio([plan_cell(cell, study.search) for cell in by_cost], test)
    known = list(portfolio.plans)
    evidence = runs[runs["cell_id"].isin(known) & (runs["stop_reason"] != "failed")]
    scores = evidence["score"].where(evidence["stop_reason"] != "diverged", 0.0)
    columns = (evidence[name].tolist() for name in ("cell_id", "h", "d_k", "seed"))
    for cell_id, h, d_k, seed, score in zip(*columns, scores.tolist(), strict=True):
        portfolio.tell(cell_id, h, d_k, seed, score)
    return portfolio


def threshold_rows(study: Study, portfolio: Portfolio) -> list[dict[str, Any]]:
    """The thresholds table, one row per (cell, h), in the study's order."""
    rows = []
    for cell in study.cells:
        state = portfolio.state(cell.cell_id)
        for h in study.search.heads:
            result = state.result(h)
            rows.append(
                {
                    "cell_id": cell.cell_id,
                    "model": cell.model,
                    "graph": cell.graph.family,
                    "degree": cell.graph.degree,
                    "m": cell.m,
                    "d_model": cell.d_model,
                    "h": h,
                    "d_k": result.d_k,
                    "D_K": None if result.d_k is None else h * result.d_k,
                    "D_K_low": result.D_K_low,
                    "D_K_high": result.D_K_high,
                    "status": result.status,
                    "mean_score": result.passed.mean_score if result.passed else None,
                    "n_seeds": result.passed.n_seeds if result.passed else None,
                    "certificate": _certificate(result),
                }
            )
    return rows


def decision_rows(study: Study, portfolio: Portfolio) -> list[dict[str, Any]]:
    """The decisions table: every probe of every cell's search, in order, with its evidence."""
    return [
        {
            "cell_id": cell.cell_id,
            "m": cell.m,
            "d_model": cell.d_model,
            "step": step,
            **asdict(decision),
            "D_K": decision.h * decision.d_k,
        }
        for cell in study.cells
        for step, decision in enumerate(portfolio.state(cell.cell_id).decisions)
    ]


def _certificate(result: HeadResult) -> str | None:
    passed, failed = result.contradiction or (result.passed, result.failed)
    if passed is None:
        return None
    probes = {"pass": passed, "fail": failed}
    return json.dumps(
        {
            side: None if probe is None else {**asdict(probe), "D_K": result.h * probe.d_k}
            for side, probe in probes.items()
        }
    )
