"""From a study and its stored runs to its search: plans, and the scores that runs bring."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd

from rgr_dist.paper import DENSE_LAW, LAWS, compression
from rgr_dist.planning.budgets import Row, at_larger_limits, missing_at_larger_limits
from rgr_dist.planning.forecast import step_cost
from rgr_dist.search.portfolio import Portfolio, Probe
from rgr_dist.search.seed_test import SeedTest
from rgr_dist.search.threshold import Key, Plan
from rgr_dist.store.schema import RUNS
from rgr_dist.store.store import Store
from rgr_dist.study.cell import Cell
from rgr_dist.study.run import Run
from rgr_dist.study.search import Search
from rgr_dist.study.study import Study


def plan_cell(cell: Cell, study: Study) -> Plan:
    """How a cell is searched: the widths of every head count, and where to begin."""
    search = study.search
    is_grid = search.mode == "grid" or cell.record.algorithm == "one-head"
    return Plan(
        axes=axes_of(cell, search),
        test=replace(seed_test(study), target=study.target_of(cell)),
        guess=expected(cell),
        keep_within=None if is_grid else search.keep_within,
        confirm_seeds=0 if is_grid else search.confirm_seeds,
        every_value=is_grid,
    )


def seed_test(study: Study) -> SeedTest:
    """The test of a probe: by mean F1, or by a mean error that has no upper bound."""
    search, minimised = study.search, study.record.minimised
    return SeedTest(search.target, search.seeds, minimised, high=None if minimised else 1.0)


def axes_of(cell: Cell, search: Search) -> Mapping[int, Sequence[int]]:
    """The widths to search for each head count.

    Alternating projections only add zeros to heads wider than d_model, so no threshold is looked
    for there. One head is decided at d_model, which stands for every width.
    """
    if cell.record.algorithm == "one-head":
        return {1: [cell.d_model]}
    if search.D_K is not None:
        return {h: sorted({D // h for D in search.D_K if D % h == 0}) for h in search.heads}
    widest = cell.d_model if cell.record.algorithm == "ours" else sys.maxsize
    default = 4 * cell.scale
    axes = {}
    for h in search.heads:
        limit = max(default, 4 * h) if search.max_D_K is None else search.max_D_K
        axes[h] = range(1, max(1, math.floor(min(limit / h, widest))) + 1)
    return axes


def expected(cell: Cell) -> tuple[float, float]:
    """The head count and D_K that the paper's fits expect of a cell."""
    law, heads = LAWS["D_K"] if cell.graph.degree == 1 else DENSE_LAW, LAWS["h"]
    h = heads.slope * compression(cell.m, cell.d_model, cell.n_edges) + heads.intercept
    return max(1.0, h), law.slope * cell.scale


@dataclass(frozen=True)
class StoredSearch:
    """A study's search as its stored runs leave it.

    Attributes:
        runs: the study's own stored runs, and what they tell at larger step limits.
        implied: the rows of ``runs`` that are not stored.
        portfolio: the search, told every run.
    """

    runs: pd.DataFrame
    implied: list[Row]
    portfolio: Portfolio


def stored_search(study: Study, store: Store, retry_failed: bool = False) -> StoredSearch:
    """The search of a study, rebuilt from the store.

    Args:
        retry_failed: ask again for probes of which a run failed.

    Raises:
        StoreError: the store cannot be read.
    """
    runs = stored_runs(study, store)
    implied = missing_at_larger_limits(study, runs)
    if implied:
        own = pd.DataFrame(implied)[list(runs)].astype(runs.dtypes)
        runs = pd.concat([runs, own], ignore_index=True)
    return StoredSearch(runs, implied, open_portfolio(study, runs, retry_failed))


def stored_runs(study: Study, store: Store) -> pd.DataFrame:
    """The stored runs that are a study's own: of its cells, its head counts and their widths.

    Studies that share a store and a cell may differ in head counts and widths. Runs on seeds that
    only another study asks for are included.

    Their ``config`` is left out: it is most of a store's bytes, and nothing is computed from it.
    """
    columns = [name for name in RUNS.names if name != "config"]
    axes = {cell.cell_id: axes_of(cell, study.search) for cell in study.cells}
    runs = store.runs(axes, columns)
    probes = zip(*(runs[name].tolist() for name in ("cell_id", "h", "d_k")), strict=True)
    own = [d_k in axes[cell].get(h, ()) for cell, h, d_k in probes]
    return runs[np.array(own, dtype=bool)].reset_index(drop=True)


def open_portfolio(study: Study, runs: pd.DataFrame, retry_failed: bool = False) -> Portfolio:
    """The study's search, told every stored run.

    Cells of the largest step limit come first, since their runs tell how shorter ones end; then
    those that cost most. A run that failed is no evidence: a probe that needs it leaves its head
    count open; the rest goes on.

    Args:
        retry_failed: ask again for probes of which a run failed.
    """

    def cost(cell: Cell) -> tuple[int, float]:
        limit = cell.training.max_steps
        return limit, step_cost(cell, cell.scale) * limit

    by_cost = sorted(study.cells, key=cost, reverse=True)
    portfolio = Portfolio({cell.cell_id: plan_cell(cell, study) for cell in by_cost})
    Feed(study, portfolio).tell_all(runs)
    if not retry_failed:
        for cell_id, key, seed in _failed(study, runs):
            portfolio.tell_failed(cell_id, key, [seed])
    return portfolio


def left_by_failures(study: Study, search: StoredSearch) -> int:
    """How many failed runs keep a head count of a cell open."""
    return sum(
        key.arm in search.portfolio.search(cell_id).open
        for cell_id, key, _ in _failed(study, search.runs)
    )


def _failed(study: Study, runs: pd.DataFrame) -> list[tuple[str, Key, int]]:
    """The cell, probe and seed of each run that failed."""
    cells = [cell.cell_id for cell in study.cells]
    is_lost = (runs["stop_reason"] == "failed") & runs["cell_id"].isin(cells)
    lost = runs.loc[is_lost, ["cell_id", "h", "d_k", "seed"]]
    return [
        (str(cell), Key(int(h), int(d_k)), int(seed))
        for cell, h, d_k, seed in lost.itertuples(index=False)
    ]


def key_of(row: Mapping[str, Any]) -> Key:
    """The key of the probe that a stored run belongs to."""
    return Key(int(row["h"]), int(row["d_k"]))


class Feed:
    """Connects a study's runs to its search: turns probes into runs, and tells the search of runs.

    A run that diverged did not recover the graph and gets the worst possible score.

    Attributes:
        cells: the study's, by their cell_id.
    """

    def __init__(self, study: Study, portfolio: Portfolio) -> None:
        self.study, self.portfolio = study, portfolio
        self.cells = {cell.cell_id: cell for cell in study.cells}

    def runs_of(self, probe: Probe) -> list[Run]:
        """The runs of a probe, one for each of its seeds."""
        cell, (h, d_k) = self.cells[probe.cell], probe.key
        return [Run(cell=cell, h=h, d_k=d_k, seed=seed) for seed in probe.seeds]

    def knows(self, row: Mapping[str, Any]) -> bool:
        """Whether the search has the score of a run."""
        return row["seed"] in self.portfolio.scores(row["cell_id"], key_of(row))

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
        worst = self.portfolio.plans[row["cell_id"]].test.worst
        score = worst if row["stop_reason"] == "diverged" else row["score"]
        self.portfolio.tell(row["cell_id"], key_of(row), {row["seed"]: score})

    def tell_all(self, runs: pd.DataFrame) -> None:
        """Tell the search of every run of a table that is one of the study's and did not fail."""
        told = runs[(runs["stop_reason"] != "failed") & runs["cell_id"].isin(list(self.cells))]
        worst = told["cell_id"].map({c: p.test.worst for c, p in self.portfolio.plans.items()})
        score = told["score"].where(told["stop_reason"] != "diverged", worst)
        probes = zip(*(told[name].tolist() for name in ("cell_id", "h", "d_k")), strict=True)
        rows = zip(probes, told["seed"].tolist(), score.tolist(), strict=True)
        for (cell, h, d_k), same in groupby(rows, key=itemgetter(0)):
            scores: dict[int, float] = {}
            for _, seed, one in same:
                scores.setdefault(seed, float(one))
            self.portfolio.tell(cell, Key(int(h), int(d_k)), scores)
