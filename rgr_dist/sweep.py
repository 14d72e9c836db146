"""Runs a study: wires its search, Ray Tune and the store together."""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from rgr_dist.replay import decision_rows, open_portfolio, threshold_rows
from rgr_dist.results.store import Store
from rgr_dist.study import Study
from search.portfolio import Portfolio
from search.protocol import Probe

TABLES_EVERY = 10.0
"""Seconds between writes of the study's tables while it runs."""
WATCH_EVERY = 2.0
"""Seconds between looks at the store of a study that is driven elsewhere."""
CONNECT_WITHIN = 5.0
"""Seconds that a cluster has to answer."""


class ClusterError(RuntimeError):
    """There is no Ray cluster to run on; the message says where it was looked for."""


class View(Protocol):
    """Whoever watches a study run."""

    def update(self, study: Study, portfolio: Portfolio, summary: Summary) -> None:
        """Called after every wave and about once a second."""


@dataclass
class Summary:
    """What a study's run amounted to.

    Attributes:
        runs, failed: runs trained now, and those of them that failed.
        steps: training steps taken now.
        train_seconds: seconds of training, summed over runs.
        slots: probes that can run at once.
        started: when the first probe could start, on ``time.monotonic``'s clock.
    """

    runs: int = 0
    failed: int = 0
    steps: int = 0
    train_seconds: float = 0.0
    slots: int = 0
    started: float = 0.0


def run_study(
    study: Study,
    store: Store,
    view: View,
    cpus: int | None = None,
    address: str = "local",
    engine: str = "auto",
) -> Summary:
    """Train what the study still needs, and leave its tables in the store.

    Every row is stored before the search learns of it. If Ray or the process dies, running
    the study again goes on from what was stored.

    Args:
        cpus: slots to use on this machine; all by default. On a cluster: at most so many.
        address: ``local`` for an embedded Ray; ``auto`` or HOST:PORT on a node of a cluster;
            ray://HOST:PORT from outside it, where the store must be a URI both can open.

    Raises:
        StoreError: a row could not be stored; the study was stopped.
        ClusterError: no Ray cluster answers at the address.
    """
    if address.startswith("ray://"):
        return _run_through_client(study, store, view, cpus, address, engine)
    runs = store.runs(cell.cell_id for cell in study.cells)
    portfolio = open_portfolio(study, runs)
    summary = Summary(started=time.monotonic())
    store.write_text(f"studies/{study.name}/study.yaml", study.to_yaml())
    if not portfolio.is_done:
        with _ray(address, cpus) as slots:
            summary.slots = slots
            summary.started = time.monotonic()
            _tune(study, store, portfolio, summary, view, engine)
    write_tables(study, store, portfolio)
    store.compact()
    return summary


def write_tables(study: Study, store: Store, portfolio: Portfolio) -> None:
    """Write the tables that follow from the study and its runs."""
    store.write_study_table(study.name, "decisions", decision_rows(study, portfolio))
    store.write_study_table(study.name, "thresholds", threshold_rows(study, portfolio))


@contextmanager
def _ray(address: str, cpus: int | None) -> Iterator[int]:
    """A Ray to run on, and how many probes it can run at once."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    os.environ["TUNE_DISABLE_AUTO_CALLBACK_LOGGERS"] = "1"
    os.environ["TUNE_DISABLE_SIGINT_HANDLER"] = "1"
    os.environ["RAY_AIR_NEW_OUTPUT"] = "0"  # the newer one prints a banner even when silent
    import ray

    # Ray warns that its own default, a token, is in use.
    token_setup = "ray._private.authentication.authentication_token_setup"
    logging.getLogger(token_setup).setLevel(logging.ERROR)
    logging.getLogger("ray.client_builder").setLevel(logging.WARNING)
    # Tune logs a missing result.json for each trial, since its loggers are off, and a
    # traceback for each failure, which the study keeps as a row and tells at the end.
    logging.getLogger("ray.tune").setLevel(logging.CRITICAL)

    if ray.is_initialized():
        slots = int(ray.cluster_resources().get("CPU", 1))
        yield min(slots, cpus or slots)
        return
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "warning"}
    if address.startswith("ray://"):
        options = {}
    if address == "local":
        # A token of its own keeps Ray from writing one under the home folder.
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
        options |= {"num_cpus": cpus or os.cpu_count(), "include_dashboard": False}
    if address not in ("local", "auto"):
        _check_reachable(address)
    try:
        ray.init(address=address, **options)
    except (ConnectionError, RuntimeError, ValueError) as error:
        if address == "local":
            raise
        raise _no_cluster(address, str(error)) from None
    try:
        slots = max(1, int(ray.cluster_resources().get("CPU", 1)))
        yield min(slots, cpus or slots)
    finally:
        ray.shutdown()


def _check_reachable(address: str) -> None:
    """Make sure that something listens at HOST:PORT; Ray alone would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_WITHIN).close()
    except (OSError, ValueError, OverflowError) as error:
        raise _no_cluster(address, str(error)) from None


def _no_cluster(address: str, reason: str) -> ClusterError:
    return ClusterError(
        f"--address {address}: no Ray cluster answers there ({reason}); valid: local, "
        "auto or HOST:6379 on a node of a running cluster, or ray://HOST:10001"
    )


def _run_through_client(
    study: Study, store: Store, view: View, cpus: int | None, address: str, engine: str
) -> Summary:
    """Let a task on the cluster drive the study, and watch the store that it writes."""
    if "://" not in store.root:
        raise ClusterError(
            f"--out {store.root}: the driver of {address} runs on the cluster and cannot write "
            "a folder of this machine; give a URI that both can open, such as s3://BUCKET/results"
        )
    cell_ids = [cell.cell_id for cell in study.cells]
    before = store.runs(cell_ids)
    summary = Summary(started=time.monotonic())
    with _ray(address, cpus) as slots:
        import ray

        summary.slots = slots
        task = ray.remote(num_cpus=0)(_drive).remote(
            study.model_dump_json(), store.root, slots, engine
        )
        while not ray.wait([task], timeout=WATCH_EVERY)[0]:
            runs = store.runs(cell_ids)
            summary.runs = len(runs) - len(before)
            summary.steps = int(runs["steps"].sum() - before["steps"].sum())
            view.update(study, open_portfolio(study, runs), summary)
        try:
            done: Summary = ray.get(task)
        except ray.exceptions.RayTaskError as error:
            raise ClusterError(f"--address {address}: {error.cause!r}") from None
    return done


def _drive(study_json: str, root: str, cpus: int, engine: str) -> Summary:
    """Drive a study from inside the cluster."""

    class Silent:
        def update(self, study: Study, portfolio: Portfolio, summary: Summary) -> None:
            pass

    study = Study.model_validate_json(study_json)
    return run_study(study, Store(root), Silent(), cpus, "auto", engine)


def _tune(
    study: Study,
    store: Store,
    portfolio: Portfolio,
    summary: Summary,
    view: View,
    engine: str,
) -> None:
    from ray.tune import (
        CheckpointConfig,
        FailureConfig,
        RunConfig,
        TuneConfig,
        Tuner,
        with_resources,
    )

    from rgr_dist.trainable import Heartbeat, ProbeTrainable, probe_config
    from search.ray_scheduler import SeedScheduler
    from search.ray_searcher import ThresholdSearcher

    cells = {cell.cell_id: cell for cell in study.cells}
    written = time.monotonic()

    def record(probe: Probe, result: dict[str, Any]) -> None:
        nonlocal written
        rows = result["rows"]
        store.append(rows)
        for row in rows:
            summary.runs += 1
            summary.steps += row["steps"]
            summary.train_seconds += row["seconds"]
            if row["stop_reason"] == "failed":
                summary.failed += 1
                portfolio.tell_failed(probe.cell, probe.h, probe.d_k)
            else:
                score = 0.0 if row["stop_reason"] == "diverged" else row["score"]
                portfolio.tell(probe.cell, probe.h, probe.d_k, row["seed"], score)
        if time.monotonic() - written > TABLES_EVERY:
            write_tables(study, store, portfolio)
            written = time.monotonic()
        view.update(study, portfolio, summary)

    searcher = ThresholdSearcher(
        portfolio, lambda p: probe_config(p, cells[p.cell], portfolio.test, engine)
    )
    scheduler = SeedScheduler(searcher, record)
    scratch = Path(tempfile.mkdtemp(prefix="rgr-"))
    try:
        Tuner(
            with_resources(ProbeTrainable, {"cpu": 1}),
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
                failure_config=FailureConfig(max_failures=3),
                checkpoint_config=CheckpointConfig(checkpoint_frequency=0, checkpoint_at_end=False),
                callbacks=[Heartbeat(lambda: view.update(study, portfolio, summary))],
            ),
        ).fit()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if scheduler.fault is not None:
        raise scheduler.fault
