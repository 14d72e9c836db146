"""The first of a list of values at which any Ray Tune trainable is good enough."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ray import tune
from ray.tune.stopper import CombinedStopper, FunctionStopper
from ray.tune.utils import flatten_dict

from rgr_dist.search.tune.answer import Mode, Threshold
from rgr_dist.search.tune.connect import connect, environment, fits
from rgr_dist.search.tune.runner import Resources, Watch, WhileNeeded, run_trials
from rgr_dist.search.tune.score_file import ScoreFile
from rgr_dist.search.tune.threshold_search import CELL, ThresholdSearch

USERS = {"TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "0", "TUNE_GLOBAL_CHECKPOINT_S": "auto"}
"""Environment for a run config of the user's own: Tune then logs and saves its state."""
PATIENCE = 100
"""Results after which a trial that still reports nothing that could stop it ends the search."""


def find_threshold(
    trainable: Callable[..., Any] | type | str,
    axis: str,
    values: Sequence[Any],
    metric: str,
    target: float,
    mode: Mode = "max",
    *,
    bounds: tuple[float | None, float | None] = (None, None),
    seeds: int = 3,
    confirm_seeds: int = 0,
    guess: Any = None,
    seed_key: str = "seed",
    store: str | Path | None = None,
    config: Mapping[str, Any] | None = None,
    resources: Resources | None = None,
    run_config: tune.RunConfig | None = None,
    slots: int | None = None,
    speculate: bool = True,
) -> Threshold:
    """The first of ``values`` whose mean ``metric`` over the seeds reaches ``target``.

    Every trial is one seed at one value. The trials run on the Ray of this process, on the cluster
    that RAY_ADDRESS names, or on a Ray that is started for them. A line on standard error shows how
    far the search is.

    Args:
        trainable: what ``ray.tune.Tuner`` takes, also one made by ``tune.with_parameters`` or
            ``tune.with_resources``.
        axis, values, metric, target, mode, bounds, seeds, confirm_seeds, guess, seed_key: as for
            ``ThresholdSearch``.
        store: a file of scores. The same search, run again, goes on from it; if the trainable, the
            config or the stop has changed, it is refused.
        config: the rest of the trainable's config.
        resources: of one trial, as for ``tune.with_resources``; if not given, what the trainable
            asks for itself, or one CPU.
        run_config: as for a ``Tuner``: storage, loggers, callbacks, checkpoints, retries, stop.
            Tune's own output is off; ``verbose=0`` hides the line of this search too.
        slots: trials that run at once; as many as Ray has room for if not given.
        speculate: let idle slots train what may be needed next.

    Raises:
        ValueError: bad arguments, a score outside the bounds, a store of another search, resources
            that Ray does not have, or a stop that is never reported.
        NoRay: there is no Ray to run on.
    """
    stop = run_config.stop if run_config else None
    search = ThresholdSearch(
        axis, values, metric, target, mode, bounds=bounds, seeds=seeds,
        confirm_seeds=confirm_seeds, guess=guess, seed_key=seed_key,
        store=ScoreFile(store, trainable, config, stop) if store else None,
    )  # fmt: skip
    search.most, search.has_scheduler = slots or 1, False
    if not speculate:
        search.portfolio.look_ahead = 0
    if search.is_done:
        return search.threshold()
    is_silent = run_config is not None and run_config.verbose == 0
    shown = ""

    def beat(trials: Sequence[Any]) -> None:
        nonlocal shown
        if trials and not slots:  # each trial says which resources it takes
            asked = trials[-1].placement_group_factory
            search.most = max(1, room := fits(asked))
            if not room and not search.scores:  # later on, a lost node may come back
                search.fault = ValueError(
                    f"resources: a trial asks for {asked.required_resources}, which Ray has not; "
                    "where more nodes are to come, give slots"
                )
        if shown != (shown := search.portfolio.search(CELL).known(1)) and not is_silent:
            print(f"{axis}: {shown}", file=sys.stderr, flush=True)

    # A process can go on to train another value; a class has to say how it is reset for that.
    reset = getattr(trainable, "reset_config", None)
    with connect(log_to_driver=True), environment(USERS if run_config else {}):
        results = run_trials(
            trainable,
            search,
            resources,
            config=config,
            reuse_actors=not isinstance(trainable, str) and reset != tune.Trainable.reset_config,
            stop=CombinedStopper(_stopper(search, copy.deepcopy(stop)), WhileNeeded(search)),
            callbacks=[Watch(beat, search.explain)],
            run_config=run_config,
        )
    found = search.threshold()
    ended = [results[number] for number in range(len(results))]
    trials = [(flatten_dict(one.config or {}), one.checkpoint) for one in ended]
    kept = {its[seed_key]: last for its, last in trials if last and its[axis] == found.value}
    return replace(found, checkpoints=kept)


def _stopper(search: ThresholdSearch, users: Any) -> tune.Stopper:
    """What the user's ``stop`` says of a trial; Tune says only in its log if none reports it."""
    if isinstance(users, tune.Stopper):
        return users
    if callable(users):
        return FunctionStopper(users)
    limits: Mapping[str, float] = users or {}
    reported: set[str] = set()

    def has_ended(trial_id: str, result: dict[str, Any]) -> bool:
        flat = {name: one for name, one in flatten_dict(result).items() if one is not None}
        reported.update(name for name in flat if not name.startswith("config/"))
        if limits and reported.isdisjoint(limits) and result["training_iteration"] >= PATIENCE:
            search.fault = ValueError(
                f"stop: no trial reports {[*limits]}; they report {sorted(reported)}"
            )
        return any(flat[name] >= limits[name] for name in limits if name in flat)

    return FunctionStopper(has_ended)
