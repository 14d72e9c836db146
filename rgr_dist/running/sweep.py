"""Runs a study: wires its search, Ray Tune and the store together."""

from __future__ import annotations

import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from rgr_dist.planning.cost import step_cost, work_done
from rgr_dist.planning.expectations import record
from rgr_dist.planning.portfolio import Feed, open_portfolio, stored_runs, stored_search
from rgr_dist.planning.tables import write_tables
from rgr_dist.running.cluster import ClusterError, connect
from rgr_dist.store.store import Store
from rgr_dist.study import assets
from rgr_dist.study.study import Study
from search.portfolio import Portfolio
from search.protocol import Probe

TABLES_EVERY = 10.0
"""Seconds between writes of the study's tables while it runs."""
WATCH_EVERY = 2.0
"""Seconds between looks at the store of a study that is driven elsewhere."""


class View(Protocol):
    """Whoever watches a study run."""

    def say(self, text: str) -> None:
        """A line of its own."""

    def update(self, study: Study, portfolio: Portfolio, summary: Summary) -> None:
        """Called after every wave and about once a second."""


@dataclass
class Summary:
    """What a study's run amounted to.

    Attributes:
        runs, failed: runs trained now, and those of them that failed.
        steps: training steps taken now.
        work: multiply-adds of those steps.
        train_seconds: seconds of training, summed over runs.
        seconds: from ``started`` to the end of the last probe.
        slots: probes that can run at once.
        started: when the first probe could start, on ``time.monotonic``'s clock.
        paced_from: when the first run that is told began to train, on the same clock: after
            workers started and kernels were compiled. Watched from outside a cluster, ``started``.
    """

    runs: int = 0
    failed: int = 0
    steps: int = 0
    work: float = 0.0
    train_seconds: float = 0.0
    seconds: float = 0.0
    slots: int = 0
    started: float = 0.0
    paced_from: float | None = None

    @property
    def utilisation(self) -> float:
        """Share of the workers' time in which they trained."""
        whole = self.slots * self.seconds
        return self.train_seconds / whole if whole else 0.0


def run_study(
    study: Study,
    store: Store,
    view: View,
    cpus: int | None = None,
    address: str = "local",
    engine: str = "auto",
    gpus: float = 0.0,
) -> Summary:
    """Train what the study still needs, and leave its tables in the store.

    Every row is stored before the search learns of it. If Ray or the process dies, running
    the study again goes on from what was stored.

    Args:
        cpus: slots to use on this machine; all by default. On a cluster: at most so many.
        address: ``local`` for an embedded Ray; ``auto`` or HOST:PORT on a node of a cluster;
            ray://HOST:PORT from outside it, where the store must be a URI both can open.
        gpus: share of a GPU that each probe trains on; 0 trains on CPUs.

    Raises:
        StoreError: a row could not be stored; the study was stopped.
        ClusterError: no Ray cluster answers at the address.
    """
    if address.startswith("ray://"):
        return _run_through_client(study, store, view, cpus, address, engine, gpus)
    search = stored_search(study, store)
    summary = Summary(started=time.monotonic())
    if not search.portfolio.is_done:
        if address == "local":
            count = len(study.cells)
            view.say(f"{study.name}: {count} cell{'s' if count > 1 else ''}; starting Ray")
        with connect(address, cpus, gpus) as slots:  # first, for nothing is written without a Ray
            summary.slots = slots
            summary.started = time.monotonic()
            record(study, store, search.expected)
            search.portfolio.slots = 1 if gpus else slots  # on a GPU, lanes are fast side by side
            _tune(study, store, search.portfolio, summary, view, engine, gpus)
            summary.seconds = time.monotonic() - summary.started
    record(study, store, search.expected)
    store.compact()
    # From the store alone, so that whoever reads it later finds the same.
    write_tables(study, store, stored_search(study, store).portfolio)
    return summary


def _run_through_client(
    study: Study,
    store: Store,
    view: View,
    cpus: int | None,
    address: str,
    engine: str,
    gpus: float,
) -> Summary:
    """Let a task on the cluster drive the study, and watch the store that it writes."""
    if "://" not in store.root:
        raise ClusterError(
            f"--out {store.root}: the driver of {address} runs on the cluster and cannot write "
            "a folder of this machine; give a URI that both can open, such as s3://BUCKET/results"
        )
    search = stored_search(study, store)
    before, work_before = search.runs, work_done(search.runs, study)
    summary = Summary(started=time.monotonic())
    with connect(address, cpus) as slots:
        import ray

        summary.slots, summary.paced_from = slots, summary.started
        task = ray.remote(num_cpus=0)(_drive).remote(
            study.model_dump_json(), assets.needed(study.cells), store.root, slots, engine, gpus
        )
        while not ray.wait([task], timeout=WATCH_EVERY)[0]:
            runs = stored_runs(study, store)
            summary.runs = len(runs) - len(before)
            summary.steps = int(runs["steps"].sum() - before["steps"].sum())
            summary.work = work_done(runs, study) - work_before
            view.update(study, open_portfolio(study, runs, search.expected), summary)
        try:
            done: Summary = ray.get(task)
        except ray.exceptions.RayError as error:
            cause = getattr(error, "cause", error)
            raise ClusterError(f"--address {address}: the driver there ended: {cause!r}") from None
    return done


def _drive(
    study_json: str,
    arrays: dict[str, assets.Array],
    root: str,
    cpus: int,
    engine: str,
    gpus: float,
) -> Summary:
    """Drive a study from inside the cluster."""

    class Silent:
        def say(self, text: str) -> None:
            pass

        def update(self, study: Study, portfolio: Portfolio, summary: Summary) -> None:
            pass

    assets.take(arrays)
    study = Study.model_validate_json(study_json)
    return run_study(study, Store(root), Silent(), cpus, "auto", engine, gpus)


def _tune(
    study: Study,
    store: Store,
    portfolio: Portfolio,
    summary: Summary,
    view: View,
    engine: str,
    gpus: float,
) -> None:
    from ray.tune import (
        CheckpointConfig,
        FailureConfig,
        RunConfig,
        TuneConfig,
        Tuner,
        with_parameters,
        with_resources,
    )

    from rgr_dist.running.worker import (
        Heartbeat,
        ProbeTrainable,
        UntilDone,
        lost_rows,
        probe_config,
    )
    from search.tune.scheduler import SeedScheduler
    from search.tune.searcher import ThresholdSearcher

    feed = Feed(study, portfolio)
    written = time.monotonic()

    def take_in(probe: Probe, result: dict[str, Any]) -> None:
        nonlocal written
        rows = result["rows"]
        store.append(rows)
        if summary.paced_from is None:
            summary.paced_from = time.monotonic() - sum(row["seconds"] for row in rows)
        for row in rows:
            summary.runs += 1
            summary.steps += row["steps"]
            summary.work += row["steps"] * step_cost(feed.cell_of(probe), row["D_K"])
            summary.train_seconds += row["seconds"]
            if row["stop_reason"] == "failed":
                summary.failed += 1
                portfolio.tell_failed(probe.cell, probe.key)
            else:
                feed.tell(row)
        if time.monotonic() - written > TABLES_EVERY:
            write_tables(study, store, portfolio)
            written = time.monotonic()
        view.update(study, portfolio, summary)

    def lost(probe: Probe) -> None:
        runs = feed.runs_of(probe)
        store.append(lost_rows(runs, engine))
        summary.runs += len(runs)
        summary.failed += len(runs)

    device = "cuda" if gpus else "cpu"
    searcher = ThresholdSearcher(
        portfolio, lambda probe: probe_config(probe, feed.cell_of(probe), engine, device), lost
    )
    scheduler = SeedScheduler(searcher, take_in)
    trainable = with_parameters(ProbeTrainable, arrays=assets.needed(study.cells))
    scratch = Path(tempfile.mkdtemp(prefix="rgr-"))
    try:
        Tuner(
            with_resources(trainable, {"cpu": 1, "gpu": gpus}),
            tune_config=TuneConfig(
                search_alg=searcher,
                scheduler=scheduler,
                num_samples=-1,
                max_concurrent_trials=summary.slots,
                reuse_actors=True,
                trial_dirname_creator=lambda trial: str(trial.trial_id),
            ),
            run_config=RunConfig(
                storage_path=str(scratch),
                verbose=0,
                failure_config=FailureConfig(max_failures=0),  # the searcher retries
                stop=UntilDone(lambda: portfolio.is_done),
                checkpoint_config=CheckpointConfig(checkpoint_frequency=0, checkpoint_at_end=False),
                callbacks=[Heartbeat(lambda: view.update(study, portfolio, summary))],
            ),
        ).fit()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if scheduler.fault is not None:
        raise scheduler.fault
