"""The search of one cell: brackets over d_k, branch and bound over heads.

``replay`` runs the whole search from the start against the evidence at hand and stops at the
first probe whose outcome is missing. It is a pure function, so the table of a study depends
on the outcomes alone: not on who ran first, on speculation, or on what was interrupted.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Mapping
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
Steps = Generator[tuple[Need, ...], None, None]


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


def replay(
    plan: CellPlan,
    test: SeedTest,
    evidence: Mapping[tuple[int, int], Scores],
    failed: Iterable[tuple[int, int]] = (),
    assumed: Assumed | None = None,
) -> CellState:
    """Run a cell's search as far as the evidence goes.

    Args:
        evidence: scores by seed of each (h, d_k) that has any.
        failed: probes that could not be run.
        assumed: verdicts to suppose where the evidence has none: to look ahead.
    """
    state = CellState(plan, test, evidence, assumed or {}, frozenset(failed))
    state.brackets = {h: Bracket(limit) for h, limit in plan.limits.items()}
    steps = _grid(state) if plan.grid is not None else _search(state)
    for needs in steps:
        missing = tuple(need for need in needs if state.outcome(need) is None)
        if missing:
            state.needs = missing
            break
        for need in needs:
            _record(state, need)
    return state


def _record(state: CellState, need: Need) -> None:
    """Note a probe whose outcome is known."""
    outcome = state.outcome(need)
    if need.complete:
        state.completed.add((need.h, need.d_k))
    scores = state.scores(need.h, need.d_k)
    is_stuck = outcome is None or outcome == "stuck"
    if outcome == "pass" or outcome == "fail":
        state.used[need.h, need.d_k] = outcome
    else:
        state.stuck.add(need.h)
    state.decisions.append(
        Decision(
            h=need.h,
            d_k=need.d_k,
            reason=need.reason,
            verdict="open" if outcome is None or outcome == "stuck" else outcome,
            mean_score=state.test.mean(scores) if scores else None,
            n_seeds=len(scores),
            evidence="a run of this probe failed" if is_stuck else state.test.explain(scores),
        )
    )


def _probe(state: CellState, h: int, d_k: int, reason: str) -> Steps:
    """Probe inside a bracket and narrow it, unless the probe cannot be run."""
    need = Need(h, d_k, complete=False, reason=reason)
    yield (need,)
    outcome = state.outcome(need)
    if outcome == "pass" or outcome == "fail":
        state.brackets[h] = state.brackets[h].tell(d_k, outcome)


def _close(state: CellState, h: int) -> Steps:
    """Bisect a bracket that holds a pass down to its threshold."""
    while not state.brackets[h].is_closed and h not in state.stuck:
        bracket = state.brackets[h]
        reason = f"bisect: fails at {bracket.low}, passes at {bracket.high}"
        if bracket.low == 0:
            reason = f"walk down: passes at {bracket.high}, no fail known below"
        yield from _probe(state, h, bracket.middle(), reason)


def _search(state: CellState) -> Steps:
    """Find a first pass, close its bracket, then bound every other head by it."""
    plan = state.plan
    order = sorted(plan.limits, key=lambda h: (abs(math.log2(h / plan.guess_h)), h))
    first = yield from _first_pass(state, order)
    if first is not None:
        yield from _close(state, first)
    for h in order:
        bracket, cap = state.brackets[h], state.cap(h)
        if bracket.is_closed or h in state.stuck:
            continue
        if bracket.high is None and cap > bracket.low:
            yield from _reach(state, h, cap)
        if (high := state.brackets[h].high) is not None and high <= cap:
            yield from _close(state, h)
    if plan.intervals and state.test.seeds > 1:
        for h in order:
            if state.result(h).status == "found":
                yield from _intervals(state, h)


def _first_pass(
    state: CellState, order: list[int]
) -> Generator[tuple[Need, ...], None, int | None]:
    """Try every head at a level of D_K, nearest to the expected one first; double the level."""
    level = max(1.0, state.plan.guess_D_K)
    while True:
        growing = False
        for h in order:
            bracket = state.brackets[h]
            if h in state.stuck or bracket.is_exhausted:
                continue
            growing = True
            d_k = min(bracket.limit, round(level / h))
            if d_k > bracket.low:
                yield from _probe(state, h, d_k, f"look for a first pass at D_K near {level:.0f}")
                if state.brackets[h].high is not None:
                    return h
        if not growing:
            return None
        level *= 2


def _reach(state: CellState, h: int, cap: int) -> Steps:
    """Look for a pass up to the cap; without a bound, grow towards it instead of leaping."""
    if state.margin_D_K is not None:
        reason = f"within {state.plan.keep_within:.0%} of the best, D_K = {state.best_D_K}?"
        yield from _probe(state, h, cap, reason)
        return
    bracket = state.brackets[h]
    while bracket.high is None and bracket.low < cap and h not in state.stuck:
        start = bracket.low * 2 or max(1, round(state.plan.guess_D_K / h))
        yield from _probe(state, h, min(cap, start), "grow until it passes")
        bracket = state.brackets[h]


def _intervals(state: CellState, h: int) -> Steps:
    """App. A.2: the smallest widths whose 95 % interval reaches, and clears, the target."""
    threshold = state.brackets[h].high
    assert threshold is not None
    d_k = threshold
    while d_k > 1:
        need = Need(
            h, d_k - 1, True, f"interval: could d_k = {d_k - 1} pass, within its seeds' spread?"
        )
        yield (need,)
        bounds = state.test.interval(state.scores(h, d_k - 1))
        if h in state.stuck or bounds is None or bounds[1] < state.test.target:
            break
        d_k -= 1
    if h not in state.stuck:
        state.optimistic[h] = d_k
    d_k = threshold
    while d_k <= state.plan.limits[h]:
        need = Need(h, d_k, True, f"interval: does d_k = {d_k} pass beyond its seeds' spread?")
        yield (need,)
        bounds = state.test.interval(state.scores(h, d_k))
        if h in state.stuck:
            break
        if bounds is not None and bounds[0] >= state.test.target:
            state.conservative[h] = d_k
            break
        d_k += 1


def _grid(state: CellState) -> Steps:
    """Probe every listed width with every seed; the brackets follow from the verdicts."""
    grid = state.plan.grid or {}
    yield tuple(
        Need(h, d_k, complete=True, reason="listed in the grid")
        for h, widths in grid.items()
        for d_k in widths
    )
    for h, widths in grid.items():
        passing = [d_k for d_k in widths if state.used.get((h, d_k)) == "pass"]
        high = min(passing, default=None)
        failing = [
            d_k
            for d_k in widths
            if state.used.get((h, d_k)) == "fail" and (high is None or d_k < high)
        ]
        state.brackets[h] = Bracket(state.plan.limits[h], max(failing, default=0), high)
        if state.plan.intervals:
            _intervals_of_grid(state, h, widths)


def _intervals_of_grid(state: CellState, h: int, widths: Iterable[int]) -> None:
    """App. A.2 on the listed widths: the smallest that may pass, and that passes for sure."""
    target = state.test.target
    bounds = {d_k: state.test.interval(state.scores(h, d_k)) for d_k in widths}
    may = [d_k for d_k, ends in bounds.items() if ends is not None and ends[1] >= target]
    must = [d_k for d_k, ends in bounds.items() if ends is not None and ends[0] >= target]
    if may:
        state.optimistic[h] = min(may)
    if must:
        state.conservative[h] = min(must)


def _times(h: int, d_k: int | None) -> int | None:
    return None if d_k is None else h * d_k
