"""From a study and its stored runs to the state of its search, without Ray or torch."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

from rgr_dist.paper import capacity_scale
from rgr_dist.planning.expectations import papers_expectation
from rgr_dist.store.store import Store
from rgr_dist.study.study import Cell, Search, Study
from search.cell_state import CellState
from search.portfolio import Portfolio
from search.prior import Expectation
from search.protocol import CellPlan, HeadResult, ProbeResult
from search.seed_test import SeedTest


def plan_cell(cell: Cell, search: Search, expected: Expectation | None = None) -> CellPlan:
    """How a cell is searched: the widths of every head, first guesses, kept margin."""
    guess = expected or papers_expectation(cell)
    grid = search.mode == "grid"
    return CellPlan(
        cell=cell.cell_id,
        axes=_grid_axes(search) if grid else _axes(cell, search),
        guess_D_K=guess.D_K,
        guess_h=guess.h,
        spread=guess.spread,
        keep_within=None if grid else search.keep_within,  # a grid is measured, not pruned
        intervals=search.intervals,
        every_value=grid,
        every_head=search.heads == "all",
        retest_longer=search.retest_steps is not None,
    )


def _axes(cell: Cell, search: Search) -> Mapping[int, Sequence[int]]:
    default = 4 * capacity_scale(cell.m, cell.d_model, cell.n_edges)
    if search.heads == "all":
        largest = max(1, math.floor(default if search.max_D_K is None else search.max_D_K))
        return {h: range(1, largest // h + 1) for h in range(1, largest + 1)}
    axes = {}
    for h in search.heads:
        limit = max(default, 4 * h) if search.max_D_K is None else search.max_D_K
        axes[h] = range(1, max(1, math.floor(limit / h)) + 1)
    return axes


def _grid_axes(search: Search) -> dict[int, Sequence[int]]:
    widths = search.D_K or ()
    heads = () if search.heads == "all" else search.heads
    return {h: sorted(D // h for D in widths if D % h == 0) for h in heads}


def seed_test(study: Study) -> SeedTest:
    """The test of a probe: by mean F1, or by a mean error that has no upper bound."""
    search, minimised = study.search, study.cells[0].minimised
    return SeedTest(
        target=search.target,
        seeds=search.seeds,
        minimise=minimised,
        high=None if minimised else 1.0,
        extra=search.extra_seeds,
    )


def step_cost(cell: Cell, D_K: float) -> float:
    """Multiply-adds of a training step, roughly: projections and their gradient.

    Of the transformer, all but the attention's own; its output has no gradient for the weights.
    """
    if cell.model == "transformer":
        example = 6 * cell.d_model * (D_K + cell.d_model) + 2 * cell.m * cell.d_model
        return example * (cell.training.batch_size or 1)
    return 6 * cell.context.length * cell.d_model * D_K


def stored_runs(study: Study, store: Store) -> pd.DataFrame:
    """The stored runs of a study's cells, and of those that a retest trains longer."""
    return store.runs(cell.cell_id for cell in study.trained_cells)


def open_portfolio(
    study: Study,
    runs: pd.DataFrame,
    expected: Mapping[str, Expectation] | None = None,
    slots: int = 1,
) -> Portfolio:
    """The study's search, told every stored run; cells that cost most come first.

    A run that failed is not evidence; it will be tried again.

    Args:
        expected: where each cell's search starts, by cell_id; the paper's constants if not given.
        slots: probes that run at once.
    """
    by_cost = sorted(
        study.cells,
        key=lambda cell: (
            -step_cost(cell, capacity_scale(cell.m, cell.d_model, cell.n_edges))
            * cell.training.max_steps
        ),
    )
    plans = [plan_cell(cell, study.search, (expected or {}).get(cell.cell_id)) for cell in by_cost]
    portfolio = Portfolio(plans, seed_test(study), slots)
    teach = Teacher(study, portfolio)
    columns = (runs[name].tolist() for name in Teacher.COLUMNS)
    for values in zip(*columns, strict=True):
        teach(dict(zip(Teacher.COLUMNS, values, strict=True)))
    return portfolio


class Teacher:
    """Tells a study's search of runs.

    A run that diverged did not recover the graph and has the worst score there is. One that
    converged is the same run under any higher step limit, and counts for the retest too.
    """

    COLUMNS = ("cell_id", "h", "d_k", "seed", "score", "stop_reason")

    def __init__(self, study: Study, portfolio: Portfolio) -> None:
        self.portfolio = portfolio
        self.cells = {cell.cell_id: (cell.cell_id, False) for cell in study.cells}
        for cell in study.cells:
            if longer := study.longer(cell):
                self.cells[longer.cell_id] = (cell.cell_id, True)
        self.retests = study.search.retest_steps is not None

    def __call__(self, row: Mapping[str, Any]) -> None:
        """Tell of one run, if it is one of the study's and did not fail."""
        if row["cell_id"] not in self.cells or row["stop_reason"] == "failed":
            return
        cell, longer = self.cells[row["cell_id"]]
        diverged = row["stop_reason"] == "diverged"
        score = self.portfolio.test.worst if diverged else row["score"]
        run = (cell, row["h"], row["d_k"], row["seed"], score)
        self.portfolio.tell(*run, longer=longer)
        if self.retests and not longer and row["stop_reason"] == "converged":
            self.portfolio.tell(*run, longer=True)


def shown_heads(state: CellState) -> list[int]:
    """The heads to report: those listed; of all heads, those that were or are to be tried."""
    if not state.plan.every_head:
        return list(state.plan.axes)
    wanted = {need.place.h for need in state.needs} | set(state.tried)
    return [h for h in state.plan.axes if h in wanted]


def threshold_rows(study: Study, portfolio: Portfolio) -> list[dict[str, Any]]:
    """The thresholds table, one row per (cell, h), in the study's order."""
    rows = []
    for cell in study.cells:
        state = portfolio.state(cell.cell_id)
        for h in shown_heads(state):
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
                    "because": result.because,
                    "limited_by": result.limited_by,
                    "n_edges": cell.n_edges,
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
            "degree": cell.graph.degree,
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
    if result.longer is not None:
        probes["longer"] = result.longer
    return json.dumps({side: _probe(result.h, probe) for side, probe in probes.items()})


def _probe(h: int, probe: ProbeResult | None) -> dict[str, Any] | None:
    if probe is None:
        return None
    return {**asdict(probe), "mean_score": finite(probe.mean_score), "D_K": h * probe.d_k}


def finite(value: float | None) -> float | None:
    """A mean as JSON can hold it: None where a run diverged and the mean is infinite."""
    return value if value is not None and math.isfinite(value) else None
