"""Stop a trial as soon as its further seeds could tell the search nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ray.tune.experiment import Trial
from ray.tune.schedulers import FIFOScheduler, TrialScheduler

from rgr_dist.search.tune.forgetting import forget
from rgr_dist.search.tune.lost_workers import LOW_ON_MEMORY
from rgr_dist.search.tune.searcher import ThresholdSearcher


class SeedScheduler(FIFOScheduler):
    """Hands every result to ``record``, then continues or stops its trial.

    Args:
        searcher: whose probes the trials are.
        record: stores a result and tells the portfolio of it. An error it raises ends the
            whole study: what cannot be stored must not be trained.

    Attributes:
        fault: what ended the study, if anything did.
        live: the trials that have not ended, by their id.
    """

    def __init__(
        self, searcher: ThresholdSearcher, record: Callable[[Any, dict[str, Any]], None]
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.asked_by = searcher
        self.record = record
        self.fault: Exception | None = None
        self._ended: list[tuple[Any, Trial]] = []
        self.live: dict[str, Trial] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Nothing of a study is pickled: running it again resumes it."""
        return {}

    def choose_trial_to_run(self, tune_controller: Any) -> None:
        """None: Tune starts those that wait by itself, in order. Drops the trials that have ended.

        The choice of ``FIFOScheduler`` looks at every trial that there ever was.
        """
        for controller, trial in self._ended:
            forget(controller, trial)
        self._ended.clear()

    def on_trial_add(self, tune_controller: Any, trial: Trial) -> None:
        """Note that a trial lives."""
        self.live[trial.trial_id] = trial

    def on_trial_complete(self, tune_controller: Any, trial: Trial, result: dict[str, Any]) -> None:
        """Note a trial that has ended."""
        self.live.pop(trial.trial_id, None)
        self._ended.append((tune_controller, trial))

    def on_trial_remove(self, tune_controller: Any, trial: Trial) -> None:
        """Note a trial that will not be run."""
        self.live.pop(trial.trial_id, None)

    def on_trial_error(self, tune_controller: Any, trial: Trial) -> None:
        """Note a trial whose worker was killed for its memory."""
        self.live.pop(trial.trial_id, None)
        self._ended.append((tune_controller, trial))
        probe = self.asked_by.probes.get(trial.trial_id)
        told = Path(trial.error_file or "")
        if probe is not None and told.is_file() and LOW_ON_MEMORY in told.read_text():
            self.asked_by.lost.note(probe, "out of memory")

    def on_trial_result(self, tune_controller: Any, trial: Trial, result: dict[str, Any]) -> str:
        """Record a result and decide whether the trial goes on."""
        probe = self.asked_by.probes.get(trial.trial_id)
        if probe is None or self.fault is not None:
            return str(TrialScheduler.STOP)
        try:
            self.record(probe, result)
        except Exception as fault:
            # Tune would retry the trial; the study must end instead, and say why.
            self.fault = fault
            self.asked_by.is_stopped = True
            return str(TrialScheduler.STOP)
        if self.asked_by.portfolio.is_wanted(probe):
            return str(TrialScheduler.CONTINUE)
        self.asked_by.spared.add(trial.trial_id)
        return str(TrialScheduler.STOP)
