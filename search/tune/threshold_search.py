"""A searcher for any ``ray.tune.Tuner``, which finds the smallest value that is good enough."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

from ray.tune.result import AUTO_RESULT_KEYS

from rgr_dist.search.protocol import Probe, Signal
from rgr_dist.search.tune.connect import fits
from rgr_dist.search.tune.one_line import one_line
from rgr_dist.search.tune.question import Cost, Question, check_slots
from rgr_dist.search.tune.saved_search import Saved, plain
from rgr_dist.search.tune.score_file import ScoreFile
from rgr_dist.search.tune.searcher import NoScore, ProbeSearcher
from rgr_dist.search.tune.setting_search import SettingSearch
from rgr_dist.search.tune.threshold import Mode, Threshold, Thresholds

NOT_REPORTED = {*AUTO_RESULT_KEYS, "done", "trial_id", "should_checkpoint", "experiment_tag"}
"""What Tune adds to every result."""


class ThresholdSearch(ProbeSearcher):
    """Finds the smallest value of an integer setting whose mean metric reaches a target.

    Pass it as ``TuneConfig(search_alg=…, num_samples=-1)``; the search ends by itself. Each trial
    is one seed at one value: its config is the ``param_space`` with ``axis`` and ``seed_key`` set,
    its score the last ``metric`` that it reports. No scheduler is needed; a trial that one stops
    early is scored by its last metric too, and listed in ``Threshold.stopped_early``. A trial in
    error is not suggested again: ``FailureConfig(max_failures=…)`` says how often Tune retries it.

    ``threshold()`` gives the answer. ``Tuner.restore`` continues a stopped Tuner with a searcher of
    its own; ``restore_from_dir`` with the run's folder brings what that one found into this one.

    Args:
        axis: the setting's name in the config.
        values: increasing positive integers to choose from, such as ``range(1, 513)``.
        target: what the mean over the seeds must reach.
        metric, mode: as in ``TuneConfig``, whose own are passed on if ``param_space`` is not empty;
            ``max`` if neither says.
        bounds: smallest and largest possible metric, None where there is none: they spare seeds
            that could not change a verdict.
        seeds: number of seeds in each value's mean: 0, 1, ….
        confirm_seeds: fresh seeds on which the threshold must pass too.
        over: lists of values by name; every combination is a setting with a threshold of its own.
        cost, keep_within: as for ``rgr_dist.find_thresholds``.
        guess: where to start; the middle of the values if not given.
        on_error: ``stop``: a value at which a trial ends in error ends the search. ``fail``: the
            value fails.
        seed_key: the seed's name in the config, such as ``random_state``.
        max_concurrent: trials that run at once; as many as the cluster has CPUs if not given, one
            without a Ray.
            ``TuneConfig(max_concurrent_trials=…)`` does the same.

    Raises:
        ValueError: bad arguments.
    """

    def __init__(
        self,
        axis: str,
        values: Sequence[int],
        target: float,
        metric: str | None = None,
        mode: Mode | None = None,
        *,
        bounds: tuple[float | None, float | None] = (None, None),
        seeds: int = 3,
        confirm_seeds: int = 0,
        over: Mapping[str, Sequence[Any]] | None = None,
        cost: Cost | None = None,
        keep_within: float | None = None,
        guess: int | None = None,
        on_error: Literal["fail", "stop"] = "stop",
        seed_key: str = "seed",
        max_concurrent: int | None = None,
    ) -> None:
        given = locals()
        asked = {name: given[name] for name in Question.model_fields}
        question = Question.checked(**asked)
        self._is_users = True
        self._given = {key: given[key] for key in ("metric", "mode") if given[key] is not None}
        self._begin(SettingSearch(question, ScoreFile(None, {})))
        check_slots("max_concurrent", max_concurrent)
        if max_concurrent is not None:
            self.set_max_concurrency(max_concurrent)

    @classmethod
    def of(cls, search: SettingSearch) -> Self:
        """A searcher for an existing search, in a Tuner that is not the user's own."""
        new = cls.__new__(cls)
        new._is_users, new._given = False, {}
        new._begin(search)
        return new

    def _begin(self, search: SettingSearch) -> None:
        slots = getattr(self, "slots", partial(fits, {"CPU": 1}))
        super().__init__(search.portfolio, search.config, self._take_in, search.note, slots=slots)
        self.search = search
        self._last: dict[str, Any] = {}  # the metric by trial
        self._seen: dict[str, int] = {}  # iterations by trial
        self._reported: set[str] = set()  # what any trial has reported
        # Trials of the Tuner that this one continues, from which nothing has been heard since.
        self._inherited: set[str] = set()

    # ----- What Tune calls

    def set_search_properties(
        self, metric: str | None, mode: str | None, config: dict[str, Any], **spec: Any
    ) -> bool:
        """Take the Tuner's metric and mode, and check what else it was given.

        The scores of an earlier Tuner still count. What it was training, or what ended in error,
        is asked for again.

        Raises:
            ValueError: the metric or the mode differs from the one given here; ``config`` sets what
                the search sets, or has a search space; ``num_samples`` is 1.
        """
        asked = self.search.question
        asked.check_config(config)
        if spec.get("num_samples") == 1:
            raise ValueError(
                "num_samples: one trial finds no threshold; give TuneConfig(num_samples=-1): the "
                "search ends by itself"
            )
        its = {k: v for k, v in {"metric": metric, "mode": mode}.items() if v is not None}
        for key, value in its.items():
            mine = self._given.get(key, value)
            if mine != value:
                raise ValueError(f"{key}: ThresholdSearch has {mine!r}, TuneConfig {value!r}")
        if self._is_users:  # otherwise the Tuners of one find_threshold share one search
            question = Question.checked(**asked.given | its)
            if question.described == asked.described:
                self.search.begin(question)
            else:  # an earlier Tuner's scores are of another metric
                self.search = SettingSearch(question, ScoreFile(None, {}))
            self._begin(self.search)
        return True

    def suggest(self, trial_id: str) -> Any:
        """The next trial's config, None to wait, or FINISHED.

        Raises:
            ValueError: no metric was given.
        """
        if not self.search.question.metric:
            raise ValueError(
                "metric: give it to ThresholdSearch; Tune passes that of TuneConfig on only where "
                "param_space holds something"
            )
        return super().suggest(trial_id)

    def _room(self) -> int:
        """How many trials may run at once, plus those that Tune may not know of."""
        return super()._room() + len(self._inherited & self.probes.keys())

    def _ask(self) -> Probe | Signal:
        answer = super()._ask()
        if answer is Signal.WAIT and self.probes.keys() <= self._inherited:
            # Tune may not know of a trial that began as it was killed: an idle worker takes it.
            return next(filter(self.portfolio.is_wanted, self.probes.values()), answer)
        return answer

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """Remember the metric, and what else is reported."""
        self._inherited.discard(trial_id)
        self._seen[trial_id] = _iterations(result)
        self._look(trial_id, result)

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        """Take in the end of a trial, which has no result if a scheduler ends it while paused."""
        if result is None and not error and trial_id in self._last:
            result = {"done": True, "training_iteration": self._seen.pop(trial_id, 0)}
        super().on_trial_complete(trial_id, result, error)

    def _look(self, trial_id: str, result: dict[str, Any]) -> None:
        metric = self.search.question.metric
        self._reported.update(k for k in result if k.split("/")[0] not in NOT_REPORTED)
        if metric in result:  # also one that Tune reports itself, such as training_iteration
            self._reported.add(metric)
            self._last[trial_id] = result[metric]

    def _take_in(self, trial_id: str, probe: Probe, result: dict[str, Any]) -> None:
        self._look(trial_id, result)
        metric = self.search.question.metric
        if metric not in self._reported and not self.search.kept.scores:
            reported = one_line(", ".join(sorted(self._reported))) or "nothing"
            raise ValueError(
                f"metric: the trainable never reported {metric!r}; it reported {reported}"
            )
        iterations = _iterations(result)
        # A function that returns does so after its last report, which Tune then shows twice.
        is_natural = iterations == self._seen.pop(trial_id, None)
        # Without a Tuner of the user's own, only the trial or the stop it was given can end it.
        self.search.note_end(probe, iterations, is_natural or not self._is_users)
        if trial_id not in self._last:
            raise NoScore(f"ValueError: no {metric}")
        value = self._last.pop(trial_id)
        score = plain(value)
        if isinstance(score, str) or math.isnan(score):
            raise NoScore(f"ValueError: {metric} is {value!r:.80}, no number")
        self.search.take_in(probe, score)

    # ----- What Tuner.restore needs

    def save(self, checkpoint_path: str) -> None:
        """Write what the search knows, as JSON; Tune calls it every few seconds."""
        saved = Saved.of(self.search, probes=self.probes, last=self._last, seen=self._seen)
        Path(checkpoint_path).write_text(saved.model_dump_json())

    def restore(self, checkpoint_path: str) -> None:
        """Go on from what was saved.

        Raises:
            ValueError: it was saved by another search, or is damaged.
            OSError: it cannot be read.
        """
        saved = Saved.read(Path(checkpoint_path))
        asked = self.search.question
        its = saved.model_dump(include={"metric", "mode"} - self._given.keys())
        question = Question.checked(**asked.given | its) if saved.metric else asked
        self._begin(saved.search(question))
        self._last, self._seen = dict(saved.last), saved.seen
        self._reported.update([question.metric] if self._last else [])
        self.probes, self._inherited = saved.probes, set(saved.probes)
        for probe in self.probes.values():
            self.portfolio.hold(probe)

    def __getstate__(self) -> dict[str, Any]:
        """Everything, since a Tuner is saved together with its searcher."""
        return self.__dict__

    # ----- The answer

    def threshold(self) -> Threshold:
        """What has been found, with its certificate.

        If the Tuner ended before the search, it is ``open``, and a warning says so.

        Raises:
            ValueError: the metric was never reported or is outside its bounds; or there are several
                settings, for which ``thresholds()`` is meant.
        """
        found = self.thresholds()
        if len(found) > 1:
            raise ValueError("over: each setting has a threshold of its own; ask for thresholds()")
        return found.thresholds[0]

    def thresholds(self) -> Thresholds:
        """The threshold of every setting that ``over`` lists, and the best one.

        Raises:
            ValueError: the metric was never reported, or is outside its bounds.
        """
        self.settle()
        if self.fault is not None:
            raise self.fault
        if not self.portfolio.is_done:
            warnings.warn(
                "the search is not finished: go on with Tuner.restore if the Tuner was stopped, "
                "else give what restore_from_dir restores to a new Tuner, with num_samples=-1 and "
                "no time budget",
                stacklevel=3,
            )
        return self.search.result()


def _iterations(result: Mapping[str, Any]) -> int:
    """How often a trial has reported; it may have said so itself, in a number of any type."""
    try:
        return max(0, int(result.get("training_iteration", 0)))
    except (TypeError, ValueError, OverflowError):
        return 0
