"""What the run of a study reports: a summary of what was trained, and the view that shows it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from rgr_dist.planning.search_of import StoredSearch
from rgr_dist.search.portfolio import Portfolio
from rgr_dist.study.study import Study


@dataclass
class Summary:
    """What one run of a study has trained. Its times are on ``time.monotonic``'s clock.

    Attributes:
        runs, failed: training runs made this time, and how many of them failed.
        left_failed: failed runs, from this time or before, that leave a threshold open.
        steps: training steps taken this time.
        work: multiply-adds of those steps.
        train_seconds: seconds of training, summed over runs.
        workers: how many probes can run at once at present.
        failures: each run that failed, with its reason in a line.
        search: the study's search as the run left it; there once the run has ended.
        started: when the first worker was ready; until then, when Ray was.
        paced_from, reported: when the first reported run began to train, after workers had
            started and kernels were compiled; and when a run was last reported.
    """

    runs: int = 0
    failed: int = 0
    left_failed: int = 0
    steps: int = 0
    work: float = 0.0
    train_seconds: float = 0.0
    workers: int = 0
    failures: list[str] = field(default_factory=list)
    started: float = 0.0
    paced_from: float | None = None
    reported: float = 0.0
    search: StoredSearch = field(init=False, repr=False)

    @property
    def seconds(self) -> float:
        """Seconds from the first worker to the last report."""
        return max(0.0, self.reported - self.started)

    def seconds_for(self, work: float) -> float | None:
        """Seconds that so much more work will take, at the pace of the runs reported so far; None
        before the first. The time since the last report counts as progress of what trains now."""
        if not self.work or self.paced_from is None:
            return None
        pace = (self.reported - self.paced_from) / self.work
        return max(0.0, work * pace - (time.monotonic() - self.reported))


class View:
    """What shows the run of a study to its user; this base class shows nothing."""

    def phase(self, name: str) -> None:
        """Begin a part of the run, unless it has begun already; the part before has ended."""

    def warn(self, text: str) -> None:
        """Show a line about what is wrong with the store."""

    def update(self, study: Study, portfolio: Portfolio, summary: Summary) -> None:
        """Called after every wave and about once a second."""
