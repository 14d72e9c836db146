"""From a study and its stored runs to its search: plans, test, and the feed of runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd

from rgr_dist.paper import capacity_scale
from rgr_dist.planning.budgets import Row, at_larger_limits, missing_at_larger_limits
from rgr_dist.planning.first_guesses import (
    expectations,
    papers_expectation,
    width_scale,
)
from rgr_dist.planning.forecast import step_cost
from rgr_dist.search.cell_state import CellState
from rgr_dist.search.old_portfolio import Portfolio
from rgr_dist.search.probe_verdict import SeedTest
from rgr_dist.search.protocol import Budget, CellPlan, Probe, ProbeKey, Transition
from rgr_dist.store.prior import Expectation
from rgr_dist.store.schema import OF_FACTS, RUNS
from rgr_dist.store.store import Store
from rgr_dist.study.cell import Cell
from rgr_dist.study.errors import StudyError
from rgr_dist.study.run import Run
from rgr_dist.study.search import Search
from rgr_dist.study.study import Study

MOST_HEADS = 5_000
"""The most head counts that a cell's search may have when all are asked for."""


def plan_cell(
    cell: Cell,
    search: Search,
    expected: Expectation | None = None,
    budgets: Sequence[Cell] = (),
) -> CellPlan:
    """How a cell is searched: the widths of every setting, first guesses, kept margin.

    Of several budgets the smallest is searched first, since it is cheap; its thresholds show where
    to begin at the largest. The others follow in falling order, since runs at a larger budget also
    tell how those at smaller ones end.

    Args:
        budgets: the cell at each of its step limits, increasing.
    """
    guess = expected or papers_expectation(cell)
    is_made = search.mode == "widest" and cell.record.task == "construction"
    grid = search.mode == "grid" or is_made or cell.record.algorithm == "one-head"
    at = budgets.index(cell) if cell in budgets else 0
    shorter = longer = None
    if at + 1 < len(budgets) and (at or grid):
        longer = budgets[at + 1].cell_id
    elif at and not grid:
        shorter = budgets[0].cell_id
    return CellPlan(
        cell=cell.cell_id,
        axes=_axes(cell, search),
        guess_cost=guess.D_K,
        guess_arm=guess.h,
        cost=None if search.sizes.arm == "h" else search.sizes.width,  # None: arm × value
        spread=guess.spread,
        keep_within=search.keep_within if search.mode == "threshold" else None,  # else measure all
        intervals=search.intervals,
        every_value=grid,
        every_arm=search.arms == "all",
        keep_arms=search.keep_heads,
        confirm_seeds=search.confirm_seeds,
        transition=Transition(search.transition_seeds, search.transition_window),
        budget=Budget(f"{cell.training.max_steps} steps", shorter, longer),
        words=search.sizes.words,
    )


def _axes(cell: Cell, search: Search) -> Mapping[int, Sequence[int]]:
    """The widths to search for each setting.

    Alternating projections only add zeros to heads wider than d_model, so none is tried. One
    head is decided at d_model, which stands for every width.
    """
    if cell.record.algorithm == "one-head":
        return {1: [cell.d_model]}
    listed = () if search.arms == "all" else search.arms
    if search.mode == "widest":
        return {arm: [cell.d_model] for arm in listed}
    if search.axis == "d_vo":
        every = range(1, (search.max_d_vo or cell.d_model) + 1)
        return {arm: sorted(search.listed(arm)) or every for arm in listed}
    if search.mode == "grid":
        return {h: sorted(D // h for D in search.widths if D % h == 0) for h in listed}
    default = 4 * capacity_scale(cell.m, cell.d_model, cell.n_edges)
    widest = float(cell.d_model) if cell.record.algorithm == "ours" else math.inf
    if search.heads == "all":
        largest = max(1, math.floor(default if search.max_D_K is None else search.max_D_K))
        if largest > MOST_HEADS:
            raise StudyError(
                f"search.heads: all are {largest:,} of cell {cell.name}; list some, or give a "
                f"max_D_K of at most {MOST_HEADS:,}"
            )
        return {
            h: range(1, math.floor(min(largest / h, widest)) + 1) for h in range(1, largest + 1)
        }
    axes = {}
    for h in listed:
        limit = max(default, 4 * h) if search.max_D_K is None else search.max_D_K
        axes[h] = range(1, max(1, math.floor(min(limit / h, widest))) + 1)
    return axes


def seed_test(study: Study) -> SeedTest:
    """The test of a probe: by mean F1, or by a mean error that has no upper bound."""
    search, minimised = study.search, study.record.minimised
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
        runs: the study's own stored runs, and what they tell at larger step limits.
        implied: the rows of ``runs`` that are not stored.
        expected: where each cell's search starts, by cell_id.
        portfolio: the search, told every run.
    """

    runs: pd.DataFrame
    implied: list[Row]
    expected: dict[str, Expectation]
    portfolio: Portfolio


def stored_search(study: Study, store: Store, retry_failed: bool = False) -> StoredSearch:
    """The search of a study, rebuilt from the store.

    Args:
        retry_failed: ask again for probes of which a run failed.

    Raises:
        StoreError: the store cannot be read.
    """
    stored, expected = stored_runs(study, store), expectations(study, store)
    implied = missing_at_larger_limits(study, stored)
    runs = stored
    if implied:
        own = pd.DataFrame(implied)[list(stored)].astype(stored.dtypes)
        runs = pd.concat([stored, own], ignore_index=True)
    portfolio = open_portfolio(study, runs, expected, retry_failed=retry_failed)
    return StoredSearch(runs, implied, expected, portfolio)


def stored_runs(study: Study, store: Store) -> pd.DataFrame:
    """The stored runs that are a study's own: of its cells, its settings and their widths.

    Studies that share a store and a cell may differ in settings and widths, even in a size that is
    fixed in each of them. Runs on seeds that only another study asks for are included.

    Their ``config`` is left out: it is most of a store's bytes, and nothing is computed from it.
    So are the columns of facts in a study of relations.
    """
    left_out = {"config", *(OF_FACTS if study.search.axis == "d_k" else ())}
    columns = [name for name in RUNS.names if name not in left_out]
    axes = {cell.cell_id: _axes(cell, study.search) for cell in study.cells}
    runs, sizes = store.runs(axes, columns), study.search.sizes
    for size, width in sizes.fixed:
        runs = runs[runs[size] == width]
    probes = zip(
        *(runs[name].tolist() for name in ("cell_id", sizes.arm, sizes.value)), strict=True
    )
    own = [value in axes[cell].get(arm, ()) for cell, arm, value in probes]
    return runs[np.array(own, dtype=bool)].reset_index(drop=True)


def open_portfolio(
    study: Study,
    runs: pd.DataFrame,
    expected: Mapping[str, Expectation] | None = None,
    retry_failed: bool = False,
) -> Portfolio:
    """The study's search, told every stored run; cells that cost most come first.

    A run that failed is no evidence: a probe that needs it leaves its head count open; the rest
    goes on.

    Args:
        expected: where each cell's search starts, by cell_id; the paper's constants if not given.
        retry_failed: ask again for probes of which a run failed.
    """
    by_cost = sorted(study.cells, key=_expected_cost, reverse=True)
    plans = [
        replace(
            plan_cell(
                cell, study.search, (expected or {}).get(cell.cell_id), study.budgets[cell.cell_id]
            ),
            target=study.target_of(cell),
        )
        for cell in by_cost
    ]
    portfolio = Portfolio(plans, seed_test(study))
    Feed(study, portfolio).tell_all(runs)
    if not retry_failed:
        sizes = study.search.sizes
        is_lost = (runs["stop_reason"] == "failed") & runs["cell_id"].isin(list(portfolio.plans))
        failed = runs.loc[is_lost, ["cell_id", sizes.arm, sizes.value, "seed"]]
        for cell, arm, value, seed in failed.itertuples(index=False):
            portfolio.tell_failed(cell, ProbeKey(int(arm), int(value)), [int(seed)])
    return portfolio


def left_by_failures(study: Study, search: StoredSearch) -> int:
    """How many failed runs keep a setting of a cell open."""
    sizes = study.search.sizes
    failed = search.runs.loc[search.runs["stop_reason"] == "failed"]
    runs = failed[["cell_id", sizes.arm, sizes.value, "seed"]].itertuples(index=False)
    return sum(
        (value, seed) in search.portfolio.state(cell).failed_arms.get(arm, ())
        for cell, arm, value, seed in runs
    )


def _expected_cost(cell: Cell) -> float:
    """Multiply-adds of a run at the scale of the cell's threshold."""
    return step_cost(cell, width_scale(cell)) * cell.training.max_steps


class Feed:
    """Connects a study's runs to its search: turns probes into runs, and tells the search of runs.

    A run that diverged did not recover the graph and gets the worst possible score.

    Attributes:
        cells: the study's, by their cell_id.
        sizes: which sizes of a layer a probe's arm and value are.
    """

    def __init__(self, study: Study, portfolio: Portfolio) -> None:
        self.study, self.portfolio = study, portfolio
        self.cells = {cell.cell_id: cell for cell in study.cells}
        self.sizes = study.search.sizes

    def runs_of(self, probe: Probe) -> list[Run]:
        """The runs of a probe, one for each of its seeds."""
        cell, sizes = self.cells[probe.cell], self.sizes.config(probe.arm, probe.value)
        return [Run(cell=cell, seed=seed, **sizes) for seed in probe.seeds]

    def knows(self, row: Mapping[str, Any]) -> bool:
        """Whether the search has the score of a run."""
        return row["seed"] in self.portfolio.scores(row["cell_id"], self.sizes.key(row))

    def sorted_out(self, rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
        """The rows of a trial's own runs, and those at other step limits that the search lacks."""
        own = [row for row in rows if row["trained_to"] == row["max_steps"]]
        others = [row for row in rows if row["trained_to"] != row["max_steps"]]
        others += [larger for row in own for larger in at_larger_limits(self.study, row)]
        return own, [row for row in others if not self.knows(row)]

    def tell(self, row: Mapping[str, Any]) -> None:
        """Tell the search of a run, if it is one of the study's and did not fail."""
        if row["stop_reason"] == "failed" or row["cell_id"] not in self.cells:
            return
        score = self.portfolio.test.worst if row["stop_reason"] == "diverged" else row["score"]
        self.portfolio.tell(row["cell_id"], *self.sizes.key(row), row["seed"], score)

    def tell_all(self, runs: pd.DataFrame) -> None:
        """Tell the search of every run of a table, as ``tell`` does of one."""
        ended = runs["stop_reason"]
        told = runs[(ended != "failed") & runs["cell_id"].isin(list(self.cells))]
        score = told["score"].where(told["stop_reason"] != "diverged", self.portfolio.test.worst)
        names = ("cell_id", self.sizes.arm, self.sizes.value)
        probe = zip(*(told[name].tolist() for name in names), strict=True)
        rows = zip(probe, told["seed"].tolist(), score.tolist(), strict=True)
        for (cell, arm, value), same in groupby(rows, key=itemgetter(0)):
            scores: dict[int, float] = {}
            for _, seed, one in same:
                scores.setdefault(seed, one)
            self.portfolio.tell_probe(cell, ProbeKey(int(arm), int(value)), scores)


def shown_arms(state: CellState) -> list[int]:
    """The settings to report: those listed; if all heads are, those tried or to be tried next."""
    if not state.plan.every_arm:
        return list(state.plan.axes)
    wanted = {need.key.arm for need in state.needs} | set(state.tried)
    return [h for h in state.plan.axes if h in wanted]


def check_heads(cell: Cell, state: CellState, heads: Sequence[int]) -> None:
    """Make sure that a cell's search has these head counts, if it has all of them up to a limit.

    Raises:
        StudyError: it lacks one.
    """
    for h in heads:
        if h not in state.plan.axes:
            largest = max(state.plan.axes)
            raise StudyError(
                f"h = {h}: {cell.name} is searched up to D_K = {largest} (search.max_D_K), which "
                f"has no room for that many heads; valid: 1 to {largest}"
            )
