"""Runs the trials of a tuning: wires Optuna, Ray Tune and the store together.

Running a tuning again continues from its journal. Its runs are rows of the store like any others,
stored before Optuna is told of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from optuna.distributions import FloatDistribution
from optuna.trial import TrialState
from ray.tune import with_parameters

from rgr_dist.planning.portfolio import seed_test
from rgr_dist.running.cluster import connect
from rgr_dist.running.execution import HERE, Execution
from rgr_dist.running.ray_health import RayHealth
from rgr_dist.search.confidence_interval import mean
from rgr_dist.search.tune.lost_workers import in_a_line
from rgr_dist.search.tune.runner import Watch, run_trials
from rgr_dist.store.storage import StoreError
from rgr_dist.study import assets
from rgr_dist.tuning.client import tune_from_inside
from rgr_dist.tuning.journal import finished_trials, journal_place, open_journal
from rgr_dist.tuning.optuna_trials import OptunaTrials
from rgr_dist.tuning.training_protocol import Tuning, bounds, described, rounded
from rgr_dist.tuning.trial import ProtocolTrainable, score_of
from rgr_dist.tuning.tuned import Tuned, ended, tuned_by


def tune_protocol(tuning: Tuning, say: Callable[[str], None], execution: Execution = HERE) -> Tuned:
    """Run trials until the journal holds as many finished ones as the tuning asks for.

    With one slot, the trials depend only on the seed and the journal; with more, also on the
    order in which trials end.

    Args:
        say: called with a line for each trial that has ended.

    Raises:
        StoreError: another driver writes the store, the journal cannot be read, or a row could
            not be stored.
        ClusterError: no Ray cluster answers at the address.
        RunBroken: Ray broke during the run.
    """
    if execution.address.startswith("ray://"):
        return tune_from_inside(tune_protocol, tuning, say, execution)
    with tuning.store.held(tuning.study.name):
        return _tune_here(tuning, say, execution)


def _tune_here(tuning: Tuning, say: Callable[[str], None], execution: Execution) -> Tuned:
    """Run trials from this process, which holds the store."""
    study, store, probes = tuning.study, tuning.store, tuning.probes
    journal, test = open_journal(store, study), seed_test(study)
    rows = store.runs().query("stop_reason != 'failed'").to_dict("records")
    known = {row["run_id"]: score_of(row, test.worst) for row in rows}
    trained = [(probe.cell.model_dump_json(), probe.h, probe.d_k) for probe in probes]

    def ids_of(params: dict[str, Any]) -> list[str]:
        protocol = rounded(params)
        return [p.run(protocol, s).run_id for p in probes for s in range(study.search.seeds)]

    for trial in finished_trials(journal, tuning.trials_name):
        if trial.params.keys() != tuning.present.keys():
            raise StoreError(
                f"{journal_place(store, study)}: trial {trial.number} has other keys than those "
                f"tuned, {', '.join(tuning.present)}; move it away"
            )
        ids = ids_of(trial.params)
        scores = [known[run_id] for run_id in ids if run_id in known]
        if trial.state is TrialState.COMPLETE and len(scores) == len(ids):
            own, stored = float(trial.value or 0), mean(scores)
            if not math.isclose(own, stored):
                raise StoreError(
                    f"{journal_place(store, study)}: trial {trial.number} has the score {own:g}, "
                    f"and its stored runs have {stored:g}; move it away"
                )

    def to_config(params: dict[str, Any], best: float | None) -> dict[str, Any]:
        ids = ids_of(params)
        return {
            "probes": trained,
            "protocol": rounded(params),
            "seeds": study.search.seeds,
            "best": best,
            "perfect": test.low if test.minimise else test.high,
            "worst": test.worst,
            "known": {run_id: known[run_id] for run_id in ids if run_id in known},
            "engine": execution.engine,
        }

    def record(result: dict[str, Any]) -> None:
        store.append(result["rows"])
        done = (row for row in result["rows"] if row["stop_reason"] != "failed")
        known.update({row["run_id"]: score_of(row, test.worst) for row in done})
        if result["done"]:
            score, pruned = result["score"], bool(result.get("pruned"))
            say(f"{len(search.finished) + 1} of {tuning.trials}: {ended(score, pruned)}")

    def lost(trial_id: str, error: str) -> None:
        say(f"a trial was lost, and is tried again: {in_a_line(error)}")

    def open_search() -> OptunaTrials:
        search = OptunaTrials(
            {
                key: FloatDistribution(*ends, log=True)
                for key, ends in bounds(tuning.present).items()
            },
            "min" if test.minimise else "max",
            tuning.trials,
            tuning.seed,
            to_config,
            storage=journal,
            study_name=tuning.trials_name,
            first=tuning.present,
            record=record,
        )
        search.study.set_user_attr("tuned", described(study, probes))
        return search

    if len(finished_trials(journal, tuning.trials_name)) >= tuning.trials:
        return tuned_by(open_search(), tuning)
    if execution.address == "local":
        say("starting Ray")
    # Connect first: nothing is written if there is no Ray.
    with connect(execution.address, execution.cpus) as slots:
        search = open_search()
        trainable = with_parameters(
            ProtocolTrainable, arrays=assets.needed(probe.cell for probe in probes)
        )
        with RayHealth() as health:
            watch = Watch(lambda trials: health.news(), lost)
            run_trials(trainable, search, {"cpu": 1}, slots=slots, callbacks=[watch])
    if search.fault is not None:
        raise search.fault
    return tuned_by(search, tuning)
