"""Takes in what trials report: stores it first, then tells the search."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import Any

from rgr_dist.planning.forecast import step_cost
from rgr_dist.planning.listing import reason
from rgr_dist.planning.portfolio import Feed
from rgr_dist.planning.tables import write_tables
from rgr_dist.running.progress import Summary, View
from rgr_dist.search.old_portfolio import Portfolio
from rgr_dist.search.protocol import Probe
from rgr_dist.store.row import lost_rows
from rgr_dist.store.store import Store
from rgr_dist.study.study import Study

TABLES_EVERY = 10.0
"""Seconds between writes of the study's tables while it runs."""


class Recorder:
    """Stores what trials report; then tells the search, the summary and the view.

    Attributes:
        feed: turns rows into the scores of probes.
        work, seconds: multiply-adds of the runs of each cell, and the core seconds that they took.
    """

    def __init__(
        self, study: Study, store: Store, portfolio: Portfolio, summary: Summary, view: View
    ) -> None:
        self.study, self.store, self.view = study, store, view
        self.portfolio, self.summary = portfolio, summary
        self.feed = Feed(study, portfolio)
        self.work: dict[str, float] = defaultdict(float)
        self.seconds: dict[str, float] = defaultdict(float)
        self._tables_written = time.monotonic()

    def record(self, trial_id: str, probe: Probe, result: dict[str, Any]) -> None:
        """Take in the rows of a trial: those of its runs, and those read off at other step limits.

        Raises:
            StoreError: the rows could not be stored; the search has not been told of them.
        """
        own, others = self.feed.sorted_out(result["rows"])
        self.store.append([*own, *others])
        summary = self.summary
        summary.reported = time.monotonic()
        count = len(self.study.cells)
        self.view.phase(f"training {count} cell{'s' if count > 1 else ''}")
        if summary.paced_from is None:
            summary.paced_from = summary.reported - sum(row["seconds"] for row in own)
        for row in others:
            self.feed.tell(row)
        for row in own:
            summary.runs += 1
            summary.steps += row["steps"]
            width = row[self.feed.sizes.total]
            work = row["steps"] * step_cost(self.feed.cells[probe.cell], width)
            summary.work += work
            summary.train_seconds += row["seconds"]
            self.work[probe.cell] += work
            self.seconds[probe.cell] += row["seconds"]
            if row["stop_reason"] == "failed":
                summary.failed += 1
                summary.failures.append(self._why(probe, row))
                self.portfolio.tell_failed(probe.cell, probe.key, [row["seed"]])
            else:
                self.feed.tell(row)
        if time.monotonic() - self._tables_written > TABLES_EVERY:
            write_tables(self.study, self.store, self.portfolio)
            self._tables_written = time.monotonic()
        self.show()

    def pace(self, cell: str) -> float | None:
        """Core seconds per multiply-add of a cell; of the slowest cell if none of its runs has
        ended; None if none has at all."""
        known = {key: self.seconds[key] / work for key, work in self.work.items() if work}
        return known.get(cell, max(known.values(), default=None))

    def record_lost(self, probe: Probe, engine: str, device: str, why: str) -> None:
        """Store the runs of a probe that no worker could train, and why."""
        runs = self.feed.runs_of(probe)
        rows = lost_rows(runs, engine, device, why)
        self.store.append(rows)
        self.summary.runs += len(runs)
        self.summary.failed += len(runs)
        self.summary.failures.extend(self._why(probe, row) for row in rows)

    def _why(self, probe: Probe, row: dict[str, Any]) -> str:
        """Which run failed, and the last line of its error."""
        name = self.study.name_of(self.feed.cells[probe.cell])
        why = reason(str(row["error"]))
        return f"{name}, {self.feed.sizes.probe_name(*probe.key)}, seed {row['seed']}: {why}"

    def show(self) -> None:
        """Update the view."""
        self.view.update(self.study, self.portfolio, self.summary)
