"""Tunes from outside a cluster: a task on the cluster drives, this process reports the trials."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from optuna.trial import TrialState

from rgr_dist.running.client import check_shared, wait_for
from rgr_dist.running.cluster import connect
from rgr_dist.running.execution import Execution
from rgr_dist.store.storage import StoreError
from rgr_dist.store.store import Store
from rgr_dist.study import assets
from rgr_dist.study.cell import Cell
from rgr_dist.study.study import Study
from rgr_dist.tuning.journal import finished_trials, open_journal
from rgr_dist.tuning.training_protocol import TunedProbe, Tuning
from rgr_dist.tuning.tuned import Tuned, ended


def tune_from_inside(
    tune_protocol: Callable[..., Tuned],
    tuning: Tuning,
    say: Callable[[str], None],
    execution: Execution,
) -> Tuned:
    """Let a task on the cluster tune; report the trials that end meanwhile.

    Args:
        tune_protocol: the function that the task calls there.
        execution: has an address of the form ray://HOST:PORT.

    Raises:
        ClusterError: the store is a local folder, no cluster answers, or the task failed.
    """
    study, store, name = tuning.study, tuning.store, tuning.trials_name
    check_shared(store, execution.address)
    reported = {trial.number for trial in finished_trials(open_journal(store, study), name)}

    def watch() -> None:
        for trial in finished_trials(open_journal(store, study), name):
            if trial.number not in reported:
                reported.add(trial.number)
                end = ended(trial.value, trial.state is TrialState.PRUNED)
                say(f"{len(reported)} of {tuning.trials}: {end}")

    with connect(execution.address, execution.cpus) as slots:
        import ray

        task = ray.remote(num_cpus=0)(_drive).remote(
            tune_protocol,
            study.model_dump_json(),
            assets.needed(study.cells),
            store.uri,
            [(probe.cell.model_dump_json(), probe.h, probe.d_k) for probe in tuning.probes],
            tuning.trials,
            tuning.seed,
            replace(execution, cpus=slots, address="auto"),
        )
        found: Tuned = wait_for(task, execution.address, watch)
    with suppress(StoreError):  # the result has arrived, so reporting may fail
        watch()
    return found


def _drive(
    tune_protocol: Callable[..., Tuned],
    study_json: str,
    arrays: dict[str, assets.Array],
    root: str,
    probes: Sequence[tuple[str, int, int]],
    trials: int,
    seed: int,
    execution: Execution,
) -> Tuned:
    """Tune from inside the cluster; the process that waits outside reads the journal."""
    assets.take(arrays)
    trained = [TunedProbe(Cell.model_validate_json(cell), h, d_k) for cell, h, d_k in probes]
    study = Study.model_validate_json(study_json)
    tuning = Tuning(study, Store(root), trained, trials, seed)
    return tune_protocol(tuning, lambda _: None, execution)
