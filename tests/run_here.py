"""Runs a study in this process, without Ray."""

from __future__ import annotations

from typing import Any

from rgr_dist.engines import make_engine
from rgr_dist.planning.portfolio import Teacher, open_portfolio, stored_runs, threshold_rows
from rgr_dist.running.worker import train_rows
from rgr_dist.store.store import Store
from rgr_dist.study.study import Run, Study
from search.portfolio import Portfolio
from search.protocol import Probe


def search_here(study: Study, store: Store, probes: int | None = None) -> Portfolio:
    """Train what a study needs, or so many probes of it, into the store."""
    engine = make_engine("fused", threads=2)
    portfolio = open_portfolio(study, stored_runs(study, store))
    teach = Teacher(study, portfolio)
    cells = {cell.cell_id: cell for cell in study.cells}
    done = 0
    while done != probes and isinstance(probe := portfolio.ask(), Probe):
        cell = cells[probe.cell]
        longer = study.longer(cell)
        trained = longer if probe.longer and longer is not None else cell
        runs = [Run(cell=trained, h=probe.h, d_k=probe.d_k, seed=seed) for seed in probe.seeds]
        rows = train_rows(engine, runs)
        store.append(rows)
        for row in rows:
            teach(row)
        portfolio.release(probe)
        done += 1
    return portfolio


def thresholds_here(study: Study, store: Store) -> list[dict[str, Any]]:
    """The study's thresholds, trained in this process."""
    return threshold_rows(study, search_here(study, store))
