"""Runs a study from outside a cluster: a task on it drives, this process watches the store."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pandas as pd

from rgr_dist.faults import RunBroken, UserError
from rgr_dist.planning.budgets import trained_steps
from rgr_dist.planning.forecast import work_done
from rgr_dist.planning.portfolio import open_portfolio, stored_runs, stored_search
from rgr_dist.running.cluster import ClusterError, connect
from rgr_dist.running.execution import Execution
from rgr_dist.running.progress import Summary, View
from rgr_dist.store.storage import StoreError
from rgr_dist.store.store import Store
from rgr_dist.study import assets
from rgr_dist.study.study import Study

WATCH_EVERY = 2.0
"""Seconds between looks at the store."""


def drive_from_inside(
    run_study: Callable[..., Summary],
    study: Study,
    store: Store,
    view: View,
    execution: Execution,
) -> Summary:
    """Let a task on the cluster run the study; meanwhile, show what the store holds.

    Args:
        run_study: the function that the task calls there.
        execution: has an address of the form ray://HOST:PORT.

    Raises:
        ClusterError: the store is a local folder, no cluster answers, or the task failed.
    """
    address = execution.address
    check_shared(store, address)
    search = stored_search(study, store, execution.retry_failed)
    for line in store.left_out:
        view.warn(line)
    before, work_before = trained(search.runs), work_done(search.runs, study)
    summary = Summary()
    view.phase(f"connecting to {address}")
    with connect(address, execution.cpus, execution.gpus) as workers:
        import ray

        view.phase("training there")
        summary.start(workers)
        summary.paced_from = summary.started
        task = ray.remote(num_cpus=0)(_drive).remote(
            run_study,
            study.model_dump_json(),
            assets.needed(study.cells),
            store.uri,
            replace(execution, address="auto"),
        )

        def watch() -> None:
            runs = stored_runs(study, store)
            count, steps = trained(runs)
            if count - before[0] > summary.runs:
                summary.runs, summary.reported = count - before[0], time.monotonic()
            summary.steps = steps - before[1]
            summary.work = work_done(runs, study) - work_before
            now = open_portfolio(study, runs, search.expected, retry_failed=execution.retry_failed)
            view.update(study, now, summary)

        done: Summary = wait_for(task, address, watch)
    return done


def trained(runs: pd.DataFrame) -> tuple[int, int]:
    """How many of these runs were trained themselves, not read off longer ones or failed; steps."""
    is_own = runs["trained_to"].fillna(runs["max_steps"]) == runs["max_steps"]
    is_own &= runs["stop_reason"] != "failed"
    return int(is_own.sum()), int(trained_steps(runs).sum())


def check_shared(store: Store, address: str) -> None:
    """Make sure that a driver on the cluster can write the store.

    Raises:
        ClusterError: the store is a folder of this machine.
    """
    if store.local_path is not None:
        raise ClusterError(
            f"--store {store.root}: the driver of {address} runs on the cluster and cannot write "
            "a folder of this machine; give a URI that both can open, such as s3://BUCKET/results"
        )


def wait_for(task: Any, address: str, watch: Callable[[], None]) -> Any:
    """Wait for what a task on the cluster returns; meanwhile, call ``watch`` every few seconds.

    If the store cannot be read once, the next call may succeed.

    Raises:
        ClusterError: the task refused its input.
        RunBroken: the task or the cluster died.
    """
    import ray

    try:
        while not ray.wait([task], timeout=WATCH_EVERY)[0]:
            with suppress(StoreError):
                watch()
        return ray.get(task)
    except (ray.exceptions.RayError, ConnectionError) as error:
        cause = getattr(error, "cause", error)
        is_fault_of_input = isinstance(cause, UserError) and not isinstance(cause, RunBroken)
        raise (ClusterError if is_fault_of_input else RunBroken)(
            f"--address {address}: the driver there ended: {cause!r}"
        ) from None


def _drive(
    run_study: Callable[..., Summary],
    study_json: str,
    arrays: dict[str, assets.Array],
    root: str,
    execution: Execution,
) -> Summary:
    """Drive a study from inside the cluster."""
    assets.take(arrays)
    study = Study.model_validate_json(study_json)
    return run_study(study, Store(root), View(), execution)
