"""Runs the trials of a tuning: wires Optuna, Ray Tune and the store together.

Trials are kept in ``studies/<name>/tuning.journal``, an Optuna journal file, one JSON object a
line; ``optuna-dashboard results/studies/<name>/tuning.journal`` opens it. Running the tuning
again goes on from it. Runs are rows of the store like any other, stored before Optuna is told.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import FloatDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState
from ray.tune import with_parameters

from rgr_dist.planning.portfolio import seed_test
from rgr_dist.running.cluster import connect
from rgr_dist.store.parts import StoreError
from rgr_dist.store.store import Store
from rgr_dist.study import assets
from rgr_dist.study.study import Study, digest
from rgr_dist.tuning.training_protocol import (
    TunedProbe,
    bounds,
    described,
    present_protocol,
    rounded,
)
from rgr_dist.tuning.trial import ProtocolTrainable, score_of
from search.tune.optuna import OptunaTrials
from search.tune.runner import run_trials

JOURNAL = "tuning.journal"


@dataclass(frozen=True)
class Tuned:
    """What a tuning found.

    Attributes:
        trials: a row for each trial: number, state, score (mean so far where pruned), seeds,
            and the tuned keys.
        training: the best protocol, a ``training`` section of a study; None before any trial.
        score, present_score: mean test score of the best, and of the study's own protocol.
        loaded: finished trials that the journal held already.
        failed: trials that failed now.
        journal: where the trials are kept.
    """

    trials: list[dict[str, Any]]
    training: dict[str, float] | None
    score: float | None
    present_score: float | None
    loaded: int
    failed: int
    journal: Path


def tune_protocol(
    study: Study,
    store: Store,
    probes: Sequence[TunedProbe],
    trials: int,
    seed: int,
    say: Callable[[str], None],
    cpus: int | None = None,
    engine: str = "auto",
) -> Tuned:
    """Run trials until the journal holds so many finished ones.

    With one slot the trials follow from the seed and the journal alone; with more, also from
    the order in which trials end.

    Raises:
        StoreError: the store is no local folder, its journal cannot be read, or a row could
            not be stored.
    """
    if store.local_path is None:
        raise StoreError(
            f"--out {store.root}: trials are kept in a journal file, which only a folder can "
            "hold; give a local folder"
        )
    store.check_writable()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    journal = store.local_path / "studies" / study.name / JOURNAL
    common = described(study, probes)
    present = present_protocol(probes[0].cell)
    test = seed_test(study)
    ended = store.runs().query("stop_reason != 'failed'").to_dict("records")
    known = {row["run_id"]: score_of(row, test.worst) for row in ended}
    trained = [(probe.cell.model_dump_json(), probe.h, probe.d_k) for probe in probes]

    def to_config(params: dict[str, Any], best: float | None) -> dict[str, Any]:
        protocol = rounded(params)
        ids = [p.run(protocol, s).run_id for p in probes for s in range(study.search.seeds)]
        return {
            "probes": trained,
            "protocol": protocol,
            "seeds": study.search.seeds,
            "best": best,
            "perfect": test.low if test.minimise else test.high,
            "worst": test.worst,
            "known": {run_id: known[run_id] for run_id in ids if run_id in known},
            "engine": engine,
        }

    def record(result: dict[str, Any]) -> None:
        store.append(result["rows"])
        if result["done"]:
            score = result["score"]
            ended = "failed" if score is None else f"mean score {score:.4f}"
            ended += " so far, pruned" if result.get("pruned") else ""
            say(f"{len(search.finished) + 1} of {trials}: {ended}")

    try:
        search = OptunaTrials(
            {key: FloatDistribution(*ends, log=True) for key, ends in bounds(present).items()},
            "min" if test.minimise else "max",
            trials,
            seed,
            to_config,
            storage=_open_journal(journal),
            study_name=f"{study.name}-{digest(common, 8)}",
            first=present,
            record=record,
        )
    except (OSError, ValueError) as error:
        raise StoreError(f"{journal}: not a readable journal: {error}; move it away") from None
    search.study.set_user_attr("tuned", common)
    if len(search.finished) < trials:
        say("starting Ray")
        with connect("local", cpus) as slots:
            arrays = assets.needed(probe.cell for probe in probes)
            run_trials(with_parameters(ProtocolTrainable, arrays=arrays), search, slots, {"cpu": 1})
    if search.fault is not None:
        raise search.fault
    return _tuned(search, journal, study.search.seeds, rounded(present))


def _open_journal(path: Path) -> JournalStorage:
    """The journal, made if it is not there; a last line that a killed writer tore is dropped."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        whole = path.read_bytes().rfind(b"\n") + 1
        if whole < path.stat().st_size:
            os.truncate(path, whole)
    return JournalStorage(JournalFileBackend(str(path)))


def _tuned(search: OptunaTrials, journal: Path, seeds: int, present: dict[str, float]) -> Tuned:
    best = search.best
    done = (t for t in search.finished if t.state is TrialState.COMPLETE)
    first = next((trial for trial in done if rounded(trial.params) == present), None)
    return Tuned(
        trials=[_trial_row(trial, seeds) for trial in search.study.get_trials(deepcopy=False)],
        training=rounded(best.params) if best else None,
        score=best.value if best else None,
        present_score=first.value if first else None,
        loaded=search.loaded,
        failed=search.failed,
        journal=journal,
    )


def _trial_row(trial: FrozenTrial, seeds: int) -> dict[str, Any]:
    done = trial.state is TrialState.COMPLETE
    return {
        "trial": trial.number,
        "state": trial.state.name.lower().replace("fail", "failed"),
        "score": trial.value,
        "seeds": seeds if done else trial.last_step or 0,
        **(rounded(trial.params) if trial.params else {}),
    }
