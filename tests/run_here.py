"""Runs a study in this process, without Ray."""

from __future__ import annotations

from typing import Any

from rgr_dist.engines.choose import make_engine
from rgr_dist.planning.budgets import smaller_limits
from rgr_dist.planning.search_of import Feed, open_portfolio, stored_runs
from rgr_dist.planning.tables import threshold_rows
from rgr_dist.running.worker import train_rows
from rgr_dist.search.portfolio import Portfolio, Probe
from rgr_dist.store.store import Store
from rgr_dist.study.study import Study


def search_here(study: Study, store: Store, probes: int | None = None) -> Portfolio:
    """Train what a study needs, or so many probes of it, into the store."""
    engine = make_engine("fused", model=study.cells[0].model)
    portfolio = open_portfolio(study, stored_runs(study, store))
    feed = Feed(study, portfolio)
    done = 0
    while done != probes and isinstance(probe := portfolio.ask(), Probe):
        budgets = smaller_limits(study, feed.cells[probe.cell])
        own, others = feed.sorted_out(train_rows(engine, feed.runs_of(probe), budgets=budgets))
        rows = [*own, *others]
        store.append(rows)
        for row in rows:
            feed.tell(row)
        portfolio.release(probe)
        done += 1
    return portfolio


def thresholds_here(study: Study, store: Store) -> list[dict[str, Any]]:
    """The study's thresholds, trained in this process."""
    return threshold_rows(study, search_here(study, store))
