"""Takes in what trials report: stores it first, then tells the search."""

from __future__ import annotations

import time
from typing import Any

from rgr_dist.planning.forecast import step_cost
from rgr_dist.planning.listing import reason
from rgr_dist.planning.search_of import Feed
from rgr_dist.running.progress import Summary, View
from rgr_dist.search.portfolio import Portfolio, Probe
from rgr_dist.store.row import lost_rows
from rgr_dist.store.store import Store
from rgr_dist.study.study import Study


class Recorder:
    """Stores what trials report; then tells the search, the summary and the view.

    Attributes:
        feed: turns rows into the scores of probes.
    """

    def __init__(
        self, study: Study, store: Store, portfolio: Portfolio, summary: Summary, view: View
    ) -> None:
        self.study, self.store, self.view = study, store, view
        self.portfolio, self.summary = portfolio, summary
        self.feed = Feed(study, portfolio)

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
            self._count(probe, row)
            if row["stop_reason"] == "failed":
                self.portfolio.tell_failed(probe.cell, probe.key, [row["seed"]])
            else:
                self.feed.tell(row)
        self.show()

    def record_lost(self, probe: Probe, engine: str, device: str, why: str) -> None:
        """Store the runs of a probe that no worker could train, and why."""
        rows = lost_rows(self.feed.runs_of(probe), engine, device, why)
        self.store.append(rows)
        for row in rows:
            self._count(probe, row)

    def _count(self, probe: Probe, row: dict[str, Any]) -> None:
        """Count a run in the summary; a failed one with its probe and the last line of its error"""
        summary, cell = self.summary, self.feed.cells[probe.cell]
        summary.runs += 1
        summary.steps += row["steps"]
        summary.work += row["steps"] * step_cost(cell, row["D_K"])
        summary.train_seconds += row["seconds"]
        if row["stop_reason"] == "failed":
            summary.failed += 1
            name = f"{self.study.name_of(cell)}, h={probe.key.arm}, d_k={probe.key.value}"
            summary.failures.append(f"{name}, seed {row['seed']}: {reason(str(row['error']))}")

    def show(self) -> None:
        """Update the view."""
        self.view.update(self.study, self.portfolio, self.summary)
