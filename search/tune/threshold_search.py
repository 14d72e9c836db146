"""A searcher for any ``ray.tune.Tuner``, which finds the first value that is good enough."""

from __future__ import annotations

import logging
import math
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

from ray import cloudpickle
from ray.tune.result import AUTO_RESULT_KEYS

from rgr_dist.search.portfolio import Portfolio, Probe
from rgr_dist.search.seed_test import SeedTest
from rgr_dist.search.threshold import Key, Plan
from rgr_dist.search.tune.answer import Mode, Threshold
from rgr_dist.search.tune.connect import fits
from rgr_dist.search.tune.score_file import ScoreFile
from rgr_dist.search.tune.searcher import NoScore, ProbeSearcher, in_a_line

logger = logging.getLogger(__name__)
CELL = "values"
"""The one cell of the portfolio: its values are positions, from 1 on."""
MOST_CUTS = 300
"""How often a trial is trained again that ends before others do."""
TUNES = {*AUTO_RESULT_KEYS, "done", "trial_id", "should_checkpoint", "experiment_tag"}
"""What Tune adds to every result."""


class ThresholdSearch(ProbeSearcher):
    """Finds the first of a list of values at which the mean of a metric reaches a target.

    Pass it as ``TuneConfig(search_alg=…, num_samples=-1)``; the search ends by itself. Each trial
    is one seed at one value: its config is the ``param_space`` with ``axis`` and ``seed_key`` set,
    its score the last ``metric`` that it reports. ``Tuner.restore`` goes on with a searcher of its
    own; ``restore_from_dir`` with the run's folder brings what that one found into this one.

    ``FailureConfig(max_failures=…)`` says how often a trial in error is retried. A trial that ends
    before others do, though its function did not return and it did not meet the ``RunConfig``'s
    ``stop``, may have been stopped by a scheduler: it is trained again, and from then on trials run
    one at a time, as side by side they would push each other out.

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
        values = [_plain(value) for value in values]
        if not values or len({*values}) < len(values):
            raise ValueError("values: give at least one, and none twice, such as range(1, 65)")
        if mode not in ("max", "min") or seeds < 1:
            raise ValueError("give mode='max' or 'min', and at least one seed")
        self.axis, self.values, self.store = axis, values, store
        self.measure, self.sense, self.seed_key = metric, mode, seed_key
        self.test = SeedTest(float(target), seeds, mode == "min", *bounds)
        self.test.check(target)
        start = (len(values) + 1) // 2 if guess is None else values.index(guess) + 1
        plan = Plan(
            {1: range(1, len(values) + 1)}, self.test, (1, start), keep_within=None,
            confirm_seeds=confirm_seeds, intervals=False, both_ends=True, names=values,
        )  # fmt: skip
        calls = self._config, self._take_in, self._note_error
        super().__init__(Portfolio({CELL: plan}, together=1), *calls, slots=self._slots)
        self.most, self.has_scheduler = 0, True
        self.errors: dict[tuple[Any, int], str] = {}
        self._stop: Mapping[str, float] = {}
        self._reports: dict[str, tuple[int, Any]] = {}  # iterations and metric of each trial
        self._longest = 0  # iterations of any trial
        self._unsure: dict[Probe, int] = {}  # iterations of what may yet prove to have been cut
        self._cuts: Counter[Probe] = Counter()
        self._inherited: dict[str, Probe] = {}  # trials of the Tuner that this one continues
        for value, seed, score in store.read(axis, metric, seed_key) if store else ():
            if value in values:
                self.portfolio.tell(CELL, Key(1, values.index(value) + 1), {seed: score})

    # ----- what Tune asks and tells

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
        config = super().suggest(trial_id)
        if config is None and self._inherited and not self.probes:
            # Tune may not know of a trial that began as it was killed: another takes its place.
            for probe in self._inherited.values():
                self.portfolio.release(probe)
            self._inherited = {}
            config = super().suggest(trial_id)
        return config

    def _config(self, probe: Probe) -> dict[str, Any]:
        """What a trial's config holds beside what all trials share."""
        config: dict[str, Any] = {}
        for path, value in zip((self.axis, self.seed_key), self._seed_of(probe), strict=True):
            *outer, name = path.split("/")
            reduce(lambda inner, part: inner.setdefault(part, {}), outer, config)[name] = value
        return config

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """Remember the metric, and how far the trial is."""
        self._adopt(trial_id, result)
        iterations, known = result["training_iteration"], self._reports.get(trial_id, (0, None))
        self._reports[trial_id] = iterations, result.get(self.measure, known[1])
        self._longest = max(self._longest, iterations)
        for probe in [one for one, ended in self._unsure.items() if ended < self._longest]:
            del self._unsure[probe]
            self.portfolio.forget(probe)

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        """Take in the end of a trial, and its last result."""
        self._adopt(trial_id, result or {})
        if result and "training_iteration" not in result:
            self.fault = ValueError(
                "search_alg: Repeater and the like hide the results of trials; give "
                "ThresholdSearch itself, whose seeds=… are the trials of each value"
            )
        super().on_trial_complete(trial_id, result, error)

    def _adopt(self, trial_id: str, result: Mapping[str, Any]) -> None:
        """Take over a trial of an earlier Tuner: its config says which it is."""
        value = result.get(f"config/{self.axis}")
        if trial_id in self._inherited:
            self.probes[trial_id] = self._inherited.pop(trial_id)
        elif trial_id not in self.probes and value in self.values:
            seed = result[f"config/{self.seed_key}"]
            self.probes[trial_id] = Probe(CELL, 1, self.values.index(value) + 1, (seed,))

    def _take_in(self, trial_id: str, probe: Probe, result: dict[str, Any]) -> None:
        """Tell the search of a trial's score, if it has one."""
        before, _ = self._reports.get(trial_id, (0, None))
        self.on_trial_result(trial_id, result)
        iterations, metric = self._reports.pop(trial_id)
        # A function that returns does so after its last report, which Tune then shows twice.
        has_returned = iterations == before
        has_met_stop = any(result.get(name, -math.inf) >= at for name, at in self._stop.items())
        if self.has_scheduler and not has_returned and not has_met_stop:
            if iterations < self._longest:
                self._cut(probe)
                return
            self._unsure[probe] = iterations
        score, (value, seed) = _plain(metric), self._seed_of(probe)
        if not isinstance(score, int | float) or math.isnan(score):
            names = ", ".join(name for name in result if name.split("/")[0] not in TUNES)
            raise NoScore(f"{self.measure} is {metric!r}, no number; it reported {names}")
        try:
            self.portfolio.tell(CELL, probe.key, {seed: float(score)})
        except ValueError as error:
            raise ValueError(f"{self._name(probe)}: {self.measure}: {error}") from None
        if self.store and probe not in self._unsure:
            self.store.add(value, seed, float(score))

    def _cut(self, probe: Probe) -> None:
        """Have a trial trained again that ended before others do."""
        if not self._cuts:
            logger.warning(
                "%s: ended before others; as a scheduler may have stopped it, it is trained again, "
                "and trials run one at a time",
                self._name(probe),
            )
        self._cuts[probe] += 1
        if self._cuts[probe] > MOST_CUTS:
            raise NoScore(f"it ended before others {MOST_CUTS} times: give no scheduler")
        self._lost.clear()  # it is no loss

    def _note_error(self, probe: Probe, error: str) -> None:
        self.errors[self._seed_of(probe)] = error
        logger.warning("%s: %s", self._name(probe), in_a_line(error))

    def _seed_of(self, probe: Probe) -> tuple[Any, int]:
        return self.values[probe.value - 1], probe.seeds[0]

    def _name(self, probe: Probe) -> str:
        return "{} = {}, seed {}".format(self.axis, *self._seed_of(probe))

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

    # ----- what it comes to

    @property
    def scores(self) -> dict[Any, dict[int, float]]:
        """Every known metric, by value and seed."""
        keys = enumerate(self.values, 1)
        known = {value: self.portfolio.scores(CELL, Key(1, at)) for at, value in keys}
        return {value: dict(sorted(of.items())) for value, of in known.items() if of}

    def threshold(self) -> Threshold:
        """What has been found, with its certificate.

        Raises:
            ValueError: a score is outside the bounds, or a wrapper hid the results.
        """
        self._settled()
        self._warn_of_equal_seeds()
        search = self.portfolio.search(CELL)
        result = search.result(1)
        why = self._why_open() if result.status == "open" else f"{self.axis}: {result.why}"
        if result.value == 1 and self.values[-1] in result.fails_above:
            why += f", yet {self.values[-1]} fails: the values run the wrong way; turn them round"
        question: tuple[str, str, float, Mode, int]
        question = self.axis, self.measure, self.test.target, self.sense, self.test.seeds
        return Threshold(
            *question,
            status=result.status,
            value=result.value and self.values[result.value - 1],
            passed=result.passed,
            failed=result.failed,
            why=why,
            fresh=result.fresh if result.value else None,
            fails_above=result.fails_above,
            errors=dict(self.errors),
            scores=self.scores,
            steps=tuple(
                f"{self.axis} = {self.values[need.key.value - 1]} ({need.why}): {verdict}, "
                f"{search.test_of(need.want).explain(known) if known else 'a trial is missing'}"
                for need, verdict, known in search.decisions
            ),
        )

    def _why_open(self) -> str:
        """Which trial is missing, and why."""
        for need, verdict, known in self.portfolio.search(CELL).decisions:
            value = self.values[need.key.value - 1]
            lost = [seed for its, seed in self.errors if its == value and seed not in known]
            if verdict == "open" and (seed := min(lost, default=None)) is not None:
                return f"{self.axis} = {value}, seed {seed}: {in_a_line(self.errors[value, seed])}"
        return "the Tuner ended first: give num_samples=-1 and no time budget, and restore it"

    def _warn_of_equal_seeds(self) -> None:
        """Warn if seeds change nothing, but for scores at a bound."""
        several = [{*of.values()} for of in self.scores.values() if len(of) > 1]
        inside = [len(its) for its in several if not its <= {self.test.low, self.test.high}]
        if inside and max(inside) == 1:
            uses = f"does the trainable use config[{self.seed_key!r}]?"
            warnings.warn(f"all seeds of a value score the same: {uses}", stacklevel=3)

    def _settled(self) -> None:
        self.settle()
        if self.fault is not None:
            raise self.fault


def _plain(value: Any) -> Any:
    """A scalar of numpy or torch as Python's own; anything else as it is."""
    is_scalar = getattr(value, "ndim", None) == 0 and hasattr(value, "item")
    return value.item() if is_scalar else value
