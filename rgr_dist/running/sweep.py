"""Runs a study: plan, connect, train, write."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from rgr_dist.planning.budgets import smaller_limits
from rgr_dist.planning.expectations import record
from rgr_dist.planning.forecast import step_cost
from rgr_dist.planning.listing import reason
from rgr_dist.planning.memory import check_memory, machine_memory
from rgr_dist.planning.portfolio import Feed, left_by_failures, open_cells, stored_search
from rgr_dist.planning.tables import write_tables
from rgr_dist.running.client import drive_from_inside
from rgr_dist.running.cluster import connect, is_connected, node_memory
from rgr_dist.running.execution import HERE, Execution
from rgr_dist.running.lease_setting import shortest_lease
from rgr_dist.running.leftovers import scratch_folder
from rgr_dist.running.overdue import Leases, Pace
from rgr_dist.running.progress import Silent, Summary, View
from rgr_dist.running.slots import ClusterSlots
from rgr_dist.store.row import LOST, OUT_OF_MEMORY, OVERDUE, lost_rows
from rgr_dist.store.store import Store
from rgr_dist.study import assets
from rgr_dist.study.study import Study
from search.portfolio import Portfolio
from search.protocol import Probe

TABLES_EVERY = 10.0
"""Seconds between writes of the study's tables while it runs."""


def run_study(
    study: Study,
    store: Store,
    view: View | None = None,
    execution: Execution = HERE,
) -> Summary:
    """Train what the study still needs, and leave its tables in the store.

    Every row is stored before the search learns of it. If Ray or the process dies, running
    the study again goes on from what was stored.

    Args:
        view: is told how far the study is.
        execution: where and how it is trained.

    Raises:
        StoreError: another driver writes the store; or a row could not be stored, and the study
            was stopped.
        ClusterError: no Ray cluster answers at the address.
        MemoryFault: a run that is left would not fit in memory; nothing was written.
        RunBroken: Ray broke half-way; the message names a log.
    """
    view = view or Silent()
    if execution.address.startswith("ray://"):
        return drive_from_inside(run_study, study, store, view, execution)
    with store.held(f"rgr run {study.name}"):
        return _run_here(study, store, view, execution)


def _run_here(study: Study, store: Store, view: View, execution: Execution) -> Summary:
    """Run a study from this process, which holds the store."""
    shortest_lease()  # an invalid one is told before anything starts
    search = stored_search(study, store, execution.retry_failed)
    summary = Summary(started=time.monotonic())
    is_left = not search.portfolio.is_done
    if is_left:
        address, cpus, gpus = execution.address, execution.cpus, execution.gpus
        cells = open_cells(study, search.portfolio)
        if address == "local":
            check_memory(study, cells, machine_memory(), "this machine")
        if address == "local" and not is_connected():
            count = len(study.cells)
            view.say(f"{study.name}: {count} cell{'s' if count > 1 else ''}; starting Ray")
        logs = store.log_folder
        with connect(address, cpus, gpus, log_to=logs) as workers:  # first: else nothing is written
            if address != "local":
                check_memory(study, cells, node_memory(), "the largest node of the cluster")
            summary.start(workers)
            record(study, store, search.expected)
            store.append(search.implied)
            search.portfolio.slots = 1 if gpus else workers  # on a GPU, lanes are fast side by side

            def resize(now: int) -> None:
                summary.resize(now)
                search.portfolio.slots = 1 if gpus else now

            recorder = Recorder(study, store, search.portfolio, summary, view)
            recorder.pace.learn_stored(search.runs)
            slots = None if address == "local" else ClusterSlots(cpus, gpus, resize)
            _train(study, search.portfolio, recorder, execution, slots)
            summary.stop()
    store.compact()  # first: one part is read sooner than many
    if is_left:  # from the store alone, so that whoever reads it later finds the same
        search = stored_search(study, store)
    summary.left_failed = left_by_failures(search)
    record(study, store, search.expected)
    write_tables(study, store, search.portfolio)
    return summary


class Recorder:
    """Stores what trials report; then tells the search, the summary and the view.

    Args:
        feed: turns rows into the scores of probes.
    """

    def __init__(
        self, study: Study, store: Store, portfolio: Portfolio, summary: Summary, view: View
    ) -> None:
        self.study, self.store, self.view = study, store, view
        self.portfolio, self.summary = portfolio, summary
        self.feed = Feed(study, portfolio)
        self.pace = Pace(self.feed)
        self._tables_written = time.monotonic()

    def record(self, probe: Probe, result: dict[str, Any]) -> None:
        """Take in the rows of a trial: those of its runs, and what they tell at other limits.

        Raises:
            StoreError: they could not be stored; the search has not been told of them.
        """
        own, others = self.feed.sorted_out(result["rows"])
        self.store.append([*own, *others])
        self.pace.learn(own)
        summary = self.summary
        if summary.paced_from is None:
            summary.paced_from = time.monotonic() - sum(row["seconds"] for row in own)
        for row in others:
            self.feed.tell(row)
        for row in own:
            summary.runs += 1
            summary.steps += row["steps"]
            width = row[self.feed.sizes.total]
            summary.work += row["steps"] * step_cost(self.feed.cell_of(probe), width)
            summary.train_seconds += row["seconds"]
            if row["stop_reason"] == "failed":
                summary.failed += 1
                summary.failures.append(self._why(probe, row))
                self.portfolio.tell_failed(probe.cell, probe.key)
            else:
                self.feed.tell(row)
        if time.monotonic() - self._tables_written > TABLES_EVERY:
            write_tables(self.study, self.store, self.portfolio)
            self._tables_written = time.monotonic()
        self.show()

    def record_lost(self, probe: Probe, engine: str, device: str, why: str) -> None:
        """Store the runs of a probe whose worker died or was ended on every attempt."""
        runs = self.feed.runs_of(probe)
        rows = lost_rows(runs, engine, device, why)
        self.store.append(rows)
        self.summary.runs += len(runs)
        self.summary.failed += len(runs)
        self.summary.failures.extend(self._why(probe, row) for row in rows)

    def _why(self, probe: Probe, row: dict[str, Any]) -> str:
        """Which run failed, and the last line of its error."""
        name = self.study.name_of(self.feed.cell_of(probe))
        why = reason(str(row["error"]))
        return f"{name}, {self.feed.sizes.probe_name(*probe.key)}, seed {row['seed']}: {why}"

    def show(self) -> None:
        """Update the view."""
        self.view.update(self.study, self.portfolio, self.summary)


def _train(
    study: Study,
    portfolio: Portfolio,
    recorder: Recorder,
    execution: Execution,
    slots: ClusterSlots | None,
) -> None:
    """Train what the search asks for, until it needs nothing more.

    Args:
        slots: says how many probes can run at once; as many as at the start if not given.
    """
    from ray.tune import with_parameters

    from rgr_dist.running.broken import leave_stuck
    from rgr_dist.running.callbacks import Heartbeat
    from rgr_dist.running.ray_health import RayHealth
    from rgr_dist.running.worker import ProbeTrainable, probe_config
    from search.tune.runner import run_trials
    from search.tune.scheduler import SeedScheduler
    from search.tune.searcher import ThresholdSearcher
    from search.tune.stopper import UntilDone

    engine, gpus = execution.engine, execution.gpus
    device = "cuda" if gpus else "cpu"

    def config_of(probe: Probe) -> dict[str, Any]:
        cell = recorder.feed.cell_of(probe)
        sizes = study.search.sizes.config(probe.arm, probe.value)
        return probe_config(probe, cell, sizes, smaller_limits(study, cell), engine, device)

    def lost(probe: Probe) -> None:
        health.check()  # a Ray that died takes every worker with it: that is no failed run
        which, why = (probe.cell, probe.key), LOST
        if which in searcher.out_of_memory:
            why = OUT_OF_MEMORY
        elif which in searcher.overdue:
            why = OVERDUE
        recorder.record_lost(probe, engine, device, why)

    def beat() -> None:
        health.check()
        leases.check()
        for line in health.news():
            recorder.view.say(line)
        recorder.show()

    searcher = ThresholdSearcher(portfolio, config_of, lost)
    scheduler = SeedScheduler(searcher, recorder.record)
    leases = Leases(
        recorder.feed, recorder.pace, searcher, scheduler, shortest_lease(), recorder.view.say
    )
    on_stuck = partial(leave_stuck, recorder.store.log_folder)
    with RayHealth(on_stuck) as health, scratch_folder() as folder:
        run_trials(
            with_parameters(ProbeTrainable, arrays=assets.needed(study.cells)),
            searcher,
            slots or recorder.summary.workers,
            {"cpu": 1, "gpu": gpus},
            scheduler=scheduler,
            stop=UntilDone(lambda: portfolio.is_done),
            callbacks=[Heartbeat(beat)],
            folder=folder,
        )
    if scheduler.fault is not None:
        raise scheduler.fault
