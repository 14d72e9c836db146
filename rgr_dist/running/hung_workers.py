"""Ends workers that give no answer: each probe in training has a time limit. An overdue probe is
reported, its worker is ended, and another worker trains it.

A worker may be stopped, swapped out or cut off by the network, and Ray waits for it forever. It is
ended by Ray's ``kill``, after which its trial is lost as if the worker had died. If the worker
still answers, the answer is ignored: Ray has given up the trial, and the same probe has the same
scores wherever it is trained.

A worker that has not yet named itself is not ended, only reported: perhaps there is no room for it.
But Ray can also lose a worker that it was starting, or the room for it, and Tune waits for that
forever. So when none has been at work for long enough, the search is stuck, and the study goes on
with a new Tune, on a new Ray if it has started its own.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rgr_dist.faults import UserError
from rgr_dist.planning.forecast import MULTIPLY_ADDS_PER_SECOND, most_steps, step_cost
from rgr_dist.running.recorder import Recorder
from rgr_dist.search.protocol import Probe
from rgr_dist.study.cell import Cell

if TYPE_CHECKING:
    from rgr_dist.search.tune.searcher import ProbeSearcher

LONGEST_LOOK_AWAY = 5.0
"""Most seconds counted between two looks: if more passed, this process itself was stopped."""
LIMIT_TIMES = 10.0
"""A worker counts as hung after this many times the longest time that its probe may take."""
UNMEASURED_TIMES = 100.0
"""How many times slower than the guess the slowest engine is; used while no run shows the pace."""
SETTING = "RGR_LEASE_SECONDS"
SHORTEST = 600.0
"""Least seconds that a probe is given; ``SETTING`` in the environment overrides it."""


def shortest_limit() -> float:
    """Least seconds that a probe is given.

    Raises:
        UserError: the environment's value is not a positive number.
    """
    text = os.environ.get(SETTING, str(SHORTEST))
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise UserError(
            f"{SETTING}: {text!r} is not valid; give seconds, by default {SHORTEST:.0f}"
        )
    return seconds


def most_work(cell: Cell, width: float, runs: int) -> float:
    """Multiply-adds of this many runs if all go on to their limit."""
    return runs * most_steps(cell) * step_cost(cell, width)


def limit_seconds(work: float, seconds_per_work: float | None) -> float:
    """Seconds after which a worker with this much to do counts as hung.

    Args:
        work: multiply-adds, at most.
        seconds_per_work: of one core, for each of them; None if nothing has been measured.
    """
    if seconds_per_work is None:
        seconds_per_work = UNMEASURED_TIMES / MULTIPLY_ADDS_PER_SECOND
    return LIMIT_TIMES * work * seconds_per_work


class TimeLimits:
    """Ends workers that are overdue.

    Time counts only while this process looks: if it was stopped itself, answers may be waiting.

    Args:
        recorder: knows how fast the runs of each cell are, and shows a line for an overdue probe.
        starts: how often Tune has been started for this before; each time, workers get twice as
            long to begin.
    """

    def __init__(self, recorder: Recorder, searcher: ProbeSearcher, starts: int = 0) -> None:
        self._recorder, self._searcher, self._feed = recorder, searcher, recorder.feed
        self._shortest = shortest_limit()
        self._waited: dict[tuple[str, bool], float] = {}  # by trial, and whether it has a worker
        self._longest_start = self._shortest * 2.0**starts
        self._nobody_works = 0.0  # seconds
        self._looked = time.monotonic()

    def check(self, trials: Iterable[Any]) -> None:
        """Report each of Tune's trials that is overdue, and end its worker if it has named one. The
        time limit starts anew when a trial names its worker. If no worker begins, the search
        is stuck."""
        import ray

        from rgr_dist.running.worker import WORKER

        now = time.monotonic()
        passed, self._looked = min(now - self._looked, LONGEST_LOOK_AWAY), now
        waited, self._waited = self._waited, {}
        self._nobody_works += passed
        for trial in trials:
            probe = self._searcher.probes.get(trial.trial_id)
            if probe is None:
                continue
            worker = trial.last_result.get(WORKER)
            if worker is not None:
                self._nobody_works = 0.0
            key = trial.trial_id, worker is not None
            self._waited[key] = waited.get(key, 0.0) + passed
            limit = self._longest_start if worker is None else self.limit(probe)
            if self._waited[key] > limit:
                self._waited[key] = -math.inf
                self._recorder.view.say(self._overdue(probe, limit, worker is not None))
                if worker is not None:
                    self._searcher.losses.causes[probe.cell, probe.key] = "overdue"
                    ray.kill(worker)
        if not self._waited:
            self._nobody_works = 0.0
        if self._nobody_works > self._longest_start and not self._searcher.is_stuck:
            self._recorder.view.say("no worker begins: the study goes on with a new Ray Tune")
            self._searcher.is_stuck = True

    def limit(self, probe: Probe) -> float:
        """Seconds that a probe is given; doubled for each worker that it has lost."""
        cell = self._feed.cells[probe.cell]
        width = self._feed.sizes.width(probe.arm, probe.value)
        work = most_work(cell, width, len(probe.seeds))
        limit = max(self._shortest, limit_seconds(work, self._recorder.pace(probe.cell)))
        return float(limit * 2 ** self._searcher.losses.of(probe))

    def _overdue(self, probe: Probe, limit: float, has_worker: bool) -> str:
        name = self._feed.study.name_of(self._feed.cells[probe.cell])
        seeds = ", ".join(map(str, probe.seeds))
        what = f"overdue: {name}, {self._feed.sizes.probe_name(*probe.key)}, seeds {seeds}: no "
        if not has_worker:
            return f"{what}worker has begun for {limit:,.0f} s: there is no room, or it stopped"
        return f"{what}answer for {limit:,.0f} s; its worker is ended, and another one trains them"
