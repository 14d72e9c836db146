"""The trials of a setting search on Ray Tune: each is one seed at one value."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import ray
from ray.tune import Callback, Checkpoint, PlacementGroupFactory, RunConfig, Stopper
from ray.tune import Trainable as ClassTrainable
from ray.tune.stopper import CombinedStopper, FunctionStopper
from ray.tune.utils import flatten_dict

from rgr_dist.search.tune.connect import connect, environment, fits
from rgr_dist.search.tune.progress import ProgressLine
from rgr_dist.search.tune.runner import Resources, Watch, WhileNeeded, run_trials
from rgr_dist.search.tune.setting_search import SettingSearch
from rgr_dist.search.tune.threshold import Thresholds
from rgr_dist.search.tune.threshold_search import ThresholdSearch

USERS = {"TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "0", "TUNE_GLOBAL_CHECKPOINT_S": "auto"}
"""Environment for a run config of the user's own: Tune then logs and saves its state."""


def run(
    search: SettingSearch,
    trainable: Any,
    config: Mapping[str, Any] | None,
    slots: int | None,
    resources: Resources | None,
    stop: Mapping[str, float] | None,
    run_config: RunConfig | None,
    callbacks: Sequence[Callback],
    keep: str | None,
) -> Thresholds:
    """Run the trials that a search asks for until it is done; starts a local Ray if none runs.

    Raises:
        ValueError: no trial fits on the cluster, the metric is never reported or outside its
            bounds.
    """
    if keep and run_config is None:
        run_config = RunConfig()  # in Tune's own folder
    line = ProgressLine(search)
    is_silent = run_config is not None and run_config.verbose == 0
    searcher = ThresholdSearch.of(search)
    searcher.set_max_concurrency(slots or 1)

    fitted: set[PlacementGroupFactory] = set()  # not checked again: a lost node may come back

    def beat(trials: Sequence[Any]) -> None:
        if trials and not slots:  # each trial says which resources it takes
            searcher.set_max_concurrency(fits(trials[-1].placement_group_factory))
            for asked in {trial.placement_group_factory for trial in trials} - fitted:
                if not fits(asked):
                    searcher.fault = _too_large(asked)
                fitted.add(asked)
        if not is_silent:
            line.show(len(searcher.probes))

    # A process can go on to train another value; a class has to say how it is reset for that.
    reset = getattr(trainable, "reset_config", None)
    with connect(log_to_driver=True), environment(USERS if run_config else {}), line:
        results = run_trials(
            trainable,
            searcher,
            resources,
            config=config,
            reuse_actors=reset is not ClassTrainable.reset_config,
            stop=_stopper(searcher, stop or (run_config and run_config.stop) or {}),
            callbacks=[*callbacks, Watch(beat, searcher.explain)],
            run_config=run_config,
        )
    found = searcher.thresholds()
    return _with_checkpoints(found, results, search) if keep else found


def _too_large(resources: PlacementGroupFactory) -> ValueError:
    """The error that says which of a trial's resources Ray lacks."""
    asked, there = resources.required_resources, ray.cluster_resources()
    name = next(name for name in asked if asked[name] > there.get(name, 0))
    return ValueError(
        f"resources: a trial asks for {asked[name]:g} {name}, and Ray has "
        f"{there.get(name, 0):g}; where more nodes are to come, give slots"
    )


def _stopper(searcher: ThresholdSearch, users: Any) -> Stopper:
    """Ends a trial where the user says, or where nothing more can be learnt from it."""

    def has_ended(trial_id: str, result: dict[str, Any]) -> bool:
        reported = flatten_dict(result)  # such as eval/loss
        limits = {name: at for name, at in users.items() if reported.get(name) is not None}
        return any(reported[name] >= at for name, at in limits.items())

    as_asked: Stopper = users
    if not isinstance(users, Stopper):
        as_asked = FunctionStopper(users if callable(users) else has_ended)
    return CombinedStopper(as_asked, WhileNeeded(searcher))


def _with_checkpoints(found: Thresholds, results: Any, search: SettingSearch) -> Thresholds:
    """The thresholds with the last checkpoints of their values; the others are deleted."""
    asked = search.question
    kept: dict[int, dict[int, Checkpoint]] = defaultdict(dict)
    for result in results:
        if (config := result.config) is None:
            continue  # it had not begun
        number = next(n for n, one in enumerate(asked.settings) if one.items() <= config.items())
        is_kept = config[asked.axis] == found[number].value
        if is_kept and result.checkpoint is not None:
            kept[number][config[asked.seed_key]] = result.checkpoint
        for checkpoint, _ in result.best_checkpoints or ():
            if not is_kept:
                files: Any = checkpoint.filesystem
                files.delete_dir(checkpoint.path)
    return found.with_checkpoints(kept)
