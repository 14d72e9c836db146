"""A searcher for any ``ray.tune.Tuner``, which finds the first value that is good enough."""

from __future__ import annotations

import logging
import math
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
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
MOST_CUTS = 100
"""How often a trial is trained again that ends before others do."""
TUNES = {*AUTO_RESULT_KEYS, "done", "trial_id", "should_checkpoint", "experiment_tag"}
"""What Tune adds to every result."""
Seed = tuple[int, int]
"""A position among the values, from 1 on, and a seed: what a trial trains."""


class ThresholdSearch(ProbeSearcher):
    """Finds the first of a list of values at which the mean of a metric reaches a target.

    Pass it as ``TuneConfig(search_alg=…, num_samples=-1)``; the search ends by itself. Each trial
    is one seed at one value: its config is the ``param_space`` with ``axis`` and ``seed_key`` set,
    its score the last ``metric`` that it reports. ``threshold()`` gives the answer.
    ``Tuner.restore`` goes on with a searcher of its own; ``restore_from_dir`` with the run's folder
    brings what that one found into this one.

    A trial in error is not suggested again: ``FailureConfig(max_failures=…)`` says how often Tune
    retries it. A trial that a scheduler stops before others end, and below the target, has no
    score and is trained again, so a scheduler only costs time here.

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
        if guess is not None and guess not in values:
            raise ValueError(f"guess: {guess!r} is not one of the values")
        if mode not in ("max", "min") or seeds < 1 or confirm_seeds < 0:
            raise ValueError("give mode='max' or 'min', at least one seed and 0 confirm_seeds")
        if isinstance(store, str | Path):
            raise ValueError("store: give ScoreFile(path, trainable, param_space) in a Tuner")
        low, high = bounds
        test = SeedTest(float(target), seeds, minimise=mode == "min", low=low, high=high)
        try:
            test.check(test.target)
        except ValueError:
            raise ValueError(f"target: {target:g} lies outside the bounds {bounds}") from None
        self.axis, self.values, self.test = axis, values, test
        self.measure, self.seed_key, self.store = metric, seed_key, store
        start = (len(values) + 1) // 2 if guess is None else values.index(guess) + 1
        axes = {1: range(1, len(values) + 1)}
        self.plan = Plan(axes, test, (1, start), None, confirm_seeds, intervals=False)
        self.look_ahead, self.most = 64, 0
        self.scores: dict[Seed, float] = {}
        self.errors: dict[Seed, str] = {}
        self._reports: dict[str, tuple[int, Any]] = {}  # iterations and metric of each trial
        self._longest, self._may_be_cut = 0, True
        self._cuts: Counter[Seed] = Counter()
        self._unsure: dict[Seed, int] = {}  # iterations of what may yet prove to have been cut
        self._inherited: dict[str, Probe] = {}  # trials of the Tuner that this one continues
        names = {"axis": axis, "metric": metric, "seed_key": seed_key}
        for value, seed, score in store.read(**names) if store else ():
            if value in values:
                self.scores[values.index(value) + 1, seed] = score
        super().__init__(
            self._portfolio({VALUES: self.plan}), self._config, self._take_in, self._note_error,
            slots=self._slots,
        )  # fmt: skip
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
        if found.status == "censored":
            at, test = 1, self.test
        elif found.value == 1:
            at, test = len(self.values), replace(self.test, seeds=1)  # the dearest value
        else:
            return
        end = Plan({1: range(at, at + 1)}, test, (1, at), None, intervals=False)
        self._portfolio({VALUES: self.plan, END: end})

    # ----- What Tune calls

    def set_search_properties(
        self, metric: str | None, mode: str | None, config: dict[str, Any], **spec: Any
    ) -> bool:
        """Compare the Tuner's metric and mode; Tune itself refuses search spaces.

        Raises:
            ValueError: they differ from the ones given here.
        """
        mine = {"metric": self.measure, "mode": "min" if self.test.minimise else "max"}
        for name, its in {"metric": metric, "mode": mode}.items():
            if its not in (None, mine[name]):
                raise ValueError(f"{name}: ThresholdSearch has {mine[name]!r}, TuneConfig {its!r}")
        self._may_be_cut = not spec.get("stop")
        return False

    def set_max_concurrency(self, max_concurrent: int) -> bool:
        """Take the user's ``max_concurrent_trials``; Tune then leaves counting to the searcher."""
        self.most = max_concurrent
        return True

    def _slots(self) -> int:
        return self.most or fits({"CPU": 1})

    def suggest(self, trial_id: str) -> Any:
        """The next trial's config, None to wait, or FINISHED.

        Raises:
            ValueError: a score is outside the bounds, or a wrapper hides the results.
        """
        self.settle()
        if self.fault is not None:
            raise self.fault
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
            inner = config
            for part in outer:
                inner = inner.setdefault(part, {})
            inner[name] = value
        return config

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """Remember the metric, and how far the trial is."""
        self._adopt(trial_id, result)
        self._look(trial_id, result)

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        """Take in the end of a trial; ``result`` is its last one, flat as Tune gives it."""
        self._adopt(trial_id, result or {})
        probe = self.probes.get(trial_id)
        if result and "training_iteration" not in result:
            self.fault = ValueError(
                "search_alg: Repeater and the like hide the results of trials; give "
                "ThresholdSearch itself, whose seeds=… are the trials of each value"
            )
        elif probe and not error and trial_id not in self._spared:
            before, _ = self._reports.get(trial_id, (0, None))
            self._look(trial_id, result or {})
            if self._is_cut((probe.value, probe.seeds[0]), before, *self._reports[trial_id]):
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
        iterations = result.get("training_iteration")
        iterations = iterations if isinstance(iterations, int) else 0
        _, metric = self._reports.get(trial_id, (0, None))
        self._reports[trial_id] = iterations, result.get(self.measure, metric)
        self._longest = max(self._longest, iterations)
        if cut := [seed for seed, ended in self._unsure.items() if ended < self._longest]:
            for seed in cut:
                self._unsure.pop(seed)
                self.scores.pop(seed)
            self._portfolio(self.portfolio.plans)

    def _is_cut(self, seed: Seed, before: int, iterations: int, metric: Any) -> bool:
        """Whether a trial ended before others do, below the target, and not by itself.

        A function that returns does so after its last report, which Tune then shows twice.
        """
        score = _plain(metric)
        reaches = isinstance(score, int | float) and self.test.reaches(score)
        if not self._may_be_cut or reaches or 0 < iterations == before:
            return False
        if iterations == self._longest > 0:
            self._unsure[seed] = iterations
            return False
        self._cuts[seed] += 1
        if self._cuts[seed] == 1:
            logger.warning(
                "%s: ended after %d iterations, where others ran %d: did a scheduler stop it? It "
                "is trained again", self._named(seed), iterations, self._longest,
            )  # fmt: skip
        return self._cuts[seed] <= MOST_CUTS

    def _take_in(self, trial_id: str, probe: Probe, result: dict[str, Any]) -> None:
        seed = probe.value, probe.seeds[0]
        _, metric = self._reports.pop(trial_id)
        score = _plain(metric)
        if self._cuts[seed] > MOST_CUTS:
            raise NoScore(f"it was stopped before its end {MOST_CUTS} times")
        if metric is None:
            names = ", ".join(name for name in result if name.split("/")[0] not in TUNES)
            raise NoScore(f"no {self.measure}; it reported {names or 'nothing'}")
        if not isinstance(score, int | float) or math.isnan(score):
            raise NoScore(f"{self.measure} is {metric!r}, no number")
        try:
            self.test.check(score)
        except ValueError as error:
            raise ValueError(f"{self._named(seed)}: {self.measure}: {error}") from None
        if self.store and seed not in self._unsure:
            self.store.add(self.values[seed[0] - 1], seed[1], float(score))
        self.errors.pop(seed, None)
        self.scores.setdefault(seed, float(score))
        self._tell(seed, self.scores[seed])

    def _note_error(self, probe: Probe, error: str) -> None:
        self.errors[probe.value, probe.seeds[0]] = error
        logger.warning("%s: %s", self._named((probe.value, probe.seeds[0])), in_a_line(error))

    def _named(self, seed: Seed) -> str:
        return f"{self.axis} = {self.values[seed[0] - 1]}, seed {seed[1]}"

    # ----- What Tuner.restore needs

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

    # ----- The answer

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
        self.settle()
        if self.fault is not None:
            raise self.fault
        known = self.measure, self.scores, self.errors
        found = answer(self.portfolio, self.axis, self.values, *known)
        ends = {self.test.low, self.test.high}
        several = [{*of.values()} for of in found.scores.values() if len(of) > 1]
        several = [scores for scores in several if not scores <= ends]
        if several and all(len(scores) == 1 for scores in several):
            warnings.warn(
                f"all seeds of a value score the same: does the trainable use "
                f"config[{self.seed_key!r}]?",
                stacklevel=2,
            )
        return found


def _plain(value: Any) -> Any:
    """A scalar of numpy or torch as Python's own; anything else as it is."""
    is_scalar = getattr(value, "ndim", None) == 0 and hasattr(value, "item")
    return value.item() if is_scalar else value
