"""Runs a study: plan, connect, train, write."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from rgr_dist.engines.choose import check_engine
from rgr_dist.faults import RunBroken
from rgr_dist.planning.budgets import smaller_limits
from rgr_dist.planning.search_of import StoredSearch, left_by_failures, stored_search
from rgr_dist.running.cluster import Execution, Pulse, connect, slots_of
from rgr_dist.running.progress import Summary, View
from rgr_dist.running.recorder import Recorder
from rgr_dist.search.portfolio import Probe
from rgr_dist.search.tune.connect import is_connected
from rgr_dist.store.row import LOST, OUT_OF_MEMORY
from rgr_dist.store.store import Store
from rgr_dist.study import assets
from rgr_dist.study.study import Study

STALLED_AFTER = 600.0
"""Seconds without a word from any trial after which a run ends. Each says every minute that it is
there, so that all of them are cut off or stopped, or none begins."""
LONGEST_LOOK_AWAY = 5.0
"""Most seconds counted between two looks: if more passed, this process itself was stopped."""


def run_study(
    study: Study, store: Store, view: View | None = None, execution: Execution | None = None
) -> Summary:
    """Train what the study still needs; the store then has the study as resolved.

    Every row is stored before the search learns of it. If Ray or the process dies, running
    the study again continues from what was stored. Runs that failed before are tried again.

    Args:
        view: shows how far the study is.
        execution: where and how it is trained; on this machine by default.

    Raises:
        StoreError: another driver writes the store; or a row could not be stored, and the study
            was stopped.
        EngineError: the engine does not train the study's models; nothing was written.
        ClusterError: no Ray cluster answers at the address.
        LayerError: the layer of a file cannot be trained; nothing was written.
        RunBroken: Ray broke or stalled during the run.
    """
    view, execution = view or View(), execution or Execution(address="local")
    view.phase("planning")
    trained = [cell.model for cell in study.cells if cell.record.task != "construction"]
    check_engine(execution.engine, trained or [study.record.name], execution.gpus)
    if any(cell.layer is not None for cell in study.cells):
        from rgr_dist.engines.check_layers import check_layers  # imports torch

        check_layers(study)
    with store.held(study.name):
        search = stored_search(study, store, retry_failed=True)
        for line in store.left_out:
            view.warn(line)
        summary = Summary()
        if not search.portfolio.is_done:
            if execution.address == "local" and not is_connected():
                view.phase("starting Ray")
            with connect(execution.address, execution.cpus, execution.gpus) as workers:
                view.phase("starting workers")
                store.append(search.implied)
                summary.workers, summary.started = workers, time.monotonic()
                _train(study, search, store, view, execution, summary)
            store.compact()
            search = stored_search(study, store)  # as a later reader finds it
        summary.search, summary.left_failed = search, left_by_failures(study, search)
        store.write_study(study)
        return summary


def _train(
    study: Study,
    search: StoredSearch,
    store: Store,
    view: View,
    execution: Execution,
    summary: Summary,
) -> None:
    """Train what the search asks for, until it needs nothing more."""
    from ray.tune import with_parameters

    from rgr_dist.running.worker import ProbeTrainable, UntilItTrains
    from rgr_dist.search.tune.runner import Watch, run_trials
    from rgr_dist.search.tune.searcher import LOW_ON_MEMORY, ProbeSearcher, is_final

    portfolio, engine, gpus = search.portfolio, execution.engine, execution.gpus
    device = "cuda" if gpus else "cpu"
    recorder = Recorder(study, store, portfolio, summary, view)
    feed, pulse = recorder.feed, Pulse()
    heard, silent, looked = 0, 0.0, time.monotonic()

    def config_of(probe: Probe) -> dict[str, Any]:
        """A probe as the config of a trial: plain values only."""
        cell = feed.cells[probe.cell]
        is_made = cell.record.task == "construction"  # the chosen engine is for what is trained
        return {
            "cell": cell.model_dump_json(),
            "sizes": {"h": probe.arm, "d_k": probe.value},
            "seeds": list(probe.seeds),
            "budgets": smaller_limits(study, cell),
            "engine": "auto" if is_made else engine,
            "device": device,
        }

    def failed(probe: Probe, error: str) -> None:
        pulse.check()  # if Ray itself died, all workers went with it, and no run has failed
        why = OUT_OF_MEMORY if LOW_ON_MEMORY in error else error if is_final(error) else LOST
        recorder.record_lost(probe, engine, device, why)

    def slots() -> int:
        """How many probes to hand out at once now; one extra on a cluster, so that it can grow."""
        is_cluster = execution.address != "local"
        if is_cluster:
            summary.workers = slots_of(execution.cpus, gpus)
        portfolio.slots = 1 if gpus else summary.workers  # on a GPU, lanes are fast side by side
        return summary.workers + (is_cluster and summary.workers != execution.cpus)

    def beat(trials: Sequence[Any]) -> None:
        nonlocal heard, silent, looked
        pulse.check()
        reports = sum(trial.last_result.get("training_iteration", 0) for trial in trials)
        now = time.monotonic()
        if reports and not (heard or summary.runs):  # the first worker is there
            summary.started = now
        silent = silent + min(now - looked, LONGEST_LOOK_AWAY) if reports == heard else 0.0
        heard, looked = reports, now
        if silent > STALLED_AFTER:
            raise RunBroken(f"no trial was heard of for {STALLED_AFTER:.0f} seconds")
        if reports and not summary.runs:
            view.phase("first runs (on first use, compiling kernels)")
        recorder.show()

    searcher = ProbeSearcher(portfolio, config_of, recorder.record, on_failed=failed, slots=slots)
    run_trials(
        with_parameters(ProbeTrainable, arrays=assets.needed(study.cells)),
        searcher,
        {"cpu": 1, "gpu": gpus},
        stop=UntilItTrains(searcher),
        callbacks=[Watch(beat, searcher.explain)],
    )
    if searcher.fault is not None:
        raise searcher.fault
