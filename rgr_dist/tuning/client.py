"""Tunes from outside a cluster: a task on it drives, this process tells of the trials."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from optuna.trial import TrialState

from rgr_dist.running.client import check_shared, wait_for
from rgr_dist.running.cluster import connect
from rgr_dist.store.store import Store
from rgr_dist.study import assets
from rgr_dist.study.cell import Cell
from rgr_dist.study.study import Study
from rgr_dist.tuning.journal import finished_trials, open_journal, trials_name
from rgr_dist.tuning.training_protocol import TunedProbe
from rgr_dist.tuning.tuned import Tuned, ended

TuneProtocol = Callable[..., Tuned]


def tune_from_inside(
    tune_protocol: TuneProtocol,
    study: Study,
    store: Store,
    probes: Sequence[TunedProbe],
    trials: int,
    seed: int,
    say: Callable[[str], None],
    cpus: int | None,
    address: str,
    engine: str,
) -> Tuned:
    """Let a task on the cluster tune; tell of the trials that end meanwhile.

    Args:
        tune_protocol: what the task calls there.
        address: ray://HOST:PORT.

    Raises:
        ClusterError: the store is a local folder, no cluster answers, or the task failed.
    """
    check_shared(store, address)
    name = trials_name(study, probes)
    told = len(finished_trials(open_journal(store, study), name))

    def watch() -> None:
        nonlocal told
        for trial in finished_trials(open_journal(store, study), name)[told:]:
            told += 1
            say(f"{told} of {trials}: {ended(trial.value, trial.state is TrialState.PRUNED)}")

    with connect(address, cpus) as slots:
        import ray

        task = ray.remote(num_cpus=0)(_drive).remote(
            tune_protocol,
            study.model_dump_json(),
            assets.needed(study.cells),
            store.root,
            [(probe.cell.model_dump_json(), probe.h, probe.d_k) for probe in probes],
            trials,
            seed,
            slots,
            engine,
        )
        found: Tuned = wait_for(task, address, watch)
    watch()
    return found


def _drive(
    tune_protocol: TuneProtocol,
    study_json: str,
    arrays: dict[str, assets.Array],
    root: str,
    places: Sequence[tuple[str, int, int]],
    trials: int,
    seed: int,
    slots: int,
    engine: str,
) -> Tuned:
    """Tune from inside the cluster."""
    assets.take(arrays)
    study, store = Study.model_validate_json(study_json), Store(root)
    probes = [TunedProbe(Cell.model_validate_json(cell), h, d_k) for cell, h, d_k in places]
    return tune_protocol(study, store, probes, trials, seed, _silent, slots, "auto", engine)


def _silent(text: str) -> None:
    """Say nothing: whoever waits outside reads the journal."""
