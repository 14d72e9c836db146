"""Simulates a search on any number of workers: which of them works when, and on what.

Events are the ends of jobs, kept in a heap; time is made of the runs' times, without any waiting.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import count
from statistics import fmean

from rgr_dist.search.old_portfolio import Portfolio
from rgr_dist.search.protocol import Probe, ProbeKey


@dataclass(frozen=True)
class SimulatedRun:
    """What a run would have given.

    Attributes:
        score: its score.
        seconds: how long it takes a worker.
        steps: training steps.
    """

    score: float
    seconds: float
    steps: int = 0


Curves = Callable[[str, ProbeKey, int], SimulatedRun]
"""The run of (cell, probe, seed)."""


@dataclass(frozen=True)
class Job:
    """Seeds of a probe that one worker trained one after another, from ``start`` to ``end``."""

    probe: Probe
    start: float
    end: float


@dataclass(frozen=True)
class Simulated:
    """A search that has run to its end.

    Attributes:
        workers: how many there were.
        makespan: seconds until the last cell was finished; running jobs were then dropped.
        jobs: every job, in the order in which they started.
        runs, steps: runs of those jobs and their training steps, the dropped ones included.
        useful: share of the seconds worked that the finished search rests on; the rest was
            speculation that proved needless.
    """

    workers: int
    makespan: float
    jobs: tuple[Job, ...]
    runs: int
    steps: int
    useful: float

    def utilisation(self, until: float = 0.9) -> float:
        """Share of the workers' time in which they worked, whether needed or ahead of need.

        Args:
            until: share of the makespan that counts; towards its end, work runs out.
        """
        horizon = until * self.makespan
        worked = math.fsum(max(0.0, min(job.end, horizon) - job.start) for job in self.jobs)
        return worked / (self.workers * horizon) if horizon else 1.0


def simulate(
    portfolio: Portfolio, curves: Curves, workers: int, seconds_per_start: float = 0.0
) -> Simulated:
    """Run a search to its end on simulated workers.

    Args:
        portfolio: a search that nothing else works on.
        seconds_per_start: time the driver takes to start a job; it starts one at a time.

    Raises:
        RuntimeError: the search waits although no worker is busy.
    """
    portfolio.slots = workers
    jobs: list[Job] = []
    working: list[tuple[float, int, Job]] = []
    order, now, driver_free = count(), 0.0, 0.0
    trained: dict[tuple[str, ProbeKey, int], SimulatedRun] = {}
    while not portfolio.is_done:
        while len(working) < workers and isinstance(probe := portfolio.ask(), Probe):
            runs = {seed: curves(probe.cell, probe.key, seed) for seed in probe.seeds}
            trained |= {(probe.cell, probe.key, seed): run for seed, run in runs.items()}
            start = driver_free = max(now, driver_free) + seconds_per_start
            jobs.append(Job(probe, start, start + math.fsum(r.seconds for r in runs.values())))
            heapq.heappush(working, (jobs[-1].end, next(order), jobs[-1]))
        if not working:
            raise RuntimeError("the search waits although nobody works")
        now, _, job = heapq.heappop(working)
        probe = job.probe
        for seed in probe.seeds:
            score = trained[probe.cell, probe.key, seed].score
            portfolio.tell(probe.cell, probe.arm, probe.value, seed, score)
        portfolio.release(probe)
    done = tuple(Job(job.probe, job.start, min(job.end, now)) for job in jobs if job.start < now)
    worked = math.fsum(job.end - job.start for job in done)
    used = math.fsum(trained[key].seconds for key in needed_runs(portfolio) if key in trained)
    return Simulated(
        workers=workers,
        makespan=now,
        jobs=done,
        runs=len(trained),
        steps=sum(run.steps for run in trained.values()),
        useful=min(1.0, used / worked) if worked else 1.0,
    )


def needed_runs(portfolio: Portfolio) -> Iterable[tuple[str, ProbeKey, int]]:
    """The runs that a search rests on, as (cell, probe, seed): what it needed, and no more."""
    for cell in portfolio.plans:
        state = portfolio.state(cell)
        for key in state.used:
            for seed in state.scores(key):
                yield cell, key, seed
        for key in state.confirmed | state.refuted:
            for seed in state.scores(key, "fresh seeds"):
                yield cell, key, seed


def probes_per_arm(portfolio: Portfolio, found: bool = False) -> tuple[float, float]:
    """The mean number of probes per (cell, arm) that was probed, and the mean of ceil(log2 n) + 2.

    For n values, bisection takes ceil(log2 n) probes; two more are a first pass and the fail below
    it. Arms ruled out without a probe are left out, as they would lower both means.

    Args:
        found: count only arms with a threshold; one that is pruned may take a single probe.
    """
    counts, bounds = [], []
    for cell, plan in portfolio.plans.items():
        state = portfolio.state(cell)
        for arm in state.tried:
            if not found or state.result(arm).status == "found":
                counts.append(sum(key.arm == arm for key in state.used))
                bounds.append(math.ceil(math.log2(len(plan.axes[arm]))) + 2)
    return fmean(counts), fmean(bounds)
