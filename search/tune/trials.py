"""The trials of a setting search on Ray Tune: each is one seed at one value."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import ray
from ray.tune import Callback, Checkpoint, PlacementGroupFactory, RunConfig, Stopper, Trainable

from rgr_dist.search.tune.connect import connect, environment, fits
from rgr_dist.search.tune.progress import ProgressLine
from rgr_dist.search.tune.runner import Resources, Watch, WhileNeeded, run_trials
from rgr_dist.search.tune.setting_search import SettingSearch
from rgr_dist.search.tune.threshold import Thresholds
from rgr_dist.search.tune.threshold_search import ThresholdSearch

USERS = {"TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "0", "TUNE_GLOBAL_CHECKPOINT_S": "auto"}
"""With a run config of the user's, Tune logs and saves its state."""


class Checkpoints(Callback):
    """Notes every checkpoint of the trials, with what its trial trained."""

    def __init__(self) -> None:
        self.all: list[tuple[dict[str, Any], Checkpoint]] = []

    def __getstate__(self) -> dict[str, Any]:
        """Nothing of a search is copied: running it again resumes it."""
        return {}

    def on_checkpoint(
        self, iteration: int, trials: list[Any], trial: Any, checkpoint: Checkpoint, **info: Any
    ) -> None:
        """Note a checkpoint."""
        self.all.append((trial.config, checkpoint))

    def keep(self, search: SettingSearch, found: Thresholds) -> Thresholds:
        """The thresholds with the last checkpoints of their values; the others are deleted."""
        asked = search.question
        kept: dict[int, dict[int, Checkpoint]] = defaultdict(dict)
        for config, checkpoint in self.all:
            number = next(
                n
                for n, setting in enumerate(asked.settings)
                if all(config[key] == value for key, value in setting.items())
            )
            if config[asked.axis] == found[number].value:
                kept[number][config[asked.seed_key]] = checkpoint
            else:
                with suppress(FileNotFoundError):  # the user's own config kept fewer
                    files: Any = checkpoint.filesystem
                    files.delete_dir(checkpoint.path)
        return found.with_checkpoints(kept)


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
    asked, config, checkpoints = search.question, config or {}, Checkpoints()
    line = ProgressLine(search, is_shown=run_config is None or run_config.verbose != 0)
    with connect(log_to_driver=True), environment(USERS if run_config else {}):
        of_its_own = _own_resources(trainable, {**config, asked.axis: asked.values[-1]})
        if resources is None and of_its_own is None:
            resources = {"cpu": 1}
        searcher = ThresholdSearch.of(search)
        searcher.set_max_concurrency(slots or _slots(resources or of_its_own or {}))
        search.portfolio.slots = searcher.slots()
        with line:
            run_trials(
                trainable,
                searcher,
                resources,
                config=config,
                reuse_actors=_can_be_reused(trainable),
                stop=_stopper(searcher, run_config.stop if run_config else None, stop or {}),
                callbacks=[*callbacks, checkpoints, Watch(line.show, searcher.explain)],
                run_config=run_config,
            )
    found = searcher.thresholds()
    return checkpoints.keep(search, found) if keep else found


def _stopper(searcher: ThresholdSearch, users: Any, at: Mapping[str, float]) -> WhileNeeded:
    """Ends a trial where the user says, or where nothing more can be learnt from it."""
    if isinstance(users, Stopper):
        return WhileNeeded(searcher, users, users.stop_all)
    ends: Callable[[str, dict[str, Any]], bool] = users if callable(users) else lambda *trial: False
    limits = {**(users if isinstance(users, Mapping) else {}), **at}

    def has_ended(trial_id: str, result: dict[str, Any]) -> bool:
        def reached(key: str, limit: float) -> bool:
            value: Any = result
            for part in [key] if key in result else key.split("/"):  # such as eval/loss
                value = value.get(part) if isinstance(value, Mapping) else None
            return value is not None and value >= limit

        return any(reached(*one) for one in limits.items()) or ends(trial_id, result)

    return WhileNeeded(searcher, has_ended)


def _can_be_reused(trainable: Any) -> bool:
    """Whether a process may train another value: a class has to say how it is reset."""
    return not isinstance(trainable, type) or "reset_config" in {
        name for base in trainable.__mro__ if base is not Trainable for name in vars(base)
    }


def _own_resources(trainable: Any, config: dict[str, Any]) -> Resources | None:
    """What a trainable asks for by itself, or by ``tune.with_resources``."""
    if isinstance(trainable, type):
        own: Resources | None = trainable.default_resource_request(config)  # type: ignore[attr-defined]
        return own
    own = getattr(trainable, "_resources", None)
    return own(config) if callable(own) and not isinstance(own, PlacementGroupFactory) else own


def _slots(resources: Resources) -> int:
    """Trials that fit on the cluster at once.

    Raises:
        ValueError: none does.
    """
    room = fits(resources)
    if not room:
        asked: Any = getattr(resources, "required_resources", resources)
        there = ray.cluster_resources()
        lacking = {name.upper() if name in ("cpu", "gpu") else name: asked[name] for name in asked}
        name = next(name for name in lacking if lacking[name] > there.get(name, 0))
        raise ValueError(
            f"resources: a trial asks for {lacking[name]:g} {name}, and Ray has "
            f"{there.get(name, 0):g}; where more nodes are to come, give slots"
        )
    return room
