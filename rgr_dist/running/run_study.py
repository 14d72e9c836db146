"""Runs a study: plan, connect, train, write."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rgr_dist.engines.choose import check_engine
from rgr_dist.planning import first_guesses
from rgr_dist.planning.budgets import smaller_limits
from rgr_dist.planning.memory import check_memory, machine_memory
from rgr_dist.planning.portfolio import StoredSearch, left_by_failures, open_cells, stored_search
from rgr_dist.planning.same_question import check_same_question, keep_source
from rgr_dist.planning.tables import write_tables
from rgr_dist.running.client import drive_from_inside
from rgr_dist.running.cluster import connect, node_memory, slots_of
from rgr_dist.running.execution import HERE, Execution
from rgr_dist.running.hung_workers import TimeLimits, shortest_limit
from rgr_dist.running.progress import Summary, View
from rgr_dist.running.recorder import Recorder
from rgr_dist.search.protocol import Probe
from rgr_dist.search.tune.connect import is_connected
from rgr_dist.store.row import LOST, OUT_OF_MEMORY, OVERDUE
from rgr_dist.store.store import Store
from rgr_dist.study import assets
from rgr_dist.study.study import Study

WHY = {"died": LOST, "out of memory": OUT_OF_MEMORY, "overdue": OVERDUE}
"""What the rows say of a probe that lost every worker, by the searcher's cause."""


def run_study(
    study: Study,
    store: Store,
    view: View | None = None,
    execution: Execution = HERE,
    source: str = "",
    is_changed: bool = False,
) -> Summary:
    """Train what the study still needs, and leave its tables in the store.

    Every row is stored before the search learns of it. If Ray or the process dies, running
    the study again continues from what was stored.

    Args:
        view: shows how far the study is.
        execution: where and how it is trained.
        source: what the study was read from: a file, or a shipped study's name; empty if neither.
        is_changed: whether its keys were overridden after reading.

    Raises:
        StudyError: the store holds a different question under that name; nothing was written.
        StoreError: another driver writes the store; or a row could not be stored, and the study
            was stopped.
        EngineError: the engine does not train the study's models; nothing was written.
        ClusterError: no Ray cluster answers at the address.
        UserError: one of the remaining runs would not fit in memory; nothing was written.
        LayerError: the layer of a file cannot be trained; nothing was written.
        RunBroken: Ray broke during the run.
    """
    view = view or View()
    view.phase("planning")
    trained = [cell.model for cell in study.cells if cell.record.task != "construction"]
    check_engine(execution.engine, trained or [study.record.name], execution.gpus)
    check_same_question(study, store, source, is_changed)
    if execution.address.startswith("ray://"):  # a task on that cluster drives
        summary = drive_from_inside(_drive, study, store, view, execution)
    else:
        summary = _drive(study, store, view, execution)
    keep_source(study, store, source)
    return summary


def _drive(study: Study, store: Store, view: View, execution: Execution) -> Summary:
    """Drive the study from this process."""
    shortest_limit()  # an invalid one is refused before anything starts
    if any(cell.layer is not None for cell in study.cells):
        from rgr_dist.engines.check_layers import check_layers  # imports torch

        check_layers(study)
    with store.held(study.name):
        search = stored_search(study, store, execution.retry_failed)
        for line in store.left_out:
            view.warn(line)
        summary = Summary(started=time.monotonic())
        is_left = goes_on = not search.portfolio.is_done
        starts = 0
        while goes_on:
            if starts:  # go on from the store
                search = stored_search(study, store)
            with _connected(study, search, view, execution) as workers:
                first_guesses.record(study, store, search.expected)
                store.append(search.implied)
                summary.start(workers)
                goes_on = _train(study, search, store, view, execution, summary, starts)
                summary.stop()
            starts += 1
        store.compact()  # first, as one part is read faster than many
        if is_left:  # from the store alone, so that a later reader finds the same
            search = stored_search(study, store)
        summary.left_failed = left_by_failures(study, search)
        first_guesses.record(study, store, search.expected)
        write_tables(study, store, search.portfolio)
        return summary


@contextmanager
def _connected(
    study: Study, search: StoredSearch, view: View, execution: Execution
) -> Iterator[int]:
    """Connect to a Ray that can train the remaining runs; gives how many probes it runs at once."""
    address, cells = execution.address, open_cells(study, search.portfolio)
    is_local = address == "local"
    if is_local:
        check_memory(study, cells, machine_memory(), "this machine")
    if is_local and not is_connected():
        view.phase("starting Ray")
    with connect(address, execution.cpus, execution.gpus) as workers:
        if not is_local:
            check_memory(study, cells, node_memory(), "the largest node of the cluster")
        view.phase("starting workers")
        yield workers


def _train(
    study: Study,
    search: StoredSearch,
    store: Store,
    view: View,
    execution: Execution,
    summary: Summary,
    starts: int,
) -> bool:
    """Train what the search asks for, until it needs nothing more.

    Args:
        starts: how often Tune has been started for this before.

    Returns:
        Whether it ended because no worker begins.
    """
    from ray.tune import with_parameters

    from rgr_dist.running.ray_health import RayHealth
    from rgr_dist.running.worker import WORKER, ProbeTrainable
    from rgr_dist.search.tune.runner import Watch, WhileNeeded, run_trials
    from rgr_dist.search.tune.searcher import ProbeSearcher

    portfolio, engine, gpus = search.portfolio, execution.engine, execution.gpus
    device = "cuda" if gpus else "cpu"
    recorder = Recorder(study, store, portfolio, summary, view)
    feed = recorder.feed
    health = RayHealth()

    def config_of(probe: Probe) -> dict[str, Any]:
        """A probe as the config of a trial: plain values only."""
        cell = feed.cells[probe.cell]
        is_constructed = cell.record.task == "construction"
        return {
            "cell": cell.model_dump_json(),
            "sizes": study.search.sizes.config(probe.arm, probe.value),
            "seeds": list(probe.seeds),
            "budgets": smaller_limits(study, cell),
            "engine": "auto"
            if is_constructed
            else engine,  # the chosen engine is for trained cells
            "device": device,
        }

    def failed(probe: Probe, why: str) -> None:
        health.check()  # if Ray itself died, all workers went with it, and no run has failed
        recorder.record_lost(probe, engine, device, WHY.get(why, why))

    def slots() -> int:
        """How many probes to hand out at once now; one extra on a cluster, so that it can grow."""
        is_cluster = execution.address != "local"
        if is_cluster:
            summary.resize(slots_of(execution.cpus, gpus))
        portfolio.slots = 1 if gpus else summary.workers  # on a GPU, lanes are fast side by side
        return summary.workers + (is_cluster and summary.workers != execution.cpus)

    searcher = ProbeSearcher(portfolio, config_of, recorder.record, on_failed=failed, slots=slots)
    limits = TimeLimits(recorder, searcher, starts)

    def beat(trials: Sequence[Any]) -> None:
        for line in health.news():
            view.say(line)
        limits.check(trials)
        if len(searcher.probes) >= summary.workers:
            summary.busy_until = time.monotonic()
        if any(WORKER in trial.last_result for trial in trials):
            summary.ready()
            if not summary.runs:
                view.phase("first runs (on first use, compiling kernels)")
        recorder.show()

    with health:
        run_trials(
            with_parameters(ProbeTrainable, arrays=assets.needed(study.cells)),
            searcher,
            {"cpu": 1, "gpu": gpus},
            stop=WhileNeeded(searcher),
            callbacks=[Watch(beat, searcher.explain)],
        )
    if searcher.fault is not None:
        raise searcher.fault
    return searcher.is_stuck
