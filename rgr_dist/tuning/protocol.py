"""A training protocol for a study, tuned by Optuna on Ray Tune.

A protocol's score is the mean test score over the tuned probes and the study's seeds: the score by
which thresholds are defined. It is tuned just below the thresholds, since above them every
sensible protocol is near perfect. No trial is pruned: TPE takes what is pruned for bad.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

import optuna
import ray.tune
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState
from ray.tune.search.optuna import OptunaSearch

from rgr_dist.engines.choose import make_engine
from rgr_dist.faults import UserError
from rgr_dist.planning.search_of import expected, seed_test, stored_search
from rgr_dist.planning.tables import threshold_rows
from rgr_dist.running.cluster import Execution, Pulse, connect
from rgr_dist.running.worker import train_rows
from rgr_dist.search.tune.runner import Watch
from rgr_dist.store.store import Store
from rgr_dist.study import assets
from rgr_dist.study.address import digest
from rgr_dist.study.cell import Cell
from rgr_dist.study.run import Run
from rgr_dist.study.study import Study

SPACE = {"learning_rate": (1e-4, 1e-1), "sharpness": (1.0, 100.0), "initial_scale": (0.1, 10.0)}
"""Keys of ``training`` that are tuned if the model uses them, each on a log scale."""
BELOW_PREDICTED = 0.9
"""Share of the paper's D_K at which a cell is tuned if it has no threshold yet."""

Protocol = Mapping[str, float]


def runs_to_tune(study: Study, store: Store, cells: Sequence[Cell]) -> list[Run]:
    """The runs by which protocols are compared: in each cell, all seeds of the best head one d_k
    below its threshold; of a cell without one, where the paper expects it."""
    rows = threshold_rows(study, stored_search(study, store).portfolio)
    runs: list[Run] = []
    for cell in cells:
        own = [row for row in rows if row["cell_id"] == cell.cell_id and row["status"] == "found"]
        if own:
            best = min(own, key=lambda row: (row["D_K"], row["h"]))
            h, d_k = best["h"], max(1, best["d_k"] - 1)
        else:
            heads, D_K = expected(cell)
            h = min(study.search.heads, key=lambda one: abs(math.log(one / heads)))
            d_k = max(1, math.floor(BELOW_PREDICTED * D_K / h))
        runs += [Run(cell=cell, h=h, d_k=d_k, seed=seed) for seed in range(study.search.seeds)]
    return runs


def under(protocol: Protocol, run: Run) -> Run:
    """A run under another protocol."""
    training = run.cell.training.model_copy(update=dict(protocol))
    cell = run.cell.model_copy(update={"training": training})
    return Run(cell=cell, h=run.h, d_k=run.d_k, seed=run.seed)


def rounded(protocol: Protocol) -> dict[str, float]:
    """A protocol as it is trained and printed: to four significant digits."""
    return {key: float(f"{protocol[key]:.4g}") for key in SPACE if key in protocol}


class ProtocolTrainable(ray.tune.Trainable):
    """A trial: trains all runs under one protocol; its ``score`` is None if one failed."""

    def setup(
        self, config: dict[str, Any], runs: Any = (), worst: float = 0.0, arrays: Any = None
    ) -> None:
        """Take a protocol."""
        assets.take(arrays)
        self.runs = [under(rounded(config), Run.model_validate_json(run)) for run in runs]
        self.worst = worst

    def step(self) -> dict[str, Any]:
        """Train the runs; one that diverged has the worst score."""
        rows = [row for r in self.runs for row in train_rows(make_engine(model=r.cell.model), [r])]
        ends = [row["stop_reason"] for row in rows]
        scores = [self.worst if row["score"] is None else row["score"] for row in rows]
        return {"rows": rows, "score": None if "failed" in ends else fmean(scores), "done": True}


class Trials(OptunaSearch):
    """Ray's Optuna searcher; the rows of a trial are stored before it learns of the score."""

    def __init__(self, take_in: Callable[[dict[str, Any]], None], *of: Any, **options: Any) -> None:
        super().__init__(*of, **options)
        self.take_in = take_in
        self.fault: Exception | None = None

    def suggest(self, trial_id: str) -> Any:
        """The next protocol; no more once rows could not be stored."""
        return super().suggest(trial_id) if self.fault is None else self.FINISHED

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        """Take in a trial; one with a failed run has failed."""
        try:
            if result and not error:
                self.take_in(result)
        except Exception as fault:  # Tune would only log it
            self.fault = fault
        has_failed = error or not result or result["score"] is None
        super().on_trial_complete(trial_id, None if has_failed else result, has_failed)

    def save(self, checkpoint_path: str) -> None:
        """Nothing is saved: the trials are in Optuna's storage."""

    def __getstate__(self) -> dict[str, Any]:
        """Nothing is copied into Tune's own state either."""
        return {}


def tune_protocol(
    study: Study,
    store: Store,
    cells: Sequence[Cell],
    trials: int,
    execution: Execution,
    say: Callable[[str], None] = lambda line: None,
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Tune one protocol for these cells until so many trials are complete, earlier ones included.

    Args:
        say: takes a line about each trial that ends.

    Returns:
        A row for each trial: ``trial, state, score`` and the tuned keys; and the facts ``training``
        (the best protocol), ``score``, ``present_score`` and ``storage``.

    Raises:
        UserError: the store is no local folder, in which Optuna could keep its trials.
        StoreError, ClusterError, RunBroken: as in ``run_study``.
    """
    if store.local_path is None:
        raise UserError(
            f"--store {store.root}: Optuna keeps its trials in a local folder; give one"
        )
    runs, minimised = runs_to_tune(study, store, cells), study.record.minimised
    keys = [key for key in SPACE if key in cells[0].record.training]
    present = {key: float(getattr(cells[0].training, key)) for key in keys}
    space = {
        key: FloatDistribution(min(SPACE[key][0], now), max(SPACE[key][1], now), log=True)
        for key, now in present.items()
    }
    neutral = [under(dict.fromkeys(keys, 1.0), run).run_id for run in runs]
    name = f"{study.name}-{digest({'tuned': neutral}, 8)}"  # trials elsewhere are not comparable
    place = store.local_path / "studies" / study.name / "tuning.db"
    place.parent.mkdir(parents=True, exist_ok=True)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = optuna.storages.RDBStorage(f"sqlite:///{place}")
    kept = optuna.create_study(
        study_name=name,
        storage=storage,
        direction="minimize" if minimised else "maximize",
        load_if_exists=True,
    )
    before = kept.get_trials(deepcopy=False)
    for trial in before:
        if trial.state is TrialState.RUNNING:  # its driver was killed
            kept.tell(trial.number, state=TrialState.FAIL)

    def take_in(result: dict[str, Any]) -> None:
        store.append(result["rows"])
        score = result["score"]
        say("a trial failed" if score is None else f"a trial has the mean score {score:.4f}")

    if left := max(0, trials - sum(trial.state is TrialState.COMPLETE for trial in before)):
        with (
            connect(execution.address, execution.cpus) as slots,
            tempfile.TemporaryDirectory() as folder,
        ):
            pulse = Pulse()
            search = Trials(
                take_in, space, metric="score", mode="min" if minimised else "max",
                points_to_evaluate=None if before else [present],
                study_name=name, storage=storage, seed=len(before),
            )  # fmt: skip
            trainable = ray.tune.with_parameters(
                ProtocolTrainable,
                runs=[run.model_dump_json() for run in runs],
                worst=seed_test(study).worst,
                arrays=assets.needed(cells),
            )
            ray.tune.Tuner(
                ray.tune.with_resources(trainable, {"cpu": 1}),
                tune_config=ray.tune.TuneConfig(
                    search_alg=search, num_samples=left, max_concurrent_trials=slots
                ),
                run_config=ray.tune.RunConfig(
                    storage_path=folder,
                    verbose=0,
                    failure_config=ray.tune.FailureConfig(max_failures=3),
                    checkpoint_config=ray.tune.CheckpointConfig(checkpoint_at_end=False),
                    progress_reporter=ray.tune.CLIReporter(),  # silent
                    callbacks=[Watch(lambda running: pulse.check())],
                ),
            ).fit()
        if search.fault is not None:
            raise search.fault
    rows = [
        {"trial": t.number, "state": t.state.name.lower(), "score": t.value, **rounded(t.params)}
        for t in kept.get_trials(deepcopy=False)
    ]
    done = [row for row in rows if row["state"] == "complete"]
    best = (min if minimised else max)(done, key=lambda row: float(row["score"] or 0), default=None)
    now = next((row for row in done if row.items() >= rounded(present).items()), None)
    return rows, {
        "training": best and {key: best[key] for key in keys},
        "score": best and best["score"],
        "present_score": now and now["score"],
        "storage": str(place),
    }
