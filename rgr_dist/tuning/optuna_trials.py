"""Optuna as Ray Tune's searcher: asks it for trials, resumes them, and tells it how they ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import TPESampler
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, Trial, TrialState
from ray.tune.search import Searcher

from rgr_dist.search.tune.searcher import Unsaved

Params = dict[str, Any]
FINISHED = (TrialState.COMPLETE, TrialState.PRUNED)


class OptunaTrials(Unsaved, Searcher):
    """Runs TPE until ``trials`` trials have finished, including those that the storage holds.

    A result holds ``score``; one that also holds a true ``pruned`` ends its trial as pruned, and
    one with a true ``failed`` as failed, which does not count as finished. A trial that ends in
    error, or was left running by a killed process, is marked as failed and run again. Unlike Ray's
    own searcher, this one can continue from a storage: the sampler is seeded by ``seed`` and the
    number of stored trials, since ``seed`` alone would draw the first trials' points again.

    Args:
        space: the distribution of each parameter.
        to_config: makes a trial's config from its parameters and the best score so far, if any.
        first: the parameters of the first trial, if the storage holds none.
        record: receives each result before Optuna does. An error that it raises ends the search
            and is kept in ``fault``.
        failures: failed trials and kills after which the search gives up.

    Attributes:
        study: Optuna's study.
        running: the trials that have not ended.
        loaded: how many finished trials the storage held at the start.
        failed: how many trials have failed since then and said so in a result.
        kills: how often trials have ended in error since then. Trials that ran at the same time
            count once: they may have been lost together, with a node or for lack of memory.
    """

    def __init__(
        self,
        space: Mapping[str, BaseDistribution],
        mode: Literal["min", "max"],
        trials: int,
        seed: int,
        to_config: Callable[[Params, float | None], dict[str, Any]],
        storage: BaseStorage | None = None,
        study_name: str = "trials",
        first: Params | None = None,
        record: Callable[[dict[str, Any]], None] = lambda result: None,
        failures: int = 3,
    ) -> None:
        super().__init__("score", mode)
        self.study = optuna.create_study(
            storage=storage,
            study_name=study_name,
            direction="minimize" if mode == "min" else "maximize",
            load_if_exists=True,
        )
        self.space, self.trials = dict(space), trials
        self.to_config = to_config
        self.record = record
        self.failures, self.failed, self.kills = failures, 0, 0
        self.fault: Exception | None = None
        self.running: dict[str, Trial] = {}
        self._hit: set[str] = set()  # trials that were running when one was lost
        left_over = self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        for trial in left_over:
            self.study.tell(trial.number, state=TrialState.FAIL)
            self.study.enqueue_trial(trial.params)
        stored = self.study.get_trials(deepcopy=False)
        self.loaded = len(self.finished)
        self.study.sampler = TPESampler(seed=seed + len(stored))
        if first is not None and not stored:
            self.study.enqueue_trial(first)

    @property
    def finished(self) -> list[FrozenTrial]:
        """Trials that were completed or pruned, in their order."""
        trials: list[FrozenTrial] = self.study.get_trials(deepcopy=False, states=FINISHED)
        return trials

    @property
    def best(self) -> FrozenTrial | None:
        """The best completed trial, or the first of several; None while there is none."""
        done = [trial for trial in self.finished if trial.state is TrialState.COMPLETE]
        sign = 1 if self.mode == "min" else -1
        return min(done, key=lambda trial: sign * float(trial.value or 0), default=None)

    def suggest(self, trial_id: str) -> Any:
        """The next trial's config, or FINISHED."""
        given_up = self.fault is not None or self.failed + self.kills >= self.failures
        if given_up or len(self.finished) >= self.trials:
            return self.FINISHED
        if len(self.finished) + len(self.running) >= self.trials:
            return None  # a running trial may yet fail, and need another
        trial, best = self.study.ask(self.space), self.best
        self.running[trial_id] = trial
        return self.to_config(trial.params, best.value if best else None)

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """Record a result, then report it."""
        if self._recorded(result):
            self.running[trial_id].report(result["score"], result["training_iteration"])

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        """Record the last result, then tell Optuna how the trial ended."""
        trial = self.running.pop(trial_id, None)
        if trial is None:
            return
        if error or result is None:
            if trial_id not in self._hit:
                self.kills, self._hit = self.kills + 1, set(self.running)
            self.study.tell(trial, state=TrialState.FAIL)
            self.study.enqueue_trial(trial.params)
        elif not self._recorded(result) or result.get("failed"):
            self.failed += 1
            self.study.tell(trial, state=TrialState.FAIL)
        elif result.get("pruned"):
            trial.report(result["score"], result["training_iteration"])
            self.study.tell(trial, state=TrialState.PRUNED)
        else:
            self.study.tell(trial, result["score"])

    def killed_for_memory(self) -> None:
        """Count every running trial as lost: Tune ended them all, and does not say which was."""
        for trial_id in list(self.running):
            self.on_trial_complete(trial_id, error=True)

    def _recorded(self, result: dict[str, Any]) -> bool:
        if self.fault is None:
            try:
                self.record(result)
            except Exception as fault:
                # Tune would retry the trial; the search must end instead, and say why.
                self.fault = fault
        return self.fault is None
