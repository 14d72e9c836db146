"""A searcher for any ``ray.tune.Tuner``, which finds the first value that is good enough."""

from __future__ import annotations

import logging
import math
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

from ray import cloudpickle
from ray.tune.result import AUTO_RESULT_KEYS

from rgr_dist.search.portfolio import Portfolio, Probe
from rgr_dist.search.seed_test import SeedTest
from rgr_dist.search.threshold import Key, Plan
from rgr_dist.search.tune.answer import END, VALUES, Mode, Threshold, answer, bracket
from rgr_dist.search.tune.connect import fits
from rgr_dist.search.tune.score_file import ScoreFile
from rgr_dist.search.tune.searcher import NoScore, ProbeSearcher, in_a_line

logger = logging.getLogger(__name__)
MOST_CUTS = 300
"""How often a trial is trained again that ends before others do."""
TUNES = {*AUTO_RESULT_KEYS, "done", "trial_id", "should_checkpoint", "experiment_tag"}
"""What Tune adds to every result."""
Seed = tuple[int, int]
"""A position among the values, from 1 on, and a seed: what a trial trains."""


class ThresholdSearch(ProbeSearcher):
    """Finds the first of a list of values at which the mean of a metric reaches a target.

    Pass it as ``TuneConfig(search_alg=…, num_samples=-1)``; the search ends by itself. Each trial
    is one seed at one value: its config is the ``param_space`` with ``axis`` and ``seed_key`` set,
    its score the last ``metric`` that it reports. ``Tuner.restore`` goes on with a searcher of its
    own; ``restore_from_dir`` with the run's folder brings what that one found into this one.

    A trial in error is not suggested again: ``FailureConfig(max_failures=…)`` says how often Tune
    retries it. A trial that ends before others do has no score, as a scheduler may have stopped it,
    unless its function returned or it met the ``stop`` of the ``RunConfig``. It is trained again;
    from then on trials run one at a time, as side by side they would push each other out. So a
    scheduler only costs time here.

    Args:
        axis: the setting's name in the config; ``model/width`` is ``width`` within ``model``.
        values: what to choose from, in the order in which the metric gets better: integers, shares,
            falling ranks, names. For the largest value that passes, list them falling.
        metric: the name of what is reported; ``eval/accuracy`` is ``accuracy`` within ``eval``.
        target: what its mean over the seeds must reach.
        mode: ``min`` where a smaller metric is better, as for a loss.
        bounds: smallest and largest possible metric, None where there is none: they spare seeds
            that could not change a verdict.
        seeds: number of seeds in each value's mean: 0, 1, ….
        confirm_seeds: fresh seeds on which the threshold must pass too; where it does not, that
            value fails and the search goes on. The first value to pass may just be lucky.
        guess: the value to begin at; the middle one if not given.
        seed_key: the seed's name in the config, such as ``random_state``.
        store: a file of scores, from which the same search goes on when it is run again.

    Raises:
        ValueError: bad arguments, or a store of another search.
    """

    def __init__(
        self,
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
        store: ScoreFile | None = None,
    ) -> None:
        values = values if isinstance(values, range) else [_plain(value) for value in values]
        if not values or len(set(values)) < len(values):
            raise ValueError("values: give at least one, and none twice, such as range(1, 65)")
        if mode not in ("max", "min") or seeds < 1 or confirm_seeds < 0:
            raise ValueError("give mode='max' or 'min', at least one seed and 0 confirm_seeds")
        start = (len(values) + 1) // 2 if guess is None else values.index(guess) + 1
        low, high = bounds
        test = SeedTest(float(target), seeds, minimise=mode == "min", low=low, high=high)
        if not (low is None or low <= target) or not (high is None or target <= high):
            raise ValueError(f"target: {target:g} lies outside the bounds {bounds}")
        self.axis, self.values, self.test = axis, values, test
        self.measure, self.seed_key, self.store = metric, seed_key, store
        axes = {1: range(1, len(values) + 1)}
        self.plan = Plan(axes, test, (1, start), None, confirm_seeds, intervals=False)
        self.look_ahead, self.most = 64, 0
        self.scores: dict[Seed, float] = {}
        self.errors: dict[Seed, str] = {}
        self._reports: dict[str, tuple[int, Any]] = {}  # iterations and metric of each trial
        self.has_scheduler, self._stop, self._longest = True, dict[str, float](), 0
        self._cuts: Counter[Seed] = Counter()
        self._unsure: dict[Seed, int] = {}  # iterations of what may yet prove to have been cut
        self._inherited: dict[str, Probe] = {}  # trials of the Tuner that this one continues
        for value, seed, score in store.read(axis, metric, seed_key) if store else ():
            if value in values:
                self.scores[values.index(value) + 1, seed] = score
        start_at = self._portfolio({VALUES: self.plan})
        calls = self._config, self._take_in, self._note_error
        super().__init__(start_at, *calls, slots=self._slots)
        self._look_at_the_other_end()

    def _portfolio(self, plans: Mapping[str, Plan]) -> Portfolio:
        """A portfolio that knows every score."""
        self.portfolio = Portfolio(plans, look_ahead=self.look_ahead, together=1)
        for seed, score in self.scores.items():
            self._tell(seed, score)
        return self.portfolio

    def _tell(self, seed: Seed, score: float) -> None:
        for cell, plan in self.portfolio.plans.items():
            if seed[0] in plan.axes[1]:
                self.portfolio.tell(cell, Key(1, seed[0]), {seed[1]: score})

    def _look_at_the_other_end(self) -> None:
        """If the answer lies at one end of the values, try the other: do they run the wrong way?"""
        if END in self.portfolio.plans or not self.portfolio.is_done or len(self.values) == 1:
            return
        found = self.portfolio.search(VALUES).result(1)
        if found.status == "censored" or found.value == 1:
            at = len(self.values) if found.value else 1
            test = replace(self.test, seeds=1) if found.value else self.test  # it is the dearest
            end = Plan({1: range(at, at + 1)}, test, (1, at), None, intervals=False)
            self._portfolio({VALUES: self.plan, END: end})

    def set_search_properties(
        self, metric: str | None, mode: str | None, config: dict[str, Any], **spec: Any
    ) -> bool:
        """Take the user's ``stop``; the Tuner's metric and mode are for its scheduler alone."""
        self._stop = spec.get("stop") or {}
        return False

    def set_max_concurrency(self, max_concurrent: int) -> bool:
        """Take the user's ``max_concurrent_trials``; Tune then leaves counting to the searcher."""
        self.most = max_concurrent
        return True

    def _slots(self) -> int:
        return 1 if self._cuts else self.most or fits({"CPU": 1})

    def suggest(self, trial_id: str) -> Any:
        """The next trial's config, None to wait, or FINISHED; a fault is raised."""
        self._settled()
        if self._inherited and not self.probes:
            # Tune may not know of a trial that began as it was killed: another takes its place.
            answer = self.portfolio.ask()
            waiting = {trial_id: answer} if isinstance(answer, Probe) else self._inherited
            for probe in list(waiting.values()):
                self.portfolio.release(probe)
            self._inherited = self._inherited if isinstance(answer, Probe) else {}
        return super().suggest(trial_id)

    def _config(self, probe: Probe) -> dict[str, Any]:
        """What a trial's config holds beside what all trials share."""
        config: dict[str, Any] = {}
        own = {self.axis: self.values[probe.value - 1], self.seed_key: probe.seeds[0]}
        for path, value in own.items():
            *outer, name = path.split("/")
            reduce(lambda inner, part: inner.setdefault(part, {}), outer, config)[name] = value
        return config

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """Remember the metric, and how far the trial is."""
        self._adopt(trial_id, result)
        self._look(trial_id, result)

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        """Take in the end of a trial, and its last result."""
        self._adopt(trial_id, result or {})
        probe = self.probes.get(trial_id)
        if result and "training_iteration" not in result:
            self.fault = ValueError(
                "search_alg: Repeater and the like hide the results of trials; give "
                "ThresholdSearch itself, whose seeds=… are the trials of each value"
            )
        elif result and probe and not error and trial_id not in self._spared:
            before, _ = self._reports.get(trial_id, (0, None))
            self._look(trial_id, result)
            if self._is_cut((probe.value, probe.seeds[0]), before, result):
                self.portfolio.release(self.probes.pop(trial_id))
        super().on_trial_complete(trial_id, result, error)
        self._look_at_the_other_end()

    def _adopt(self, trial_id: str, result: Mapping[str, Any]) -> None:
        """Take over a trial of an earlier Tuner: its config says which it is."""
        value: Any = result.get(f"config/{self.axis}")
        if trial_id in self._inherited:
            self.probes[trial_id] = self._inherited.pop(trial_id)
        elif trial_id not in self.probes and value in self.values:
            seed = result[f"config/{self.seed_key}"]
            self.probes[trial_id] = Probe(VALUES, 1, self.values.index(value) + 1, (seed,))

    def _look(self, trial_id: str, result: Mapping[str, Any]) -> None:
        iterations, known = result["training_iteration"], self._reports.get(trial_id, (0, None))
        self._reports[trial_id] = iterations, result.get(self.measure, known[1])
        self._longest = max(self._longest, iterations)
        if cut := [seed for seed, ended in self._unsure.items() if ended < self._longest]:
            for seed in cut:
                del self._unsure[seed], self.scores[seed]
            self._portfolio(self.portfolio.plans)

    def _is_cut(self, seed: Seed, before: int, result: Mapping[str, Any]) -> bool:
        """Whether a trial ended before others do, and neither by itself nor by the user's stop.

        A function that returns does so after its last report, which Tune then shows twice.
        """
        iterations = result["training_iteration"]
        is_over = any(result.get(name, -math.inf) >= at for name, at in self._stop.items())
        if not self.has_scheduler or is_over or iterations == before:
            return False
        if iterations == self._longest:
            self._unsure[seed] = iterations
            return False
        if not self._cuts:
            logger.warning(
                "%s: ended after %d iterations, where others ran %d: did a scheduler stop it? Such "
                "trials are trained again, one at a time",
                *(self._name(seed), iterations, self._longest),
            )
        self._cuts[seed] += 1
        return self._cuts[seed] <= MOST_CUTS

    def _take_in(self, trial_id: str, probe: Probe, result: dict[str, Any]) -> None:
        seed = probe.value, probe.seeds[0]
        _, metric = self._reports.pop(trial_id)
        score = _plain(metric)
        if self._cuts[seed] > MOST_CUTS:
            raise NoScore(
                f"it ended before others {MOST_CUTS} times; without a scheduler, find_threshold "
                "takes each trial's end as it is"
            )
        if not isinstance(score, int | float) or math.isnan(score):
            names = ", ".join(name for name in result if name.split("/")[0] not in TUNES)
            raise NoScore(f"{self.measure} is {metric!r}, no number; it reported {names}")
        try:
            self.test.check(score)
        except ValueError as error:
            raise ValueError(f"{self._name(seed)}: {self.measure}: {error}") from None
        if self.store and seed not in self._unsure:
            self.store.add(self.values[seed[0] - 1], seed[1], float(score))
        self.errors.pop(seed, None)
        self.scores.setdefault(seed, float(score))
        self._tell(seed, self.scores[seed])

    def _note_error(self, probe: Probe, error: str) -> None:
        seed = probe.value, probe.seeds[0]
        self.errors[seed] = error
        logger.warning("%s: %s", self._name(seed), in_a_line(error))

    def _name(self, seed: Seed) -> str:
        return f"{self.axis} = {self.values[seed[0] - 1]}, seed {seed[1]}"

    def save(self, checkpoint_path: str) -> None:
        """Write what the search knows; Tune calls it every few seconds."""
        known = {name: one for name, one in vars(self).items() if not callable(one)}
        Path(checkpoint_path).write_bytes(cloudpickle.dumps(known))

    def restore(self, checkpoint_path: str) -> None:
        """Go on from what was saved, whatever this search was made for."""
        self.__dict__.update(cloudpickle.loads(Path(checkpoint_path).read_bytes()))
        self._inherited |= self.probes
        self.probes, self._in_error = {}, []

    def __getstate__(self) -> dict[str, Any]:
        """Everything, since a Tuner is saved together with its searcher."""
        return self.__dict__

    @property
    def known(self) -> str:
        """What is known so far, such as ``width: fails at 8, passes at 16``."""
        known = bracket(self.portfolio.search(VALUES).verdicts[1], self.values)
        return f"{self.axis}: {known or f'{len(self.values)} values'}"

    def threshold(self) -> Threshold:
        """What has been found, with its certificate.

        Raises:
            ValueError: a score is outside the bounds, or a wrapper hid the results.
        """
        self._settled()
        known = self.measure, self.scores, self.errors
        found = answer(self.portfolio, self.axis, self.values, *known)
        ends = {self.test.low, self.test.high}
        several = [{*of.values()} for of in found.scores.values() if len(of) > 1]
        inside = [len(scores) for scores in several if not scores <= ends]
        if inside and max(inside) == 1:
            uses = f"does the trainable use config[{self.seed_key!r}]?"
            warnings.warn(f"all seeds of a value score the same: {uses}", stacklevel=2)
        return found

    def _settled(self) -> None:
        self.settle()
        if self.fault is not None:
            raise self.fault


def _plain(value: Any) -> Any:
    """A scalar of numpy or torch as Python's own; anything else as it is."""
    is_scalar = getattr(value, "ndim", None) == 0 and hasattr(value, "item")
    return value.item() if is_scalar else value
