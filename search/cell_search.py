"""The search of one cell: brackets over d_k, branch and bound over heads.

``replay`` runs the whole search from the start against the evidence at hand and stops at the
first probe whose outcome is missing. It is a pure function, so the table of a study depends
on the outcomes alone: not on who ran first, on speculation, or on what was interrupted.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Mapping

from search.bracket import Bracket
from search.cell_state import Assumed, CellState, Scores
from search.protocol import CellPlan, Decision, Need
from search.seed_test import SeedTest

Steps = Generator[tuple[Need, ...], None, None]


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
