"""Where the search of one cell stands, and what it says of each arm."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from search.best_arm import rank
from search.bracket import Bracket
from search.protocol import ArmResult, CellPlan, Decision, Need, ProbeKey, ProbeResult, Verdict
from search.seed_test import SeedTest

Scores = dict[int, float]
Evidence = dict[ProbeKey, Scores]
Assumed = Mapping[ProbeKey, Verdict]
Outcome = Verdict | Literal["failed"]


@dataclass
class CellState:
    """A cell's search as far as the evidence carries it.

    Attributes:
        needs: probes that must be run before the search can go on; empty when finished.
        brackets: of each arm, from the probes of this search alone.
        decisions: every probe of the search so far, in order.
        used: verdicts of the probes of this search.
        every_seed, retested: probes that all seeds, or the extra ones too, were wanted of.
        failed_probes: probes that could not be run.
        failed_arms: arms that such a probe leaves open.
        contradicted: arms whose contradiction more seeds did not settle.
        optimistic, conservative: the ends of App. A.2's interval on the value.
    """

    plan: CellPlan
    test: SeedTest
    evidence: Mapping[ProbeKey, Scores]
    assumed: Assumed
    failed_probes: frozenset[ProbeKey]
    needs: tuple[Need, ...] = ()
    brackets: dict[int, Bracket] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    used: dict[ProbeKey, Verdict] = field(default_factory=dict)
    every_seed: set[ProbeKey] = field(default_factory=set)
    retested: set[ProbeKey] = field(default_factory=set)
    failed_arms: set[int] = field(default_factory=set)
    contradicted: set[int] = field(default_factory=set)
    optimistic: dict[int, int] = field(default_factory=dict)
    conservative: dict[int, int] = field(default_factory=dict)
    _margin: int | None = None

    def set_bracket(self, arm: int, bracket: Bracket) -> None:
        """Replace the bracket of an arm."""
        self.brackets[arm] = bracket
        if bracket.is_closed or self._margin is not None:
            self._margin = self._margin_now()

    def give_up(self, arm: int) -> None:
        """Take an arm for contradicted: it no longer bounds the others."""
        self.contradicted.add(arm)
        self._margin = self._margin_now()

    @property
    def is_done(self) -> bool:
        """Whether nothing more needs to be run."""
        return not self.needs

    @property
    def best_cost(self) -> int | None:
        """Smallest cost known to pass, over all arms that are not contradicted."""
        return min(self._passing(closed=False), default=None)

    @property
    def margin_cost(self) -> int | None:
        """Largest cost that is still of interest, by the kept margin; None while there is no bound.

        It counts only closed brackets, so that it never shrinks below where it must end.
        """
        return self._margin

    def _margin_now(self) -> int | None:
        closed = self._passing(closed=True)
        if not closed or self.plan.keep_within is None:
            return None
        return math.floor(min(closed) * (1 + Fraction(repr(self.plan.keep_within))))

    def _passing(self, closed: bool) -> list[int]:
        return [
            arm * bracket.high
            for arm, bracket in self.brackets.items()
            if bracket.high is not None
            and (bracket.is_closed or not closed)
            and arm not in self.contradicted
        ]

    def cap(self, arm: int) -> int:
        """Largest value worth probing for an arm; 0 if none is."""
        margin = self.margin_cost
        bracket = self.brackets[arm]
        return self.plan.limit(arm) if margin is None else bracket.at_most(margin // arm)

    @property
    def tried(self) -> list[int]:
        """The arms that this search has probed."""
        probed = {key.arm for key in self.used} | self.failed_arms
        return [arm for arm in self.plan.axes if arm in probed]

    def is_ruled_out(self, arm: int, value: int) -> bool:
        """Whether a failure at a larger arm and value shows that this one fails too."""
        return self.plan.every_arm and self._ruled_out_by(arm, value) is not None

    def _ruled_out_by(self, arm: int, value: int) -> ProbeKey | None:
        larger = (
            key
            for key, verdict in self.used.items()
            if verdict == "fail" and not key.extended and key.arm >= arm and key.value >= value
        )
        return next(larger, None)

    def test_of(self, key: ProbeKey, want_extra: bool = False) -> SeedTest:
        """The test of a probe: over more seeds if it was retested."""
        return self.test.with_extra if want_extra or key in self.retested else self.test

    def outcome(self, need: Need) -> Outcome | None:
        """What the evidence says of a probe: a verdict, that it failed to run, or nothing yet."""
        scores = self.evidence.get(need.key, {})
        if not self.wave(need):
            return self.test_of(need.key, need.want == "extra seeds").verdict(scores)
        if need.want == "verdict" and need.key in self.assumed:
            return self.assumed[need.key]
        return "failed" if need.key in self.failed_probes else None

    def wave(self, need: Need) -> tuple[int, ...]:
        """Seeds to train next for a need."""
        test = self.test_of(need.key, need.want == "extra seeds")
        return test.next_wave(self.evidence.get(need.key, {}), need.want != "verdict")

    def scores(self, key: ProbeKey) -> Scores:
        """The scores of a probe that this search has asked for, by seed."""
        known = self.evidence.get(key, {})
        complete = key in self.every_seed or key in self.retested
        return self.test_of(key).needed(known, complete)

    def result(self, arm: int) -> ArmResult:
        """What is known of an arm."""
        bracket, margin, word = self.brackets[arm], self.margin_cost, self.plan.words.value
        contradiction = self.contradiction(arm)
        low, high = bracket.low, bracket.high
        next_up = arm * self._after(arm, low)
        if contradiction is not None:
            passed, failed = (self._probe(ProbeKey(arm, value)) for value in contradiction)
            if passed and failed:
                return ArmResult(
                    arm=arm,
                    status="inconsistent",
                    value=None,
                    cost_low=arm * passed.value,
                    cost_high=arm * self._after(arm, failed.value),
                    because=f"passes at {word} = {passed.value}, fails above it at {failed.value}",
                    contradiction=(passed, failed),
                )
        if bracket.is_closed and high is not None and (margin is None or arm * high <= margin):
            extended = self._probe(ProbeKey(arm, low, extended=True)) if low else None
            verdict = self.used.get(ProbeKey(arm, low, extended=True))
            return ArmResult(
                arm=arm,
                status="found",
                value=high,
                cost_low=_times(arm, self.optimistic.get(arm)),
                cost_high=_times(arm, self.conservative.get(arm)),
                because=f"passes at {word} = {high}, "
                + (f"fails at {low}" if low else "the smallest there is"),
                passed=self._probe(ProbeKey(arm, high)),
                failed=self._probe(ProbeKey(arm, low)) if low else None,
                extended=extended,
                limited_by=None if not verdict else "budget" if verdict == "pass" else "capacity",
            )
        limit = self.plan.limit(arm)
        beyond = arm * (limit + 1)
        refuted = bracket.is_exhausted or (self.is_done and self.is_ruled_out(arm, limit))
        if refuted and (margin is None or beyond <= margin):
            failed = self._probe(ProbeKey(arm, limit))
            because = f"no pass up to the largest {word} allowed, {limit}"
            return ArmResult(arm, "censored", None, beyond, None, because, failed=failed)
        if margin is not None and self.is_done and arm not in self.failed_arms:
            because = self._why_pruned(arm, margin)
            return ArmResult(arm, "pruned", None, arm * (margin // arm + 1), None, because)
        because = "a run failed" if arm in self.failed_arms else "its search goes on"
        return ArmResult(arm, "open", None, next_up, _times(arm, high), because)

    @property
    def best(self) -> ArmResult | None:
        """The best arm of those found, as ``rank`` has it; None while there is none."""

        def rank_of(result: ArmResult) -> tuple[int, float, int]:
            assert result.cost is not None
            mean_score = result.passed.mean_score if result.passed else None
            return rank(result.cost, mean_score, result.arm, self.test.minimise)

        closed = (arm for arm, bracket in self.brackets.items() if bracket.is_closed)
        found = (result for arm in closed if (result := self.result(arm)).status == "found")
        return min(found, key=rank_of, default=None)

    def contradiction(self, arm: int) -> tuple[int, int] | None:
        """The lowest pass and the highest fail of this search, if the pass lies below."""
        passes, fails = self.verdicts(arm)
        if not passes or not fails or min(passes) > max(fails):
            return None
        return min(passes), max(fails)

    def verdicts(self, arm: int) -> tuple[list[int], list[int]]:
        """The values that pass and those that fail, among the probes of this search."""
        own = [(p.value, v) for p, v in self.used.items() if p.arm == arm and not p.extended]
        return [d for d, v in own if v == "pass"], [d for d, v in own if v == "fail"]

    def _why_pruned(self, arm: int, margin: int) -> str:
        words = self.plan.words
        within = f"{words.cost} = {margin}, {self.plan.keep_within:.0%} above the best"
        cap = self.cap(arm)
        if not cap:
            return f"its smallest {words.value} lies beyond {within}"
        low = self.brackets[arm].low
        if cap == low:
            return f"fails at {words.value} = {low}, the largest within {within}"
        if cap < low:
            return f"fails at {words.value} = {low}; {words.value} ≤ {cap} lies within {within}"
        larger = self._ruled_out_by(arm, cap)
        if larger is not None:
            fails = f"{larger.arm} {words.arms} of {words.value} = {larger.value} fail"
            return f"{fails}; {words.value} ≤ {cap} lies within {within}"
        return f"its threshold lies beyond {within}"

    def _after(self, arm: int, value: int) -> int:
        """The value of the axis after this one; one more than the last after that."""
        axis = self.plan.axes[arm]
        return next((above for above in axis if above > value), axis[-1] + 1)

    def _probe(self, key: ProbeKey) -> ProbeResult | None:
        scores = self.scores(key)
        if not scores:
            return None
        return ProbeResult(key.value, self.test_of(key).mean(scores), len(scores))


def _times(arm: int, value: int | None) -> int | None:
    return None if value is None else arm * value
