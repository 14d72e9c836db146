"""The search behind a question: one portfolio, its settings as cells or as arms of one cell."""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from typing import Any

from rgr_dist.search.best_arm import rank
from rgr_dist.search.bracket import Bracket
from rgr_dist.search.cell_state import CellState
from rgr_dist.search.confidence_interval import mean
from rgr_dist.search.old_portfolio import Portfolio
from rgr_dist.search.protocol import (
    ArmResult,
    CellPlan,
    Decision,
    Probe,
    ProbeKey,
    ProbeResult,
    Words,
)
from rgr_dist.search.tune.question import Question
from rgr_dist.search.tune.score_file import ScoreFile
from rgr_dist.search.tune.threshold import Threshold, Thresholds, TrialError, name

logger = logging.getLogger(__name__)
ONE_CELL = "all settings"


class SettingSearch:
    """Searches every setting, and keeps each score before the search learns of it.

    Where every setting is searched to the end, each is a cell, so that none waits for another.
    Where they are pruned by their cost, they are the arms of one cell.

    Args:
        question: what is asked.
        kept: the scores that are known, and where new ones are written.

    Attributes:
        portfolio: decides which probes to run.
        places: the cell and the arm of each setting, by its number.
        trained: number of the setting, value and seed of what was trained since it began.
        errors: trials without a score, by the number of their setting.
        cut: iterations of the trials that may have been stopped early, by number, value and seed.
        longest: iterations of the longest trial.

    Raises:
        ValueError: a score that is kept lies outside the bounds.
    """

    def __init__(self, question: Question, kept: ScoreFile) -> None:
        self.kept = kept
        self.errors: dict[int, list[TrialError]] = defaultdict(list)
        self.cut: dict[tuple[int, int, int], int] = {}
        self.longest = 0
        self.trained = set[tuple[int, int, int]]()
        self.begin(question)

    def begin(self, question: Question) -> None:
        """Begin with the scores that are kept: anything else is asked for, also what failed."""
        self.question = question
        numbers, pruned = range(len(question.settings)), question.keep_within is not None
        self.places = [(ONE_CELL, n + 1) if pruned else (f"{n}", 1) for n in numbers]
        self.portfolio = Portfolio(self._plans(), question.test, together=1)
        key = self.kept.key
        places = dict(zip(map(key, question.settings), self.places, strict=True))
        for score in self.kept.scores:
            if place := places.get(key(score.setting)):
                self._check(score.value, score.seed, score.score)
                self.portfolio.tell(*place, score.value, score.seed, score.score)

    def _plans(self) -> list[CellPlan]:
        asked = self.question
        plan = partial(
            CellPlan,
            keep_within=asked.keep_within,
            intervals=False,
            unrunnable="fail" if asked.on_error == "fail" else "open",
            confirm_seeds=asked.confirm_seeds,
            words=Words(value=asked.axis, arms="settings"),
        )
        if asked.keep_within is None:
            spread = math.inf if asked.guess is None else 1.5
            plan = partial(plan, guess_cost=float(asked.start), spread=spread)
            return [plan(cell, {arm: asked.values}) for cell, arm in self.places]
        return [
            plan(
                ONE_CELL,
                {arm: asked.values for _, arm in self.places},
                guess_cost=min(cost(asked.start) for cost in asked.costs),
                cost=lambda arm, value: asked.costs[arm - 1](value),
            )
        ]

    def number_of(self, probe: Probe) -> int:
        """The number of the setting that a probe belongs to."""
        return self.places.index((probe.cell, probe.arm))

    def config(self, probe: Probe) -> dict[str, object]:
        """What a trial's config holds in addition to what all trials share."""
        asked, setting = self.question, self.question.settings[self.number_of(probe)]
        return {**setting, asked.axis: probe.value, asked.seed_key: probe.seeds[0]}

    def take_in(self, probe: Probe, score: float) -> None:
        """Keep the score of a probe's seed, then tell the search.

        Raises:
            ValueError: the score lies outside the bounds.
            OSError: it could not be written.
        """
        number, seed = self.number_of(probe), probe.seeds[0]
        if seed in self.portfolio.scores(probe.cell, probe.key):
            return
        self._check(probe.value, seed, score)
        self.kept.add(probe.value, seed, score, self.question.settings[number])
        self.trained.add((number, probe.value, seed))
        self.portfolio.tell(probe.cell, probe.arm, probe.value, seed, score)

    def _check(self, value: int, seed: int, score: float) -> None:
        try:
            self.question.test.check(score)
        except ValueError as fault:
            where = f"{self.question.axis} = {value}, seed {seed}"
            raise ValueError(f"{where}: {self.question.metric}: {fault}") from None

    def note(self, probe: Probe, text: str) -> None:
        """Note what a trial gave instead of a score, and log it in a line."""
        error, number = TrialError(probe.value, probe.seeds[0], text), self.number_of(probe)
        self.errors[number].append(error)
        setting = {**self.question.settings[number], self.question.axis: error.value}
        policy = '; on_error="fail" would count it as failing'
        if self.question.on_error == "fail":
            policy = "; it counts as failing"
        logger.warning("%s, seed %d: %s%s", name(setting), error.seed, error.message, policy)

    def note_end(self, probe: Probe, iterations: int, is_natural: bool) -> None:
        """Note after how many iterations a trial ended, and whether it did so by itself."""
        self.longest = max(self.longest, iterations)
        if not is_natural:
            self.cut[self.number_of(probe), probe.value, probe.seeds[0]] = iterations

    @property
    def ignores_seeds(self) -> bool:
        """Whether every value with several seeds has a single score, not counting the bounds."""
        several = [
            set(scores.values())
            for cell in self.portfolio.plans
            for scores in self.portfolio.state(cell).evidence.values()
            if len(scores) > 1 and not set(scores.values()) <= set(self.question.bounds)
        ]
        return bool(several) and all(len(scores) == 1 for scores in several)

    def open_brackets(self) -> list[tuple[Mapping[str, Any], Bracket]]:
        """The settings whose search goes on, and where each stands."""
        found: list[tuple[Mapping[str, Any], Bracket]] = []
        for setting, (cell, arm) in zip(self.question.settings, self.places, strict=True):
            state = self.portfolio.state(cell)
            if any(need.key.arm == arm for need in state.needs):
                found.append((setting, state.brackets[arm]))
        return found

    @property
    def asked(self) -> dict[str, str]:
        """The question in words, equal for searches that can go on with each other's scores."""
        in_order = list(self.question.over.items())
        return {**self.question.described, "over": self.kept.key({"over": in_order})}

    def result(self) -> Thresholds:
        """The threshold of every setting so far, and the best one."""
        found = tuple(self._threshold(number) for number in range(len(self.question.settings)))
        minimise = self.question.test.minimise
        priced = [
            (rank(one.cost, one.passed.mean_score, number, minimise), one)
            for number, one in enumerate(found)
            if one.cost is not None and one.passed is not None
        ]
        return Thresholds(found, min(priced, key=lambda pair: pair[0])[1] if priced else None)

    def _threshold(self, number: int) -> Threshold:
        asked, (cell, arm) = self.question, self.places[number]
        state = self.portfolio.state(cell)
        result = state.result(arm)
        decisions = tuple(decision for decision in state.decisions if decision.arm == arm)
        known = {
            key.value: dict(sorted(scores.items()))
            for key, scores in sorted(state.evidence.items())
            if key.arm == arm and key.value in asked.values
        }
        taken = {
            (one.value, seed)
            for one in decisions
            for seed in state.scores(ProbeKey(arm, one.value), one.want)
        }
        trained = {(value, seed) for of, value, seed in self.trained if of == number}
        errors = tuple(sorted(self.errors[number], key=lambda error: (error.value, error.seed)))
        cost = None
        if asked.costs and result.value is not None:
            cost = asked.costs[number](result.value)
        return Threshold(
            axis=asked.axis,
            metric=asked.metric,
            target=asked.test.target,
            mode=asked.mode,
            seeds=asked.test.seeds,
            setting=asked.settings[number],
            status=result.status,
            value=result.value,
            cost=cost,
            passed=result.passed,
            failed=result.failed,
            because=self._because(result, decisions, errors),
            fresh=result.fresh,
            fails_above=_fails_above(state, arm, known),
            errors=errors,
            stopped_early=tuple(
                sorted(
                    (value, seed)
                    for (of, value, seed), iterations in self.cut.items()
                    if of == number and iterations < self.longest
                )
            ),
            scores=known,
            decisions=decisions,
            ahead=len(trained - taken),
        )

    def _because(
        self, result: ArmResult, decisions: tuple[Decision, ...], errors: tuple[TrialError, ...]
    ) -> str:
        """The reason for a status, with the error behind it, if there is one."""
        needed = {decision.value for decision in decisions if decision.verdict == "open"}
        if result.value is not None:
            needed = {max((value for value in needed if value < result.value), default=0)}
        error = next((error for error in errors if error.value in needed), None)
        if error is not None and result.status == "open":
            where = f"{self.question.axis} = {error.value}, seed {error.seed}"
            return f"{where}: {error.message}"
        if error is not None and "could not be run" in result.because:
            return f"{result.because} (at {error.value}: {error.message})"
        return result.because


def _fails_above(
    state: CellState, arm: int, known: dict[int, dict[int, float]]
) -> tuple[ProbeResult, ...]:
    """The values that fail above the smallest that passes, and their means over all known seeds."""
    test = state.test
    verdicts = {value: test.verdict(scores) for value, scores in known.items()}
    verdicts |= {key.value: "fail" for key in state.refuted if key.arm == arm}
    least = min((value for value, verdict in verdicts.items() if verdict == "pass"), default=None)
    return tuple(
        ProbeResult(value, mean(known[value].values()), len(known[value]))
        for value, verdict in verdicts.items()
        if least is not None and value > least and verdict == "fail"
    )
