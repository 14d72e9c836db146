"""Tune keeps every trial and a folder of each: those that have ended are dropped."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from ray.tune import Trainable
from ray.tune.execution.tune_controller import TuneController
from ray.tune.experiment import Trial
from ray.tune.progress_reporter import TrialProgressCallback


def forget(controller: TuneController, trial: Trial) -> None:
    """Drop what Tune keeps of a trial that has ended, in memory and on disk (Ray 2.60)."""
    if not trial.is_finished():
        return
    with suppress(ValueError):  # it has been dropped
        controller._trials.remove(trial)
    for kept in (
        controller._stopped_trials,
        controller._failed_trials,
        controller._live_trials,
        controller._trials_to_cache,
    ):
        kept.discard(trial)
    if trial.local_path is not None:
        shutil.rmtree(trial.local_path, ignore_errors=True)


class NoProgress(TrialProgressCallback):
    """Takes the place of Tune's own, which prints, and keeps every trial."""

    def on_trial_result(self, *args: Any, **info: Any) -> None:
        """Nothing."""

    def on_trial_error(self, *args: Any, **info: Any) -> None:
        """Nothing."""

    def on_trial_complete(self, *args: Any, **info: Any) -> None:
        """Nothing."""


class TidyTrainable(Trainable):
    """A trainable whose process, given another trial, removes the folder of the last one."""

    def reset(self, new_config: dict[str, Any], storage: Any = None) -> bool:
        """Take another trial."""
        last = Path(self.logdir)
        done = bool(super().reset(new_config, storage))  # type: ignore[no-untyped-call]
        if last != Path(self.logdir):
            with suppress(OSError):  # it holds something
                last.rmdir()
        return done
