"""From a study and its stored runs to its search: plans, test, and the feed of runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from rgr_dist.paper import capacity_scale
from rgr_dist.planning.expectations import Expectation, expectations, papers_expectation
from rgr_dist.planning.forecast import step_cost
from rgr_dist.store.schema import RUNS
from rgr_dist.store.store import Store
from rgr_dist.study.errors import StudyError
from rgr_dist.study.study import Cell, Run, Search, Study
from search.cell_state import CellState
from search.portfolio import Portfolio
from search.protocol import CellPlan, Probe, Words
from search.seed_test import SeedTest

WORDS = Words(value="d_k", cost="D_K", arms="heads")
"""What the search's texts say of ours: h heads of width d_k cost D_K = h * d_k."""


def plan_cell(cell: Cell, search: Search, expected: Expectation | None = None) -> CellPlan:
    """How a cell is searched: the widths of every head, first guesses, kept margin."""
    guess = expected or papers_expectation(cell)
    grid = search.mode == "grid"
    return CellPlan(
        cell=cell.cell_id,
        axes=_grid_axes(search) if grid else _axes(cell, search),
        guess_cost=guess.D_K,
        guess_arm=guess.h,
        spread=guess.spread,
        keep_within=None if grid else search.keep_within,  # a grid is measured, not pruned
        intervals=search.intervals,
        every_value=grid,
        every_arm=search.heads == "all",
        retest_extended=search.retest_steps is not None,
        words=WORDS,
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


@dataclass(frozen=True)
class StoredSearch:
    """A study's search as its stored runs leave it.

    Attributes:
        runs: the stored runs of the study's cells, and those of their retests.
        expected: where each cell's search starts, by cell_id.
        portfolio: the search, told every run.
    """

    runs: pd.DataFrame
    expected: dict[str, Expectation]
    portfolio: Portfolio


def stored_search(study: Study, store: Store) -> StoredSearch:
    """The search of a study, rebuilt from the store.

    Raises:
        StoreError: the store cannot be read.
    """
    runs, expected = stored_runs(study, store), expectations(study, store)
    return StoredSearch(runs, expected, open_portfolio(study, runs, expected))


def stored_runs(study: Study, store: Store) -> pd.DataFrame:
    """The stored runs of a study's cells, and those of their retests with more steps.

    Their ``config`` is left out: it is most of a store's bytes, and nothing is computed from it.
    """
    columns = [name for name in RUNS.names if name != "config"]
    return store.runs((cell.cell_id for cell in study.trained_cells), columns)


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
    by_cost = sorted(study.cells, key=_expected_cost, reverse=True)
    plans = [plan_cell(cell, study.search, (expected or {}).get(cell.cell_id)) for cell in by_cost]
    portfolio = Portfolio(plans, seed_test(study), slots)
    feed = Feed(study, portfolio)
    columns = (runs[name].tolist() for name in Feed.COLUMNS)
    for values in zip(*columns, strict=True):
        feed.tell(dict(zip(Feed.COLUMNS, values, strict=True)))
    return portfolio


def _expected_cost(cell: Cell) -> float:
    """Multiply-adds of a run at the scale of the cell's threshold."""
    scale = capacity_scale(cell.m, cell.d_model, cell.n_edges)
    return step_cost(cell, scale) * cell.training.max_steps


class Feed:
    """Between a study's runs and its search: which runs a probe is, and which probes a run tells.

    A run that diverged did not recover the graph and has the worst score there is. One that
    converged is the same run under any higher step limit, and counts for the retest too.
    """

    COLUMNS = ("cell_id", "h", "d_k", "seed", "score", "stop_reason")

    def __init__(self, study: Study, portfolio: Portfolio) -> None:
        self.portfolio = portfolio
        self.retests = study.search.retest_steps is not None
        self._trained = {(cell.cell_id, False): cell for cell in study.cells}
        for cell in study.cells:
            if extended := study.extended(cell):
                self._trained[cell.cell_id, True] = extended
        self._told: dict[str, list[tuple[str, bool]]] = {}
        for probed, cell in self._trained.items():
            self._told.setdefault(cell.cell_id, []).append(probed)

    def cell_of(self, probe: Probe) -> Cell:
        """The cell that a probe trains: with the step limit of the retest if it is one."""
        return self._trained[probe.cell, probe.extended]

    def runs_of(self, probe: Probe) -> list[Run]:
        """The runs of a probe, one for each of its seeds."""
        cell = self.cell_of(probe)
        return [Run(cell=cell, h=probe.arm, d_k=probe.value, seed=seed) for seed in probe.seeds]

    def tell(self, row: Mapping[str, Any]) -> None:
        """Tell the search of a run, if it is one of the study's and did not fail."""
        if row["stop_reason"] == "failed":
            return
        diverged = row["stop_reason"] == "diverged"
        score = self.portfolio.test.worst if diverged else row["score"]
        for cell_id, extended in self._told.get(row["cell_id"], ()):
            run = (cell_id, row["h"], row["d_k"], row["seed"], score)
            self.portfolio.tell(*run, extended=extended)
            if self.retests and not extended and row["stop_reason"] == "converged":
                self.portfolio.tell(*run, extended=True)


def shown_heads(state: CellState) -> list[int]:
    """The heads to report: those listed; of all heads, those that were or are to be tried."""
    if not state.plan.every_arm:
        return list(state.plan.axes)
    wanted = {need.key.arm for need in state.needs} | set(state.tried)
    return [h for h in state.plan.axes if h in wanted]


def check_heads(state: CellState, heads: Sequence[int]) -> None:
    """Make sure that a cell's search has these head counts, where it has all of them up to one.

    Raises:
        StudyError: it lacks one.
    """
    for h in heads:
        if h not in state.plan.axes:
            largest = max(state.plan.axes)
            raise StudyError(f"--heads {h}: beyond the largest D_K; valid: 1 to {largest}")
