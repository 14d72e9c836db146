"""The search of one cell: brackets over d_k, branch and bound over heads.

``replay`` runs the whole search from the start against the evidence at hand and stops at the
first probe whose outcome is missing. It is a pure function, so the table of a study depends
on the outcomes alone: not on who ran first, on speculation, or on what was interrupted.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Mapping
from itertools import groupby

from search.bracket import Bracket
from search.cell_state import Assumed, CellState, Scores
from search.protocol import CellPlan, Decision, Need, Place
from search.seed_test import SeedTest

Steps = Generator[tuple[Need, ...], None, None]


def replay(
    plan: CellPlan,
    test: SeedTest,
    evidence: Mapping[Place, Scores],
    failed: Iterable[Place] = (),
    assumed: Assumed | None = None,
) -> CellState:
    """Run a cell's search as far as the evidence goes.

    Args:
        evidence: scores by seed of each place that has any.
        failed: probes that could not be run.
        assumed: verdicts to suppose where the evidence has none: to look ahead.
    """
    state = CellState(plan, test, evidence, assumed or {}, frozenset(failed))
    state.brackets = {h: Bracket(axis) for h, axis in plan.axes.items()}
    for needs in _grid(state) if plan.every_value else _search(state):
        missing = tuple(need for need in needs if state.outcome(need) is None)
        if missing:
            state.needs = missing
            break
        for need in needs:
            _record(state, need)
    return state


def _record(state: CellState, need: Need) -> None:
    """Note a probe whose outcome is known."""
    outcome, place = state.outcome(need), need.place
    if need.want == "every seed":
        state.every_seed.add(place)
    if need.want == "extra seeds":
        state.retested.add(place)
    scores = state.scores(place)
    test = state.test_of(place)
    if outcome == "pass" or outcome == "fail":
        state.used[place] = outcome
    else:
        state.stuck.add(place.h)
    state.decisions.append(
        Decision(
            h=place.h,
            d_k=place.d_k,
            longer=place.longer,
            reason=need.reason,
            verdict=outcome if outcome == "pass" or outcome == "fail" else "open",
            mean_score=test.mean(scores) if scores else None,
            n_seeds=len(scores),
            evidence="a run of this probe failed" if outcome == "stuck" else test.explain(scores),
        )
    )


def _search(state: CellState) -> Steps:
    """Find a first pass, close its bracket, bound every other head by it, then look closer."""
    plan = state.plan
    order = sorted(plan.axes, key=lambda h: (abs(math.log2(h / plan.guess_h)), h))
    first = yield from _first_pass(state, _starters(plan, order))
    if first is not None:
        yield from _close(state, first)
    while True:
        if state.margin_D_K is None:  # a retest may have opened the bracket that bounded the rest
            for h in order:
                if state.brackets[h].above is not None and h not in state.contradicted:
                    yield from _close(state, h)
        yield from _bound_by_group(state) if plan.every_head else _bound(state, order)
        if plan.intervals and state.test.seeds > 1:
            for h in order:
                is_new = state.brackets[h].is_closed and h not in state.optimistic
                if is_new and state.result(h).status == "found":
                    yield from _intervals(state, h)
        before = len(state.retested), len(state.contradicted)
        yield from _retest(state, order)
        if (len(state.retested), len(state.contradicted)) == before:
            break
    if plan.retest_longer:
        for h in order:
            yield from _train_longer(state, h)


def _starters(plan: CellPlan, order: list[int]) -> list[int]:
    """The heads among which a first pass is looked for: of very many, each twice the last."""
    if not plan.every_head:
        return order
    heads = Bracket(sorted(order))
    chosen = {heads.nearest(plan.guess_h * 2.0**power) for power in range(-31, 32)}
    return [h for h in order if h in chosen]


def _probe(state: CellState, h: int, d_k: int, reason: str) -> Steps:
    """Probe inside a bracket and narrow it, unless the probe cannot be run."""
    need = Need(Place(h, d_k), reason)
    yield (need,)
    outcome = state.outcome(need)
    if outcome == "pass" or outcome == "fail":
        state.set_bracket(h, state.brackets[h].tell(d_k, outcome))


def _close(state: CellState, h: int) -> Steps:
    """Bisect a bracket that holds a pass down to its threshold."""
    while not state.brackets[h].is_closed and h not in state.stuck:
        bracket = state.brackets[h]
        reason = f"bisect: fails at {bracket.low}, passes at {bracket.high}"
        if bracket.low == 0:
            reason = f"walk down: passes at {bracket.high}, no fail known below"
        yield from _probe(state, h, bracket.middle(state.plan.spread), reason)


def _first_pass(
    state: CellState, order: list[int]
) -> Generator[tuple[Need, ...], None, int | None]:
    """Try every head at a level of D_K, nearest to the expected one first; raise the level."""
    plan, factor = state.plan, state.plan.spread
    level = plan.guess_D_K
    while True:
        growing = False
        for h in order:
            bracket = state.brackets[h]
            if h in state.stuck or bracket.is_exhausted:
                continue
            growing = True
            d_k = bracket.nearest(level / h)
            if d_k > bracket.low and level / h > bracket.axis[0] / 2:
                yield from _probe(state, h, d_k, f"look for a first pass at D_K near {level:.0f}")
                if state.brackets[h].high is not None:
                    return h
        if not growing:
            return None
        level, factor = level * factor, 2.0


def _bound(state: CellState, order: list[int]) -> Steps:
    """Search each head as far as the best of the others makes it interesting."""
    for h in order:
        yield from _bound_head(state, h)


def _bound_head(state: CellState, h: int) -> Steps:
    bracket, cap = state.brackets[h], state.cap(h)
    if bracket.is_closed or h in state.stuck:
        return
    if cap > bracket.low and (bracket.high is None or bracket.high > cap):
        yield from _reach(state, h, cap)
    if (high := state.brackets[h].high) is not None and high <= cap:
        yield from _close(state, h)


def _bound_by_group(state: CellState) -> Steps:
    """Bound every head count, trying few: heads that may be equally wide go by their largest.

    If h heads of a width fail, so do fewer heads of it, and the rest of the group is beaten.
    After a pass the next smaller head is tried; a better bound makes new groups.
    """
    plan = state.plan
    while True:
        margin = state.margin_D_K
        by_cap = groupby(sorted(plan.axes, key=lambda h: (-state.cap(h), -h)), key=state.cap)
        groups = [(cap, list(heads)) for cap, heads in by_cap if cap]
        for cap, heads in sorted(
            groups, key=lambda group: (abs(math.log2(group[1][0] / plan.guess_h)), group[0])
        ):
            for h in heads:
                if state.is_beaten(h, cap):
                    break
                yield from _bound_head(state, h)
                if state.margin_D_K != margin:
                    break
            if state.margin_D_K != margin:
                break
        if state.margin_D_K == margin:
            return


def _reach(state: CellState, h: int, cap: int) -> Steps:
    """Look for a pass up to the cap; without a bound, grow towards it instead of leaping."""
    plan = state.plan
    if state.margin_D_K is not None:
        reason = f"within {plan.keep_within:.0%} of the best, D_K = {state.best_D_K}?"
        yield from _probe(state, h, cap, reason)
        return
    while (
        (bracket := state.brackets[h]).high is None and bracket.low < cap and h not in state.stuck
    ):
        start = bracket.low * 2 or plan.guess_D_K / h
        above = max(bracket.nearest(start), plan.axes[h][bracket.below])
        yield from _probe(state, h, min(cap, above), "grow until it passes")


def _intervals(state: CellState, h: int) -> Steps:
    """App. A.2: the smallest widths whose 95 % interval reaches, and clears, the target."""
    axis, bracket = state.plan.axes[h], state.brackets[h]
    assert bracket.above is not None
    at = bracket.above
    while at > 0:
        place = Place(h, axis[at - 1])
        reason = f"interval: could d_k = {place.d_k} pass, within its seeds' spread?"
        yield (Need(place, reason, "every seed"),)
        if h in state.stuck or not state.test_of(place).may_reach(state.scores(place)):
            break
        at -= 1
    if h not in state.stuck:
        state.optimistic[h] = axis[at]
    for d_k in axis[bracket.above :]:
        place = Place(h, d_k)
        reason = f"interval: does d_k = {d_k} pass beyond its seeds' spread?"
        yield (Need(place, reason, "every seed"),)
        if h in state.stuck:
            break
        if state.test_of(place).surely_reaches(state.scores(place)):
            state.conservative[h] = d_k
            break


def _retest(state: CellState, order: list[int]) -> Steps:
    """Where a pass lies below a fail, train the extra seeds of both, and search on from there."""
    for h in (h for h in order if state.brackets[h].above is not None):
        while h not in state.stuck and (contradiction := state.contradiction(h)):
            low, high = contradiction
            places = [p for p in (Place(h, low), Place(h, high)) if p not in state.retested]
            if not places or not state.test.extra:
                state.give_up(h)
                break
            reason = f"retest: passes at {low}, fails above it at {high}"
            yield tuple(Need(place, reason, "extra seeds") for place in places)
            _rebuild(state, h)
            state.optimistic.pop(h, None)
            state.conservative.pop(h, None)


def _rebuild(state: CellState, h: int) -> None:
    """The bracket that follows from the verdicts: up to the smallest pass."""
    axis = state.plan.axes[h]
    passes, fails = state.verdicts(h)
    high = min(passes, default=None)
    low = max((d_k for d_k in fails if high is None or d_k < high), default=None)
    below = 0 if low is None else axis.index(low) + 1
    state.set_bracket(h, Bracket(axis, below, None if high is None else axis.index(high)))


def _train_longer(state: CellState, h: int) -> Steps:
    """Was it capacity or training time? Train the failing side with a raised step limit."""
    if state.result(h).status == "found" and (low := state.brackets[h].low):
        place = Place(h, low, longer=True)
        yield (Need(place, f"does d_k = {low} pass if it is trained longer?"),)


def _grid(state: CellState) -> Steps:
    """Probe every value with every seed; the brackets follow from the verdicts."""
    yield tuple(
        Need(Place(h, d_k), "listed in the grid", "every seed")
        for h, axis in state.plan.axes.items()
        for d_k in axis
    )
    for h in state.plan.axes:
        _rebuild(state, h)
    yield from _retest(state, list(state.plan.axes))
    for h, axis in state.plan.axes.items():
        if state.plan.intervals:
            known = {d_k: state.scores(Place(h, d_k)) for d_k in axis}
            tests = {d_k: state.test_of(Place(h, d_k)) for d_k in axis}
            may = [d_k for d_k in axis if tests[d_k].may_reach(known[d_k])]
            must = [d_k for d_k in axis if tests[d_k].surely_reaches(known[d_k])]
            if may:
                state.optimistic[h] = min(may)
            if must:
                state.conservative[h] = min(must)
    if state.plan.retest_longer:
        for h in state.plan.axes:
            yield from _train_longer(state, h)
