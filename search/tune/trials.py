"""The trials of a setting search on Ray Tune: each is one seed at one value."""

from __future__ import annotations

import logging
import math
import os
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayActorError, RayTaskError
from ray.tune import PlacementGroupFactory, Trainable
from ray.tune.experiment import Trial
from ray.tune.result import AUTO_RESULT_KEYS

from rgr_dist.search.protocol import Probe
from rgr_dist.search.tune.runner import Resources, run_trials
from rgr_dist.search.tune.scheduler import SeedScheduler
from rgr_dist.search.tune.searcher import ThresholdSearcher
from rgr_dist.search.tune.setting_search import SettingSearch
from rgr_dist.search.tune.stopper import UntilDone

NOT_REPORTED = {*AUTO_RESULT_KEYS, "done", "trial_id", "should_checkpoint", "experiment_tag"}
"""What Tune adds to every result."""


class SeedSearcher(ThresholdSearcher):
    """Takes the last metric that a trial reports as the score of its seed.

    A trial that raises, or whose metric is no number, is final: its value has failed. One whose
    process dies, or that ends without a word, is run again, as ``ThresholdSearcher`` does.

    Attributes:
        fault: what ends the whole search, if anything does.
    """

    def __init__(self, search: SettingSearch) -> None:
        super().__init__(search.portfolio, search.config)
        self.search = search
        self.fault: Exception | None = None
        self.last: dict[str, Any] = {}  # the metric by trial
        self.raised: dict[str, Exception] = {}  # by trial
        self.has_metric = bool(search.kept.scores)
        self.reported: set[str] = set()

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """Remember the metric, if this result has it, and else what it has."""
        metric = self.search.question.metric
        if not self.has_metric:
            self.reported.update(k for k in result if k.split("/")[0] not in NOT_REPORTED)
        if metric in result:
            self.has_metric = True
            self.last[trial_id] = result[metric]

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        """Keep the score of a trial that ran to its end; any other end gives none."""
        probe = self.probes.get(trial_id)
        if probe is not None and self.fault is None:
            self.on_trial_result(trial_id, result or {})
            try:
                if error:
                    unknown = RuntimeError("Ray Tune does not say what ended this trial")
                    self.search.note(probe, self.raised.get(trial_id, unknown))
                elif result is not None and trial_id not in self.spared:
                    self._take_in(trial_id, probe)
            except (ValueError, OSError) as fault:
                self.fault, self.is_stopped = fault, True
        super().on_trial_complete(trial_id, result, error)
        self.last.pop(trial_id, None)
        self.raised.pop(trial_id, None)

    def _take_in(self, trial_id: str, probe: Probe) -> None:
        metric = self.search.question.metric
        if not self.has_metric:
            reported = ", ".join(sorted(self.reported)) or "nothing"
            raise ValueError(
                f"metric: the trainable never reported {metric!r}; it reported {reported}"
            )
        value = self.last.get(trial_id)
        try:
            score = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            score = math.nan
        if math.isnan(score):
            said = f"{metric} is {value!r}, no number" if trial_id in self.last else f"no {metric}"
            self.raised[trial_id] = ValueError(said)
            self.search.note(probe, self.raised[trial_id])
        else:
            self.search.take_in(probe, score)

    def is_final(self, trial_id: str) -> bool:
        """Whether the user's own code gave the error: another try would give it again."""
        error = self.raised.get(trial_id)
        if isinstance(error, RayActorError):
            return error.actor_init_failed
        return error is not None


class ErrorScheduler(SeedScheduler):
    """Tells the searcher what a trial raised, before its end does."""

    def __init__(self, searcher: SeedSearcher) -> None:
        super().__init__(searcher, record=lambda probe, result: None)
        self.searcher = searcher

    def on_trial_error(self, tune_controller: Any, trial: Trial) -> None:
        """Remember the exception of a trial."""
        self.searcher.raised[trial.trial_id] = _exception(trial)
        super().on_trial_error(tune_controller, trial)


def _exception(trial: Trial) -> Exception:
    """What a trial raised: the user's own exception if it could be brought here, else Ray's."""
    try:
        error: object = pickle.loads(Path(trial.pickled_error_file).read_bytes())
    except Exception:  # no file, or an exception that cannot be rebuilt in this process
        file = Path(trial.error_file or "")
        text = file.read_text().strip() if file.is_file() else "no reason is known"
        return RuntimeError(text.splitlines()[-1])
    if not isinstance(error, RayTaskError):
        return error if isinstance(error, Exception) else RuntimeError(str(error))
    raised = error.cause if isinstance(error.cause, Exception) else RuntimeError(str(error))
    raised.__cause__ = error  # whose text has the traceback
    return raised


def run(search: SettingSearch, slots: int | None, resources: Resources | None) -> None:
    """Run the trials that a search asks for until it is done; starts a local Ray if none runs.

    Raises:
        ValueError: no trial fits on the cluster, the metric is never reported or outside its
            bounds.
    """
    asked = search.question
    if not ray.is_initialized():
        ray.init()
    of_its_own = _own_resources(asked.trainable, {**asked.config, asked.axis: asked.values[-1]})
    if resources is None and of_its_own is None:
        resources = {"cpu": 1}
    search.portfolio.slots = slots or _slots(resources or of_its_own or {})
    searcher = SeedSearcher(search)
    with _interruptible(), _quiet():
        run_trials(
            asked.trainable,
            searcher,
            search.portfolio.slots,
            resources,
            scheduler=ErrorScheduler(searcher),
            config=asked.config,
            reuse_actors=_can_be_reused(asked.trainable),
            stop=UntilDone(lambda: searcher.is_stopped or search.portfolio.is_done, asked.stop),
        )
    if searcher.fault is not None:
        raise searcher.fault


def _can_be_reused(trainable: Any) -> bool:
    """Whether a process may train another value: a class has to say how it is reset."""
    return not isinstance(trainable, type) or "reset_config" in {
        name for base in trainable.__mro__ if base is not Trainable for name in vars(base)
    }


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let an interrupt through, which Tune would otherwise keep to itself."""
    os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")  # the newer one prints a banner anyway
    name = "TUNE_DISABLE_SIGINT_HANDLER"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Tune from telling of its temporary folder, and of errors by many lines each."""
    tune = logging.getLogger("ray.tune")
    before = tune.level
    tune.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        tune.setLevel(before)


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
    if isinstance(resources, PlacementGroupFactory):
        resources = resources.required_resources
    there = ray.cluster_resources()
    fits = []
    for name, amount in resources.items():
        known = name.upper() if name.lower() in ("cpu", "gpu") else name
        if amount:
            fits.append(there.get(known, 0) / amount)
            if fits[-1] < 1:
                raise ValueError(
                    f"resources: a trial asks for {amount:g} {known}, and Ray has "
                    f"{there.get(known, 0):g}; where more nodes are to come, give slots"
                )
    return int(min(fits, default=1))
