"""The search of one cell: brackets over values, branch and bound over arms.

``replay`` runs the whole search from the start on the evidence so far and stops at the first
probe whose outcome is missing. It is a pure function, so the table of a study depends on the
outcomes alone: not on what ran first, on speculation, or on what was interrupted.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterable, Mapping, Set
from dataclasses import replace

from rgr_dist.search.bracket import Bracket
from rgr_dist.search.cell_state import Assumed, CellState, Outcome, shown
from rgr_dist.search.probe_verdict import Scores, SeedTest
from rgr_dist.search.protocol import CellPlan, Decision, Need, ProbeKey

Needs = tuple[Need, ...]
Steps = Generator[Needs, None, None]
"""A part of the search: yields the probes it needs, and goes on only once ``replay`` has recorded
their outcomes in the state. Where one is missing, it never does."""

WALK = 4
"""Values next to a threshold that are tried one by one in looking for an interval's end."""


def replay(
    plan: CellPlan,
    test: SeedTest,
    evidence: Mapping[ProbeKey, Scores],
    failed: Mapping[ProbeKey, Set[int]] | None = None,
    assumed: Assumed | None = None,
    guides: Mapping[str, CellState] | None = None,
) -> CellState:
    """Run a cell's search as far as the evidence goes.

    Args:
        evidence: scores by seed of each probe that has any.
        failed: seeds of each probe that could not be run.
        assumed: verdicts to assume where the evidence has none, so as to look ahead.
        guides: the finished searches that this one follows, by the names of their plans. While one
            is missing, this search needs nothing and is not done.
    """
    state = CellState(plan, test, evidence, assumed or {}, failed or {}, guides or {})
    state.brackets = plan.untried.copy()
    if state.is_waiting:
        return state
    for needs in _grid(state) if plan.every_value else _search(state):
        outcomes = [(need, state.outcome(need)) for need in needs]
        state.needs = tuple(need for need, outcome in outcomes if outcome is None)
        if state.needs:
            break
        for need, outcome in outcomes:
            if outcome is not None:
                _record(state, need, outcome)
    return state


def _record(state: CellState, need: Need, outcome: Outcome) -> None:
    """Note a probe whose outcome is known."""
    key = need.key
    if need.want == "every seed" and outcome != "failed":
        state.every_seed.add(key)
    if need.want == "extra seeds" and outcome != "failed":
        state.retested.add(key)
    if outcome != "failed" and need.want not in ("look", "transition"):
        state.looked.discard(key)
    scores = state.scores(key, need.want)
    test = state.test_of(key, need.want)
    if outcome == "failed" and state.plan.unrunnable == "open":
        failed = state.failed_of(key, state.wave(need))
        state.failed_arms.setdefault(key.arm, set()).update((key.value, seed) for seed in failed)
        if need.want == "fresh seeds":
            state.unconfirmed.add(key)
    elif outcome == "failed" and need.want != "fresh seeds":
        state.unrunnable.add(key)
    elif need.want == "fresh seeds":
        (state.confirmed if outcome == "pass" else state.refuted).add(key)
        state.fresh_tests[key] = test
    elif (outcome == "pass" or outcome == "fail") and need.want != "transition":
        state.used[key] = outcome
    if key in state.refuted:
        state.used[key] = "fail"
    if need.want == "look" and state.test_of(key).verdict(scores) is None:
        state.looked.add(key)
    evidence = "a run of this probe failed" if outcome == "failed" else test.explain(scores)
    if need.want == "every seed" and not state.plan.every_value:
        evidence += test.interval_in_words(scores)
    state.decisions.append(
        Decision(
            arm=key.arm,
            value=key.value,
            want=need.want,
            first_seed=test.first,
            seeds=test.seeds,
            reason=need.reason,
            verdict=outcome if outcome == "pass" or outcome == "fail" else "open",
            mean_score=test.mean(scores) if scores else None,
            n_seeds=len(scores),
            evidence=evidence,
        )
    )


def _search(state: CellState) -> Steps:
    """Find a first pass, close its bracket, bound every other arm by it, then look closer."""
    plan, best_guess = state.plan, state.start[1]
    order = sorted(plan.axes, key=lambda arm: (abs(math.log2(arm / best_guess)), arm))
    yield from _follow_fails(state, order)
    first = yield from _first_pass(state, _starters(state, order))
    if first is not None:
        yield from _close(state, first)
    while True:
        if state.bound is None:  # a retest may have opened the bracket that bounded the rest
            for arm in order:
                if state.brackets[arm].above is not None and arm not in state.contradicted:
                    yield from _close(state, arm)
        if plan.every_arm:
            yield from _bound_by_group(state)
        else:
            for arm in order:
                yield from _bound_arm(state, arm)
        if (yield from _retest(state, order)):
            continue
        if plan.confirm_seeds and (yield from _confirm(state, order)):
            continue
        if plan.intervals and state.test.seeds > 1:
            for arm in order:
                yield from _intervals(state, arm)
        if not (yield from _retest(state, order)):
            break
    if plan.transition.seeds and (near := transition_needs(state, order)):
        yield near


def _follow_fails(state: CellState, order: list[int]) -> Steps:
    """Probe the limit of arms that fail up to it with more steps; those runs brought evidence."""
    for arm in order:
        if state.longer is not None and state.longer.brackets[arm].is_exhausted:
            why = f"fails at {state.longer.plan.budget.name}"
            yield from _probe(state, arm, state.plan.limit(arm), why)


def _starters(state: CellState, order: list[int]) -> list[int]:
    """The arms to try for a first pass: all, or under ``every_arm`` each about twice the last."""
    if not state.plan.every_arm:
        return order
    arms, guess = Bracket(sorted(order)), state.start[1]
    chosen = {arms.nearest(guess * 2.0**power) for power in range(-31, 32)}
    return [arm for arm in order if arm in chosen]


def _probe(state: CellState, arm: int, value: int, reason: str) -> Steps:
    """Probe inside a bracket and narrow it, unless the probe cannot be run."""
    need = Need(ProbeKey(arm, value), reason, "look")
    yield (need,)
    outcome = state.outcome(need)
    if outcome == "pass" or outcome == "fail":
        state.set_bracket(arm, state.brackets[arm].tell(value, outcome))
    elif need.key in state.unrunnable:
        if state.brackets[arm].high is None:
            yield from _look_below(state, arm, value)
        else:
            state.set_bracket(arm, state.brackets[arm].tell(value, "fail"))


def _look_below(state: CellState, arm: int, unrunnable: int) -> Steps:
    """Look for a pass below a value that cannot be run; without one, every value up to it fails."""
    axis = state.plan.axes[arm]
    bracket = replace(state.brackets[arm], above=axis.index(unrunnable))
    while not bracket.is_closed:
        value = _between(state, bracket)
        need = Need(ProbeKey(arm, value), f"look below {bracket.high}, which could not be run")
        yield (need,)
        outcome = state.outcome(need)
        bracket = bracket.tell(value, "fail" if outcome == "fail" else "pass")
        if outcome == "pass":
            state.set_bracket(arm, bracket)
            return
    state.set_bracket(arm, Bracket(axis, below=axis.index(unrunnable) + 1))


def _close(state: CellState, arm: int) -> Steps:
    """Bisect a bracket that holds a pass down to its threshold, which must pass on all seeds."""
    while (bracket := state.brackets[arm]).high is not None and not state.is_closed(arm):
        if arm in state.failed_arms:
            return
        if bracket.is_closed:
            yield from _certify(state, ProbeKey(arm, bracket.high))
            continue
        reason = f"bisect: fails at {bracket.low}, passes at {bracket.high}"
        if bracket.low == 0:
            reason = f"walk down: passes at {bracket.high}, no fail known below"
        value = _between(state, bracket)
        if hint := _hint(state, arm):
            value, reason = hint
        yield from _probe(state, arm, value, reason)


def _certify(state: CellState, key: ProbeKey) -> Steps:
    """Run every seed of a threshold that passes for now; if it then fails, rebuild the bracket."""
    yield (Need(key, f"certify: does it pass on all {state.test_of(key).seeds} seeds?"),)
    if key in state.unrunnable:
        del state.used[key]
    if state.used.get(key) == "pass":
        state.set_bracket(key.arm, state.brackets[key.arm])  # from now on it bounds the others
    else:
        _rebuild(state, key.arm)


def _between(state: CellState, bracket: Bracket) -> int:
    """Where to probe inside a bracket."""
    spread = state.plan.spread
    return bracket.halve() if math.isinf(spread) else bracket.middle(spread)


def _hint(state: CellState, arm: int) -> tuple[int, str] | None:
    """A bound on the threshold at another budget that lies inside the bracket, and why; or None."""
    low, high = state.brackets[arm].low, state.brackets[arm].high or state.plan.limit(arm) + 1
    for guide in state.guides.values():
        known, word = guide.brackets[arm], guide.plan.budget.name
        if known.high is not None and low < known.high < high:
            return known.high, f"passes at {word}"
        if guide is state.longer and low < known.low < high:
            return known.low, f"fails at {word}"
    return None


def _first_pass(state: CellState, order: list[int]) -> Generator[Needs, None, int | None]:
    """Find an arm that passes: try the expected one at a cost, two more at each higher cost."""
    plan = state.plan
    if state.shorter is not None or math.isinf(plan.spread):
        return (yield from _first_pass_in_turn(state, order))
    level, _, factor = state.start
    tried = 1
    while growing := [arm for arm in order if _may_pass(state, arm)]:
        for arm in growing[:tried]:
            bracket, near = state.brackets[arm], plan.value_at(arm, level)
            value = bracket.nearest(near)
            if bracket.high is None and value > bracket.low and near > bracket.axis[0] / 2:
                reason = f"look for a first pass at {plan.words.cost} near {level:.0f}"
                yield from _probe(state, arm, value, reason)
            if state.brackets[arm].high is not None:
                return arm
        tried += 2
        level, factor = level * factor, max(plan.spread, factor) if state.longer else 2.0
    return None


def _may_pass(state: CellState, arm: int) -> bool:
    """Whether an arm may pass at a value that has not been tried."""
    return arm not in state.failed_arms and not state.brackets[arm].is_exhausted


def _first_pass_in_turn(state: CellState, order: list[int]) -> Generator[Needs, None, int | None]:
    """Try one arm up to its limit before the next: at the largest budget every fail is expensive.

    Where nothing is known, the arm's axis is bisected as if the value after its last one passed.
    """
    level, _, factor = state.start
    for arm in order:
        cost = level
        if state.brackets[arm].high is not None:
            return arm
        while _may_pass(state, arm):
            bracket, near = state.brackets[arm], state.plan.value_at(arm, cost)
            value = max(bracket.nearest(near), bracket.axis[bracket.below])
            at = shown(state.plan.cost_of(arm, value))
            reason = f"look for a first pass at {state.plan.words.cost} near {at}"
            if math.isinf(state.plan.spread):
                value = _between(state, bracket)
                known = f"fails at {bracket.low}" if bracket.low else "nothing is known"
                reason = f"bisect: {known}, no pass yet"
            yield from _probe(state, arm, value, reason)
            if state.brackets[arm].high is not None:
                return arm
            cost *= factor
    return None


def _bound_arm(state: CellState, arm: int) -> Steps:
    """Search an arm up to its cap, the largest value that is still near the best.

    What passes for now may fail on all its seeds; the search then goes on above it.
    """
    bracket, cap = state.brackets[arm], state.cap(arm)
    if state.is_closed(arm) or arm in state.failed_arms:
        return
    if state.longer is not None and cap > bracket.low and bracket.high is None:
        # What fails with more steps should fail here, and those runs have brought the evidence.
        failing = state.longer.brackets[arm].low
        if failing > bracket.low:
            why = f"fails at {state.longer.plan.budget.name}"
            yield from _probe(state, arm, failing, why)
    while not state.is_closed(arm) and arm not in state.failed_arms:
        bracket, cap = state.brackets[arm], state.cap(arm)
        if cap > bracket.low and (bracket.high is None or bracket.high > cap):
            yield from _reach(state, arm, cap)
        if (high := state.brackets[arm].high) is None or high > cap:
            return
        yield from _close(state, arm)


def _bound_by_group(state: CellState) -> Steps:
    """Bound every arm by trying few: of each group of arms that share a cap, the largest arm.

    If it fails, so does every smaller arm at that value, which rules out the rest of the group.
    After a pass, try the next smaller arm; a better bound makes new groups.
    """
    guess, known = state.start[1], state.plan.groups
    while True:
        bound = state.bound
        if (bound, guess) not in known:
            known[bound, guess] = _groups(state, guess)
        for arm, cap in known[bound, guess]:
            if state.ruled_out_by(arm, cap):  # and so is the rest of its group
                continue
            yield from _bound_arm(state, arm)
            if state.bound != bound:
                break
        else:
            return


def _groups(state: CellState, guess: float) -> list[tuple[int, int]]:
    """Arms with their caps, those of one cap together and from the largest down.

    Groups come in the order of how far their largest arm is from the guess.
    """
    caps = {arm: cap for arm in state.plan.axes if (cap := state.cap(arm))}
    away = {cap: abs(math.log2(arm / guess)) for arm, cap in sorted(caps.items())}
    return sorted(caps.items(), key=lambda one: (away[one[1]], one[1], -one[0]))


def _reach(state: CellState, arm: int, cap: int) -> Steps:
    """Look for a pass up to the cap; without a bound, grow towards it instead of leaping."""
    plan = state.plan
    if state.margin(arm) is not None:
        best = f"the best, {plan.words.cost} = {shown(state.best_cost)}"
        yield from _probe(state, arm, cap, f"near {best}?")
        return
    while (bracket := state.brackets[arm]).high is None and bracket.low < cap:
        if arm in state.failed_arms:
            return
        if hint := _hint(state, arm):
            yield from _probe(state, arm, *hint)
            continue
        start = bracket.low * 2 or plan.value_at(arm, max(plan.guess_cost, state.best_cost or 0))
        above = max(bracket.nearest(start), plan.axes[arm][bracket.below])
        yield from _probe(state, arm, min(cap, above), "grow until it passes")


def _intervals(state: CellState, arm: int) -> Steps:
    """App. A.2: the smallest values whose 95 % interval reaches, and clears, the target.

    For a pruned arm, only the first is sought: it shows whether the fail that prunes it is certain.
    """
    axis, bracket, word = state.plan.axes[arm], state.brackets[arm], state.plan.words.value
    if arm in state.optimistic or arm in state.failed_arms or arm in state.contradicted:
        return
    found = bracket.is_closed and state.result(arm).status == "found"
    cap = state.cap(arm)
    pruned = state.margin(arm) is not None and cap and arm in state.tried
    if state.plan.intervals == "best":
        best = state.best
        found &= arm in state.plan.keep_arms or (best is not None and arm == best.arm)
        pruned = False
    if not found and not pruned:
        return
    # At a smaller budget the fail came with the longer runs, and may lie beyond the cap.
    low = bracket.low if found or state.longer is not None else cap
    start = bisect_right(axis, low)
    reason = f"interval: the spread of seeds at {word} = {{}}"
    below = [ProbeKey(arm, value) for value in reversed(axis[:start])]
    reaching = yield from _edge(
        state, below, reason, lambda key: not state.test_of(key).may_reach(state.scores(key))
    )
    if arm in state.failed_arms:
        return
    if found or reaching:
        state.optimistic[arm] = axis[start - reaching]
    if not found:
        return
    above = [ProbeKey(arm, value) for value in axis[start:]]
    unsure = yield from _edge(
        state, above, reason, lambda key: state.test_of(key).surely_reaches(state.scores(key))
    )
    if arm not in state.failed_arms and unsure < len(above):
        state.conservative[arm] = above[unsure].value


def _edge(
    state: CellState, keys: list[ProbeKey], reason: str, is_beyond: Callable[[ProbeKey], bool]
) -> Generator[Needs, None, int]:
    """How many of these probes come before the first for which ``is_beyond`` holds.

    Walks one by one, then in growing steps, then bisects: where the mean stays close to the target
    over hundreds of values, some twenty probes are enough.
    """
    before, at = 0, 0
    end = len(keys)  # the first probe known to be beyond; len(keys) while none is
    while before < end:
        key = keys[at]
        yield (Need(key, reason.format(key.value), "every seed"),)
        if key.arm in state.failed_arms:
            break
        if is_beyond(key):
            end = at
        else:
            before = at + 1
        is_bracketed = end < len(keys)
        at = (before + end) // 2 if is_bracketed else min(at + max(1, at - WALK), end - 1)
    return before


def _retest(state: CellState, order: list[int]) -> Generator[Needs, None, bool]:
    """Where a pass lies below a fail, train the extra seeds of both; returns whether one did."""
    tried = set(state.tried)
    found = False
    for arm in (arm for arm in order if arm in tried and arm not in state.contradicted):
        while arm not in state.failed_arms and (contradiction := state.contradiction(arm)):
            found = True
            low, high = contradiction
            both = (ProbeKey(arm, low), ProbeKey(arm, high))
            keys = [key for key in both if key not in state.retested | state.unrunnable]
            if not keys or not state.test.extra:
                state.give_up(arm, contradiction)
                break
            reason = f"retest: passes at {low}, fails above it at {high}"
            yield tuple(Need(key, reason, "extra seeds") for key in keys)
            _reopen(state, arm)
    return found


def _reopen(state: CellState, arm: int) -> None:
    """Resume an arm's search after its verdicts have changed."""
    _rebuild(state, arm)
    state.optimistic.pop(arm, None)
    state.conservative.pop(arm, None)


def _rebuild(state: CellState, arm: int) -> None:
    """Set an arm's bracket by its verdicts: the smallest pass, and the largest fail below it."""
    axis = state.plan.axes[arm]
    passes, fails = state.verdicts(arm)
    high = min(passes, default=None)
    low = max((value for value in fails if high is None or value < high), default=None)
    below = 0 if low is None else axis.index(low) + 1
    state.set_bracket(arm, Bracket(axis, below, None if high is None else axis.index(high)))


def _confirm(state: CellState, order: list[int]) -> Generator[Needs, None, bool]:
    """Probe the best arm's threshold on fresh seeds, then those of arms that are never pruned.

    A threshold that fails there counts as a fail from now on; one that cannot be run does too, or
    leaves its arm open (``CellPlan.unrunnable``). Returns whether there was either. The best is
    tried alone, so that the next best is tried only if the best is refuted.
    """
    best, is_own = state.best, state.plan.is_kept
    own = [result for arm in order if is_own(arm) and (result := state.result(arm)).value]
    reason = f"confirm: does it pass on {state.plan.confirm_seeds} fresh seeds?"
    for results in ([best] if best else [], own):
        keys = [ProbeKey(result.arm, result.value) for result in results if result.value]
        asked = [key for key in keys if key not in state.confirmed]
        asked = [key for key in asked if key.arm not in state.failed_arms]
        if asked:
            yield tuple(Need(key, reason, "fresh seeds") for key in asked)
        refuted = [key for key in asked if key in state.refuted]
        for key in refuted:
            _reopen(state, key.arm)
        if refuted or not state.unconfirmed.isdisjoint(asked):
            return True
    return False


def transition_needs(state: CellState, arms: Iterable[int]) -> Needs:
    """Many seeds at every value near each threshold that was found."""
    share = state.plan.transition.window
    needs = []
    for arm in arms:
        result = state.result(arm)
        if result.status == "found" and result.value is not None:
            for value in state.plan.axes[arm]:
                if abs(value - result.value) <= max(1, share * result.value):
                    near = f"transition: within {100 * share:.6g}% of the threshold, {result.value}"
                    needs.append(Need(ProbeKey(arm, value), near, "transition"))
    return tuple(needs)


def _grid(state: CellState) -> Steps:
    """Probe every value with every seed; the brackets follow from the verdicts."""
    yield tuple(
        Need(ProbeKey(arm, value), "listed in the grid", "every seed")
        for arm, axis in state.plan.axes.items()
        for value in axis
    )
    for arm in state.plan.axes:
        _rebuild(state, arm)
    yield from _retest(state, list(state.plan.axes))
    for arm, axis in state.plan.axes.items() if state.plan.intervals else ():
        for value in reversed(axis):
            key = ProbeKey(arm, value)
            if key not in state.every_seed:
                continue
            if state.test_of(key).may_reach(state.scores(key)):
                state.optimistic[arm] = value
            if state.test_of(key).surely_reaches(state.scores(key)):
                state.conservative[arm] = value
