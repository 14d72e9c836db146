"""Where the search of one cell stands, and what it says of each head count."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from search.bracket import Bracket
from search.protocol import CellPlan, Decision, HeadResult, Need, Place, ProbeResult, Verdict
from search.seed_test import SeedTest

Scores = dict[int, float]
Evidence = dict[Place, Scores]
Assumed = Mapping[Place, Verdict]
Outcome = Verdict | Literal["stuck"]


@dataclass
class CellState:
    """A cell's search as far as the evidence carries it.

    Attributes:
        needs: probes that must be run before the search can go on; empty when finished.
        brackets: of each head count, from the probes of this search alone.
        decisions: every probe of the search so far, in order.
        used: verdicts of the probes of this search.
        every_seed, retested: places of which all seeds, and the extra ones too, were wanted.
        stuck: head counts whose probes failed to run, left open.
        contradicted: head counts whose contradiction more seeds did not settle.
        optimistic, conservative: the ends of App. A.2's interval on d_k.
    """

    plan: CellPlan
    test: SeedTest
    evidence: Mapping[Place, Scores]
    assumed: Assumed
    failed: frozenset[Place]
    needs: tuple[Need, ...] = ()
    brackets: dict[int, Bracket] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    used: dict[Place, Verdict] = field(default_factory=dict)
    every_seed: set[Place] = field(default_factory=set)
    retested: set[Place] = field(default_factory=set)
    stuck: set[int] = field(default_factory=set)
    contradicted: set[int] = field(default_factory=set)
    optimistic: dict[int, int] = field(default_factory=dict)
    conservative: dict[int, int] = field(default_factory=dict)
    _margin: int | None = None

    def set_bracket(self, h: int, bracket: Bracket) -> None:
        """Put a new bracket in its place."""
        self.brackets[h] = bracket
        if bracket.is_closed or self._margin is not None:
            self._margin = self._margin_now()

    def give_up(self, h: int) -> None:
        """Take a head for contradicted: it bounds no other head any more."""
        self.contradicted.add(h)
        self._margin = self._margin_now()

    @property
    def is_done(self) -> bool:
        """Whether nothing more needs to be run."""
        return not self.needs

    @property
    def best_D_K(self) -> int | None:
        """Smallest D_K known to pass, over all heads but those that are contradicted."""
        return min(self._passing(closed=False), default=None)

    @property
    def margin_D_K(self) -> int | None:
        """Largest D_K that is still of interest, by the kept margin; None while there is no bound.

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
            h * bracket.high
            for h, bracket in self.brackets.items()
            if bracket.high is not None
            and (bracket.is_closed or not closed)
            and h not in self.contradicted
        ]

    def cap(self, h: int) -> int:
        """Largest d_k worth probing at h heads; 0 when none is."""
        margin = self.margin_D_K
        bracket = self.brackets[h]
        return self.plan.limit(h) if margin is None else bracket.at_most(margin // h)

    @property
    def tried(self) -> list[int]:
        """The heads that this search has probed."""
        probed = {place.h for place in self.used} | self.stuck
        return [h for h in self.plan.axes if h in probed]

    def is_beaten(self, h: int, d_k: int) -> bool:
        """Whether a layer of which (h, d_k) is a part failed, where every head is searched."""
        return self.plan.every_head and self._beaten_by(h, d_k) is not None

    def _beaten_by(self, h: int, d_k: int) -> Place | None:
        wider = (
            place
            for place, verdict in self.used.items()
            if verdict == "fail" and not place.longer and place.h >= h and place.d_k >= d_k
        )
        return next(wider, None)

    def test_of(self, place: Place, want_extra: bool = False) -> SeedTest:
        """The test of a place: over more seeds where it was retested."""
        return self.test.with_extra if want_extra or place in self.retested else self.test

    def outcome(self, need: Need) -> Outcome | None:
        """What the evidence says of a probe: a verdict, that it failed to run, or nothing yet."""
        scores = self.evidence.get(need.place, {})
        if not self.wave(need):
            return self.test_of(need.place, need.want == "extra seeds").verdict(scores)
        if need.want == "verdict" and need.place in self.assumed:
            return self.assumed[need.place]
        return "stuck" if need.place in self.failed else None

    def wave(self, need: Need) -> tuple[int, ...]:
        """Seeds to train next for a need."""
        test = self.test_of(need.place, need.want == "extra seeds")
        return test.next_wave(self.evidence.get(need.place, {}), need.want != "verdict")

    def scores(self, place: Place) -> Scores:
        """The scores of a probe that this search has asked for, by seed."""
        known = self.evidence.get(place, {})
        complete = place in self.every_seed or place in self.retested
        return self.test_of(place).needed(known, complete)

    def result(self, h: int) -> HeadResult:
        """What is known of a head count."""
        bracket, margin, contradiction = self.brackets[h], self.margin_D_K, self.contradiction(h)
        low, high = bracket.low, bracket.high
        next_up = h * self._after(h, low)
        if contradiction is not None:
            passed, failed = (self._probe(Place(h, d_k)) for d_k in contradiction)
            if passed and failed:
                return HeadResult(
                    h=h,
                    status="inconsistent",
                    d_k=None,
                    D_K_low=h * passed.d_k,
                    D_K_high=h * self._after(h, failed.d_k),
                    because=f"passes at d_k = {passed.d_k}, fails above it at {failed.d_k}",
                    contradiction=(passed, failed),
                )
        if bracket.is_closed and high is not None and (margin is None or h * high <= margin):
            longer = self._probe(Place(h, low, longer=True)) if low else None
            verdict = self.used.get(Place(h, low, longer=True))
            return HeadResult(
                h=h,
                status="found",
                d_k=high,
                D_K_low=_times(h, self.optimistic.get(h)),
                D_K_high=_times(h, self.conservative.get(h)),
                because=f"passes at d_k = {high}, "
                + (f"fails at {low}" if low else "the smallest there is"),
                passed=self._probe(Place(h, high)),
                failed=self._probe(Place(h, low)) if low else None,
                longer=longer,
                limited_by=None if not verdict else "budget" if verdict == "pass" else "capacity",
            )
        limit = self.plan.limit(h)
        beyond = h * (limit + 1)
        refuted = bracket.is_exhausted or (self.is_done and self.is_beaten(h, limit))
        if refuted and (margin is None or beyond <= margin):
            failed = self._probe(Place(h, limit))
            because = f"no pass up to the largest width allowed, d_k = {limit}"
            return HeadResult(h, "censored", None, beyond, None, because, failed=failed)
        if margin is not None and self.is_done and h not in self.stuck:
            because = self._why_pruned(h, margin)
            return HeadResult(h, "pruned", None, h * (margin // h + 1), None, because)
        because = "a run failed" if h in self.stuck else "its search goes on"
        return HeadResult(h, "open", None, next_up, _times(h, high), because)

    def contradiction(self, h: int) -> tuple[int, int] | None:
        """The lowest pass and the highest fail of this search, if the pass lies below."""
        passes, fails = self.verdicts(h)
        if not passes or not fails or min(passes) > max(fails):
            return None
        return min(passes), max(fails)

    def verdicts(self, h: int) -> tuple[list[int], list[int]]:
        """The values that pass and those that fail, among the probes of this search."""
        own = [(p.d_k, v) for p, v in self.used.items() if p.h == h and not p.longer]
        return [d for d, v in own if v == "pass"], [d for d, v in own if v == "fail"]

    def _why_pruned(self, h: int, margin: int) -> str:
        within = f"D_K = {margin}, {self.plan.keep_within:.0%} above the best"
        cap = self.cap(h)
        if not cap:
            return f"its smallest width lies beyond {within}"
        low = self.brackets[h].low
        if cap == low:
            return f"fails at d_k = {low}, the widest within {within}"
        if cap < low:
            return f"fails at d_k = {low}; d_k ≤ {cap} lies within {within}"
        wider = self._beaten_by(h, cap)
        if wider is not None:
            return f"{wider.h} heads of d_k = {wider.d_k} fail; d_k ≤ {cap} lies within {within}"
        return f"its threshold lies beyond {within}"

    def _after(self, h: int, d_k: int) -> int:
        """The value of the axis after this one; one more than the last after that."""
        axis = self.plan.axes[h]
        return next((value for value in axis if value > d_k), axis[-1] + 1)

    def _probe(self, place: Place) -> ProbeResult | None:
        scores = self.scores(place)
        if not scores:
            return None
        return ProbeResult(place.d_k, self.test_of(place).mean(scores), len(scores))


def _times(h: int, d_k: int | None) -> int | None:
    return None if d_k is None else h * d_k
