"""Where the search of one cell stands, and what it says of each arm."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from typing import Literal

from rgr_dist.search.best_arm import rank
from rgr_dist.search.bracket import Bracket
from rgr_dist.search.probe_verdict import Scores, SeedTest, Verdict
from rgr_dist.search.protocol import (
    ArmResult,
    CellPlan,
    Decision,
    Need,
    ProbeKey,
    ProbeResult,
    Want,
)

Evidence = dict[ProbeKey, Scores]
Assumed = Mapping[tuple[ProbeKey, Want], Verdict]
Outcome = Verdict | Literal["failed"]

NEAR = 1.15
"""How far the first steps go from a threshold found at the next larger budget."""


@dataclass
class CellState:
    """A cell's search, run up to where the evidence ends.

    Attributes:
        needs: probes that must be run before the search can go on; empty when finished.
        brackets: the bracket of each arm, from the probes of this search alone.
        decisions: every probe of the search so far, in order.
        used: the verdict of each probe of this search.
        looked: probes that pass for now, on their first seeds.
        every_seed, retested: probes for which all seeds, or the extra ones too, were wanted.
        confirmed, refuted: probes that passed, and then passed or failed on fresh seeds.
        unconfirmed: probes that passed, but whose fresh seeds could not be run.
        fresh_tests: the test on fresh seeds that confirmed or refuted each probe. A later retest,
            which adds seeds, does not change it.
        failed: seeds of each probe that could not be run.
        failed_arms: arms that such a seed leaves open, with the value and seed of each.
        unrunnable: probes of this search that count as failing because of such a seed.
        contradicted: the contradiction of each arm in which more seeds did not settle it.
        optimistic, conservative: the ends of App. A.2's interval of each arm, as values.
        guides: the finished searches that this one follows, by the names of their plans.
        passing: the arms that have a value that passes, perhaps only for now.
        found: the cost of each known threshold.
        bound: the lowest of these; it limits how far other arms are searched.
    """

    plan: CellPlan
    test: SeedTest
    evidence: Mapping[ProbeKey, Scores]
    assumed: Assumed
    failed: Mapping[ProbeKey, Set[int]]
    guides: Mapping[str, CellState] = field(default_factory=dict)
    needs: tuple[Need, ...] = ()
    brackets: dict[int, Bracket] = field(default_factory=dict)
    passing: set[int] = field(default_factory=set)
    decisions: list[Decision] = field(default_factory=list)
    used: dict[ProbeKey, Verdict] = field(default_factory=dict)
    looked: set[ProbeKey] = field(default_factory=set)
    every_seed: set[ProbeKey] = field(default_factory=set)
    retested: set[ProbeKey] = field(default_factory=set)
    confirmed: set[ProbeKey] = field(default_factory=set)
    refuted: set[ProbeKey] = field(default_factory=set)
    unconfirmed: set[ProbeKey] = field(default_factory=set)
    fresh_tests: dict[ProbeKey, SeedTest] = field(default_factory=dict)
    failed_arms: dict[int, set[tuple[int, int]]] = field(default_factory=dict)
    unrunnable: set[ProbeKey] = field(default_factory=set)
    contradicted: dict[int, tuple[int, int]] = field(default_factory=dict)
    optimistic: dict[int, int] = field(default_factory=dict)
    conservative: dict[int, int] = field(default_factory=dict)
    found: dict[int, float] = field(default_factory=dict)
    bound: float | None = None

    def set_bracket(self, arm: int, bracket: Bracket) -> None:
        """Replace the bracket of an arm."""
        self.brackets[arm] = bracket
        (self.passing.discard if bracket.above is None else self.passing.add)(arm)
        self._bind(arm)

    def give_up(self, arm: int, contradiction: tuple[int, int]) -> None:
        """Mark an arm as contradicted, so that it no longer bounds the others."""
        self.contradicted[arm] = contradiction
        self._bind(arm)

    def _bind(self, arm: int) -> None:
        """Let the threshold of an arm, if it is known, bound the others."""
        self.found.pop(arm, None)
        if arm not in self.contradicted and self.is_closed(arm):
            self.found[arm] = self._cost(arm)
        self.bound = min(self.found.values(), default=None)

    def _cost(self, arm: int) -> float:
        """The cost of the smallest value of an arm that is known to pass."""
        return self.plan.cost_of(arm, self.brackets[arm].high or 0)

    @property
    def is_waiting(self) -> bool:
        """Whether a search that this one follows is not finished."""
        return any(name not in self.guides for name in self.plan.guides)

    @property
    def is_done(self) -> bool:
        """Whether nothing more needs to be run."""
        return not self.needs and not self.is_waiting

    @property
    def is_settled(self) -> bool:
        """Whether it is done, and no arm is open because a run of it failed."""
        return self.is_done and not self.failed_arms

    @property
    def shorter(self) -> CellState | None:
        """The finished search at the smaller budget that this one follows."""
        return self.guides.get(self.plan.budget.shorter or "")

    @property
    def longer(self) -> CellState | None:
        """The finished search at the larger budget that this one follows."""
        return self.guides.get(self.plan.budget.longer or "")

    @property
    def asked(self) -> dict[ProbeKey, int]:
        """How many seeds of each probe this search uses so far, not counting fresh ones.

        Its probes are those decided, wanted next, or listed in its grid.
        """
        if self.plan.every_value:
            keys = (ProbeKey(arm, value) for arm, axis in self.plan.axes.items() for value in axis)
            return {key: self.test_of(key).seeds for key in keys}
        wanted = [(ProbeKey(one.arm, one.value), one.want) for one in self.decisions]
        wanted += [(need.key, need.want) for need in self.needs]
        used: dict[ProbeKey, int] = {}
        for key, want in wanted:
            scores = {} if want == "fresh seeds" else self.scores(key, want)
            used[key] = max(used.get(key, 0), max(scores, default=-1) + 1)
        return used

    @cached_property
    def start(self) -> tuple[float, float, float]:
        """The cost and the arm at which to look for a first pass, and the factor of later steps."""
        plan = self.plan
        for guide, spread in ((self.longer, NEAR), (self.shorter, plan.spread)):
            if guide is not None and guide.best is not None and guide.best.cost is not None:
                return float(guide.best.cost), float(guide.best.arm), spread
        return plan.guess_cost, plan.guess_arm, plan.spread

    @property
    def best_cost(self) -> float | None:
        """Smallest cost known to pass, over all arms that are not contradicted."""
        return min(map(self._cost, self.passing - self.contradicted.keys()), default=None)

    def margin(self, arm: int) -> int | None:
        """Largest value of an arm that is still near the best; None if nothing bounds the arm.

        Only closed brackets count for the best, so that the margin never falls below its final
        value.
        """
        if self.bound is None or self.plan.is_kept(arm):
            return None
        return self.plan.largest_kept(self.bound, arm)

    def is_closed(self, arm: int) -> bool:
        """Whether the threshold of an arm is known, and does not merely pass for now."""
        bracket = self.brackets[arm]
        if not bracket.is_closed or not self.looked:
            return bracket.is_closed
        return ProbeKey(arm, bracket.high or 0) not in self.looked

    def cap(self, arm: int) -> int:
        """Largest value worth probing for an arm; 0 if none is."""
        margin = self.margin(arm)
        return self.plan.limit(arm) if margin is None else self.brackets[arm].at_most(margin)

    @property
    def tried(self) -> list[int]:
        """The arms that this search has probed."""
        probed = {key.arm for key in (*self.used, *self.unrunnable)}.union(self.failed_arms)
        return [arm for arm in self.plan.axes if arm in probed]

    def ruled_out_by(self, arm: int, value: int) -> ProbeKey | None:
        """A failed probe of no smaller arm and value, by which this one fails too; or None."""
        larger = (
            key
            for key, verdict in self.used.items()
            if verdict == "fail" and key.arm >= arm and key.value >= value
        )
        return next(larger, None) if self.plan.every_arm else None

    def test_of(self, key: ProbeKey, want: Want = "verdict") -> SeedTest:
        """The test of a probe over the seeds that are wanted, and over more if it was retested."""
        extra = want == "extra seeds" or key in self.retested
        test = self.test.with_extra if extra else self.test
        if want == "look":
            return test.at_first
        if want == "fresh seeds":
            return self.fresh_tests.get(key) or test.on_fresh(self.plan.confirm_seeds)
        if want == "transition":
            return replace(self.test, seeds=self.plan.transition.seeds, extra=0)
        return test

    def outcome(self, need: Need) -> Outcome | None:
        """What the evidence says of a probe: a verdict, that it failed to run, or nothing yet.

        A probe has failed to run if a seed of its next wave has; other seeds do not matter.
        """
        if need.key in self.unrunnable:
            return "failed"
        if not (wave := self.wave(need)):
            test = self.test_of(need.key, need.want)
            return test.verdict(test.needed(self.evidence.get(need.key, {}), not need.ends_early))
        if (need.key, need.want) in self.assumed:
            return self.assumed[need.key, need.want]
        return "failed" if self.failed_of(need.key, wave) else None

    def failed_of(self, key: ProbeKey, wave: Iterable[int]) -> Set[int]:
        """Which of these seeds of a probe could not be run."""
        return self.failed.get(key, set()) & set(wave)

    def wave(self, need: Need) -> tuple[int, ...]:
        """Seeds to train next for a need."""
        test = self.test_of(need.key, need.want)
        complete = not need.ends_early and need.want != "fresh seeds"
        return test.next_wave(self.evidence.get(need.key, {}), complete)

    def scores(self, key: ProbeKey, want: Want = "verdict") -> Scores:
        """The scores of a probe that this search has asked for, by seed."""
        known = self.evidence.get(key, {})
        complete = want == "transition" or key in self.every_seed or key in self.retested
        complete &= want != "fresh seeds"
        if want == "verdict" and key in self.looked:
            want = "look"
        test = self.test_of(key, want)
        has_failed = bool(self.failed_of(key, test.next_wave(known, complete)))
        return test.needed(known, complete, whole=has_failed)

    def result(self, arm: int) -> ArmResult:
        """What is known of an arm."""
        bracket, margin, word = self.brackets[arm], self.margin(arm), self.plan.words.value
        contradiction = self.contradiction(arm)
        low, high = bracket.low, bracket.high
        refuted = min((key.value for key in self.refuted if key.arm == arm), default=None)
        if contradiction is not None:
            passed, failed = (self._probe(ProbeKey(arm, value)) for value in contradiction)
            if passed and failed:
                return ArmResult(
                    arm=arm,
                    status="inconsistent",
                    value=None,
                    cost_low=self.plan.cost_of(arm, passed.value),
                    cost_high=self._cost_after(arm, failed.value),
                    because=f"passes at {word} = {passed.value}, fails above it at {failed.value}",
                    contradiction=(passed, failed),
                    first_value=refuted,
                )
        key = ProbeKey(arm, high or 0)
        is_known = self.is_closed(arm) and key not in self.unconfirmed
        if is_known and high is not None and (margin is None or high <= margin):
            fails = f"fails at {low}" if low else "the smallest there is"
            failed = self._probe(ProbeKey(arm, low)) if low else None
            if ProbeKey(arm, low) in self.unrunnable:
                fails, failed = f"{low} could not be run", None
            return ArmResult(
                arm=arm,
                status="found",
                value=high,
                cost=self.plan.cost_of(arm, high),
                cost_low=self.plan.cost_if_known(arm, self.optimistic.get(arm)),
                cost_high=self.plan.cost_if_known(arm, self.conservative.get(arm)),
                because=f"passes at {word} = {high}, {fails}{self._by_fresh_seeds(arm, low)}",
                passed=self._probe(key),
                failed=failed,
                confirmed=True if key in self.confirmed else None,
                fresh=self._probe(key, "fresh seeds") if key in self.confirmed else None,
                first_value=high if refuted is None else refuted,
            )
        rest = self._without_threshold(arm)
        if refuted is None:
            return replace(rest, first_value=high) if key in self.unconfirmed else rest
        fresh = self._probe(ProbeKey(arm, refuted), "fresh seeds")
        return replace(rest, confirmed=False, fresh=fresh, first_value=refuted)

    def _without_threshold(self, arm: int) -> ArmResult:
        """What is known of an arm that has no threshold: censored, pruned or open."""
        bracket, margin, word = self.brackets[arm], self.margin(arm), self.plan.words.value
        low, limit = bracket.low, self.plan.limit(arm)
        is_refuted = bracket.is_exhausted or (self.is_done and self.ruled_out_by(arm, limit))
        if is_refuted and (margin is None or limit < margin):
            key = ProbeKey(arm, limit)  # not asked for if a larger arm rules this one out
            failed = self._probe(key) if key in self.used else None
            because = f"no pass up to the largest {word} allowed, {limit}"
            because += self._by_fresh_seeds(arm, limit)
            if unrun := sorted(key.value for key in self.unrunnable if key.arm == arm):
                because += f"; could not be run at {word} = {', '.join(map(str, unrun))}"
            beyond = self.plan.cost_if_known(arm, limit + 1)
            return ArmResult(arm, "censored", None, beyond, None, because, failed=failed)
        if margin is not None and self.is_done and arm not in self.failed_arms:
            because = self._why_pruned(arm, margin) + self._by_fresh_seeds(arm, low)
            because += self._by_retests(arm)
            failed = self._probe(ProbeKey(arm, low)) if low else None
            at_least = self._cost_after(arm, margin)
            if arm in self.optimistic and at_least is not None:
                at_least = min(at_least, self.plan.cost_of(arm, self.optimistic[arm]))
            return ArmResult(arm, "pruned", None, at_least, None, because, failed=failed)
        because = "a run failed" if arm in self.failed_arms else "its search goes on"
        if ProbeKey(arm, bracket.high or 0) in self.unconfirmed:
            because = "a run on its fresh seeds failed"
        next_up, known = self._cost_after(arm, low), self.plan.cost_if_known(arm, bracket.high)
        return ArmResult(arm, "open", None, next_up, known, because)

    def _by_fresh_seeds(self, arm: int, value: int) -> str:
        """A clause that says that fresh seeds refuted a value; empty if they did not."""
        if ProbeKey(arm, value) not in self.refuted:
            return ""
        first, fresh = self.test_of(ProbeKey(arm, value)).seeds, self.plan.confirm_seeds
        return f" (it passes on seeds 0 to {first - 1}, not on {fresh} fresh ones)"

    @property
    def best(self) -> ArmResult | None:
        """The best of the arms found, by ``rank``; None while there is none."""

        def rank_of(result: ArmResult) -> tuple[float, float, int]:
            assert result.cost is not None
            mean_score = result.passed.mean_score if result.passed else None
            return rank(result.cost, mean_score, result.arm, self.test.minimise)

        closed = sorted((arm for arm in self.brackets if self.is_closed(arm)), key=self._cost)
        for _, arms in groupby(closed, self._cost):  # whole results take long, so few are made
            found = [result for arm in arms if (result := self.result(arm)).status == "found"]
            if found:
                return min(found, key=rank_of)
        return None

    def contradiction(self, arm: int) -> tuple[int, int] | None:
        """The lowest pass and the highest fail of this search, if the pass lies below the fail.

        A pass that fresh seeds confirmed stands, whatever fails above it: means may dip. Once given
        up, the contradiction is the one that extra seeds did not settle, whatever runs later.
        """
        if self.test.extra and arm in self.contradicted:
            return self.contradicted[arm]
        passes, fails = self.verdicts(arm)
        passes = [value for value in passes if ProbeKey(arm, value) not in self.confirmed]
        if not passes or not fails or min(passes) > max(fails):
            return None
        return min(passes), max(fails)

    def verdicts(self, arm: int) -> tuple[list[int], list[int]]:
        """The values that pass and those that fail, among the probes of this search."""
        own = [(probe.value, v) for probe, v in self.used.items() if probe.arm == arm]
        return [d for d, v in own if v == "pass"], [d for d, v in own if v == "fail"]

    def _why_pruned(self, arm: int, margin: int) -> str:
        words = self.plan.words
        share = 100 * (self.plan.keep_within or 0)
        near = (
            f"near the best, {words.cost} = {shown(self.bound)} (within {share:.6g}% or one step)"
        )
        cap = self.cap(arm)
        if not cap:
            return f"its smallest {words.value} is not {near}"
        low = self.brackets[arm].low
        if cap == low:
            return f"fails at {words.value} = {low}, the largest {near}"
        if cap < low:
            return (
                f"fails at {words.value} = {low}, so at every {words.value} ≤ {cap}, those {near}"
            )
        larger = self.ruled_out_by(arm, cap)
        if larger is not None:
            fails = f"{larger.arm} {words.arms} of {words.value} = {larger.value} fail"
            return f"{fails}, so fewer do at every {words.value} ≤ {cap}, those {near}"
        return f"its threshold is not {near}"

    def _by_retests(self, arm: int) -> str:
        """A clause that names the values that pass on the first seeds and fail with more."""
        values = sorted(
            key.value
            for key in self.retested
            if key.arm == arm
            and self.used.get(key) == "fail"
            and self.test.verdict(self.evidence[key]) == "pass"
        )
        listed, more = " and ".join(map(str, values)), self.test.extra
        return f"; passes at {listed} on the first seeds, not with {more} more" if values else ""

    def _cost_after(self, arm: int, value: int) -> float | None:
        """The cost of the next larger value of the axis, or of one more than its last."""
        axis = self.plan.axes[arm]
        place = bisect_right(axis, value)
        return self.plan.cost_if_known(arm, axis[place] if place < len(axis) else axis[-1] + 1)

    def _probe(self, key: ProbeKey, want: Want = "verdict") -> ProbeResult | None:
        """What a probe showed; if fresh seeds refuted it, what it showed on those."""
        if key in self.refuted:
            want = "fresh seeds"
        scores = self.scores(key, want)
        if not scores:
            return None
        return ProbeResult(key.value, self.test_of(key, want).mean(scores), len(scores))


def shown(cost: float | None) -> str:
    """A cost as text, integers in full."""
    return f"{cost:.6g}" if isinstance(cost, float) else f"{cost}"
