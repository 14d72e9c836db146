"""Workers that give no answer: each probe in training has a time limit. One that is overdue is
reported, its worker is ended, and another trains the probe.

A worker may be stopped, swapped out or cut off by the network; Ray waits for it without end. Ending
it is Ray's ``kill``, after which the trial is lost as that of any worker that dies. Should the
worker still answer, nobody listens: Ray has given its trial up, and the same probe has the same
scores wherever it is trained. One that has not named itself yet can only be reported: it may as
well be that there is no room for it.
"""

from __future__ import annotations

import math
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from rgr_dist.faults import UserError
from rgr_dist.planning.forecast import limit_seconds, most_work, step_cost
from rgr_dist.planning.portfolio import Feed
from rgr_dist.search.protocol import Probe

if TYPE_CHECKING:
    from rgr_dist.search.tune.searcher import ProbeSearcher

LONGEST_LOOK_AWAY = 5.0
"""Seconds between two looks, of which more are not counted: this process was stopped itself."""
SETTING = "RGR_LEASE_SECONDS"
SHORTEST = 600.0
"""Seconds that every probe is given; the environment's ``SETTING`` sets others."""


def shortest_limit() -> float:
    """Seconds that every probe is given.

    Raises:
        UserError: the environment's are no positive number.
    """
    text = os.environ.get(SETTING, str(SHORTEST))
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < math.inf:
        raise UserError(
            f"{SETTING}: {text!r} is not valid; give seconds, by default {SHORTEST:.0f}"
        )
    return seconds


class Pace:
    """Seconds of a core for a multiply-add, as the runs of each cell show it."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._work: dict[str, float] = defaultdict(float)
        self._seconds: dict[str, float] = defaultdict(float)

    def learn(self, rows: Iterable[Mapping[Any, Any]]) -> None:
        """Take in runs that have ended."""
        for row in rows:
            cell = self._feed.cells.get(row["cell_id"])
            if cell is not None and row["steps"] and row["seconds"]:
                width = row[self._feed.sizes.total]
                self._work[row["cell_id"]] += row["steps"] * step_cost(cell, width)
                self._seconds[row["cell_id"]] += row["seconds"]

    def learn_stored(self, runs: pd.DataFrame) -> None:
        """Take in stored runs."""
        width = self._feed.sizes.total
        timed = runs[runs["seconds"] > 0].groupby(["cell_id", width], as_index=False)
        self.learn(timed[["steps", "seconds"]].sum().to_dict("records"))

    def of(self, cell_id: str) -> float | None:
        """The pace of a cell, or else that of the slowest; None while there is none."""
        known = [cell_id] if cell_id in self._work else list(self._work)
        return max((self._seconds[one] / self._work[one] for one in known), default=None)


class TimeLimits:
    """Ends workers that are overdue.

    Time counts while this process looks: after it was stopped itself, answers may be waiting.

    Args:
        feed: which cell a probe trains.
        pace: how fast.
        shortest: seconds that every probe is given.
        say: reports each one that is overdue, in a line.
    """

    def __init__(
        self,
        feed: Feed,
        pace: Pace,
        searcher: ProbeSearcher,
        shortest: float,
        say: Callable[[str], None],
    ) -> None:
        self._feed, self._pace, self._say = feed, pace, say
        self._searcher, self._shortest = searcher, shortest
        self._waited: dict[tuple[str, bool], float] = {}  # by trial, and whether it has a worker
        self._looked = time.monotonic()

    def check(self) -> None:
        """End the worker of every trial that is overdue since it named its worker, and report one
        that never has."""
        import ray

        now = time.monotonic()
        passed, self._looked = min(now - self._looked, LONGEST_LOOK_AWAY), now
        waited, self._waited = self._waited, {}
        for trial_id, probe in self._searcher.probes.items():
            worker = self._searcher.workers.get(trial_id)
            key = trial_id, worker is not None
            self._waited[key] = waited.get(key, 0.0) + passed
            limit = self.limit(probe)
            if self._waited[key] > limit:
                self._waited[key] = float("-inf")
                self._say(self._overdue(probe, limit, worker is not None))
                if worker is not None:
                    self._searcher.lost.note(probe, "overdue")
                    ray.kill(worker)

    def limit(self, probe: Probe) -> float:
        """Seconds that a probe is given, twice as many after each worker that it has lost."""
        cell = self._feed.cells[probe.cell]
        width = self._feed.sizes.width(probe.arm, probe.value)
        work = most_work(cell, width, len(probe.seeds))
        limit = max(self._shortest, limit_seconds(work, self._pace.of(probe.cell)))
        return float(limit * 2 ** self._searcher.lost.count(probe))

    def _overdue(self, probe: Probe, limit: float, has_worker: bool) -> str:
        name = self._feed.study.name_of(self._feed.cells[probe.cell])
        seeds = ", ".join(map(str, probe.seeds))
        what = f"overdue: {name}, {self._feed.sizes.probe_name(*probe.key)}, seeds {seeds}: no "
        if not has_worker:
            return f"{what}worker has begun for {limit:,.0f} s: there is no room, or it stopped"
        return f"{what}answer for {limit:,.0f} s; its worker is ended, and another one trains them"
