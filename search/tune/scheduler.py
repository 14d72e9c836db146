"""Stop a trial as soon as its further seeds could tell the search nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ray.tune.experiment import Trial
from ray.tune.schedulers import FIFOScheduler, TrialScheduler

from search.tune.memory_kill import LOW_ON_MEMORY
from search.tune.searcher import ThresholdSearcher


class SeedScheduler(FIFOScheduler):
    """Hands every result to ``record``, then continues or stops its trial.

    Args:
        searcher: whose probes the trials are.
        record: stores a result and tells the portfolio of it. An error it raises ends the
            whole study: what cannot be stored must not be trained.
    """

    def __init__(
        self, searcher: ThresholdSearcher, record: Callable[[Any, dict[str, Any]], None]
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.asked_by = searcher
        self.record = record
        self.fault: Exception | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Nothing of a study is pickled: running it again resumes it."""
        return {}

    def on_trial_error(self, tune_controller: Any, trial: Trial) -> None:
        """Note a trial whose worker was killed for its memory."""
        probe = self.asked_by.probes.get(trial.trial_id)
        told = Path(trial.error_file or "")
        if probe is not None and told.is_file() and LOW_ON_MEMORY in told.read_text():
            self.asked_by.out_of_memory.add((probe.cell, probe.key))

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
