"""Where the search of one cell stands, and what it says of each head count."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from search.bracket import Bracket
from search.protocol import CellPlan, Decision, HeadResult, Need, ProbeResult, Verdict
from search.seed_test import SeedTest

Scores = dict[int, float]
Evidence = dict[tuple[int, int], Scores]
Assumed = Mapping[tuple[int, int], Verdict]
Outcome = Verdict | Literal["stuck"]


@dataclass
class CellState:
    """A cell's search as far as the evidence carries it.

    Attributes:
        needs: probes that must be run before the search can go on; empty when finished.
        brackets: of each head count, from the probes of this search alone.
        decisions: every probe of the search so far, in order.
        stuck: head counts whose probes failed to run, left open.
    """

    plan: CellPlan
    test: SeedTest
    evidence: Mapping[tuple[int, int], Scores]
    assumed: Assumed
    failed: frozenset[tuple[int, int]]
    needs: tuple[Need, ...] = ()
    brackets: dict[int, Bracket] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    stuck: set[int] = field(default_factory=set)
    optimistic: dict[int, int] = field(default_factory=dict)
    conservative: dict[int, int] = field(default_factory=dict)
    used: dict[tuple[int, int], Verdict] = field(default_factory=dict)
    completed: set[tuple[int, int]] = field(default_factory=set)

    @property
    def is_done(self) -> bool:
        """Whether nothing more needs to be run."""
        return not self.needs

    @property
    def best_D_K(self) -> int | None:
        """Smallest D_K known to pass, over all heads."""
        passing = [h * b.high for h, b in self.brackets.items() if b.high is not None]
        return min(passing, default=None)

    @property
    def margin_D_K(self) -> int | None:
        """Largest D_K that is still of interest, by the kept margin; None while there is no bound.

        It counts only closed brackets, so that it never shrinks below where it must end.
        """
        closed = [h * b.high for h, b in self.brackets.items() if b.high and b.is_closed]
        if not closed or self.plan.keep_within is None:
            return None
        return math.floor(min(closed) * (1 + Fraction(repr(self.plan.keep_within))))

    def cap(self, h: int) -> int:
        """Largest d_k worth probing at h heads."""
        margin = self.margin_D_K
        limit = self.plan.limits[h]
        return limit if margin is None else min(limit, margin // h)

    def outcome(self, need: Need) -> Outcome | None:
        """What the evidence says of a probe: a verdict, that it failed to run, or nothing yet."""
        key = (need.h, need.d_k)
        scores = self.evidence.get(key, {})
        verdict = self.test.verdict(scores)
        if verdict is None and not need.complete:
            verdict = self.assumed.get(key)
        if verdict is not None and (not need.complete or self.test.is_complete(scores)):
            return verdict
        return "stuck" if key in self.failed else None

    def scores(self, h: int, d_k: int) -> Scores:
        """The scores of a probe that this search has asked for, by seed."""
        known = self.evidence.get((h, d_k), {})
        return self.test.needed(known, (h, d_k) in self.completed)

    def result(self, h: int) -> HeadResult:
        """What is known of a head count."""
        bracket, margin = self.brackets[h], self.margin_D_K
        contradiction = self._contradiction(h)
        if contradiction is not None:
            return HeadResult(
                h=h,
                status="inconsistent",
                d_k=None,
                D_K_low=h * contradiction[0].d_k,
                D_K_high=h * (contradiction[1].d_k + 1),
                contradiction=contradiction,
            )
        within = bracket.high is not None and (margin is None or h * bracket.high <= margin)
        settled = bracket.is_closed or (self.plan.grid is not None and h not in self.stuck)
        if settled and bracket.high is not None and within:
            return HeadResult(
                h=h,
                status="found",
                d_k=bracket.high,
                D_K_low=_times(h, self.optimistic.get(h)),
                D_K_high=_times(h, self.conservative.get(h)),
                passed=self._probe(h, bracket.high),
                failed=self._probe(h, bracket.low) if bracket.low else None,
            )
        above_limit = h * (bracket.limit + 1)
        if bracket.is_exhausted and (margin is None or above_limit <= margin):
            failed = self._probe(h, bracket.low)
            return HeadResult(h, "censored", None, above_limit, None, failed=failed)
        if margin is not None and self.is_done and h not in self.stuck:
            return HeadResult(h, "pruned", None, h * (margin // h + 1), None)
        return HeadResult(h, "open", None, h * (bracket.low + 1), _times(h, bracket.high))

    def _probe(self, h: int, d_k: int) -> ProbeResult | None:
        scores = self.scores(h, d_k)
        if not scores:
            return None
        return ProbeResult(d_k, self.test.mean(scores), len(scores))

    def _contradiction(self, h: int) -> tuple[ProbeResult, ProbeResult] | None:
        """The lowest pass and the highest fail above it, among the probes of this search."""
        passes = [d_k for (head, d_k), v in self.used.items() if head == h and v == "pass"]
        fails = [d_k for (head, d_k), v in self.used.items() if head == h and v == "fail"]
        if not passes or not fails or min(passes) > max(fails):
            return None
        lowest, highest = self._probe(h, min(passes)), self._probe(h, max(fails))
        return (lowest, highest) if lowest and highest else None


def _times(h: int, d_k: int | None) -> int | None:
    return None if d_k is None else h * d_k
