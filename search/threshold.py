"""The smallest value of each arm at which a probe passes, and the arm where that costs the least.

A probe (arm, value) passes if its mean score over all seeds reaches the target, and it costs arm ×
value. Larger values are expected to pass wherever smaller ones do. ``Search`` runs the whole search
from the start on the evidence so far, and stops at the first probe whose outcome is missing. So
what it says depends on the scores alone: not on their order, on interruptions, or on what ran ahead
of need.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from rgr_dist.search.seed_test import Scores, SeedTest, Verdict, decimal

Want = Literal["look", "verdict", "every seed", "fresh seeds"]
"""Which seeds of a probe: enough for a fail or for a pass for now; enough for the verdict; all of
them; or fresh ones, which confirm a pass."""
Status = Literal["found", "censored", "pruned", "open"]


class Key(NamedTuple):
    """What identifies a probe within its cell."""

    arm: int
    value: int


class Need(NamedTuple):
    """A probe that the search cannot go on without: which of its seeds, and why."""

    key: Key
    want: Want
    why: str


class Decision(NamedTuple):
    """What a probe of the search showed; ``open`` if a run of it failed."""

    need: Need
    verdict: Verdict | Literal["open"]
    scores: Scores


class ProbeResult(NamedTuple):
    """The evidence of one probe: mean score over the seeds that ran."""

    value: Any
    mean_score: float
    n_seeds: int


@dataclass(frozen=True)
class Plan:
    """A cell to search.

    Attributes:
        axes: the values of each arm, positive and increasing, such as a ``range``. A search without
            arms has one, 1.
        test: the test of a probe.
        guess: the arm and the cost at which a first pass is expected.
        keep_within: arms are searched up to this share, or one value, above the best cost; None
            searches every arm to the end.
        confirm_seeds: fresh seeds on which the best threshold must pass too; every threshold if
            ``keep_within`` is None.
        intervals: find App. A.2's interval of the best threshold.
        every_value: a grid: probe every value with every seed.
        both_ends: try the first value where none passes, and the last where the first does.
        names: what the values are called, where they are positions in a list, from 1 on.
    """

    axes: Mapping[int, Sequence[int]]
    test: SeedTest
    guess: tuple[float, float]
    keep_within: float | None = 0.10
    confirm_seeds: int = 0
    intervals: bool = True
    every_value: bool = False
    both_ends: bool = False
    names: Sequence[Any] = ()

    def name(self, value: int) -> Any:
        """What a value is called."""
        return self.names[value - 1] if self.names else value


@dataclass(frozen=True)
class Result:
    """What is known of an arm.

    Attributes:
        value: the threshold; None unless found.
        passed, failed: the certificate: the probes at the threshold and at the value below it, by
            their names. If nothing was found, the largest fail.
        low, high: if found, the ends of App. A.2's interval, None where not determined. Otherwise
            the smallest value not excluded (if pruned, by the best cost alone), and the smallest
            known to pass.
        fresh: the probe of the threshold on fresh seeds, if it was asked.
        first_value: the smallest value that passes without its fresh seeds: the paper's threshold.
        fails_above: names of larger values that fail: the score does not rise with every value.
        why: the status in a sentence.
    """

    arm: int
    status: Status
    value: int | None
    passed: ProbeResult | None
    failed: ProbeResult | None
    low: int | None
    high: int | None
    fresh: ProbeResult | None
    first_value: int | None
    fails_above: tuple[Any, ...]
    why: str


class Missing(Exception):
    """Needs whose outcomes are not known, its arguments: here a replay ends."""


class Search:
    """A cell's search, run up to where the evidence ends.

    Args:
        evidence: scores by seed of each probe that has any.
        failed: seeds of each probe that could not be run.
        assumed: verdicts to assume where the evidence has none, so as to look ahead.

    Attributes:
        needs: what must be run before it can go on; empty when it is finished.
        decisions: every probe so far, in order.
    """

    def __init__(
        self,
        plan: Plan,
        evidence: Mapping[Key, Mapping[int, float]],
        failed: Mapping[Key, Collection[int]] | None = None,
        assumed: Mapping[tuple[Key, Want], Verdict] | None = None,
    ) -> None:
        self.plan, self.evidence = plan, evidence
        self.failed, self.assumed = failed or {}, assumed or {}
        self.needs: tuple[Need, ...] = ()
        self.decisions: list[Decision] = []
        self.verdicts: dict[int, dict[int, Verdict]] = {arm: {} for arm in plan.axes}
        self.shown: dict[Key, tuple[Want, Verdict]] = {}  # by each probe's own seeds
        self.confirmed: dict[Key, bool] = {}
        self.intervals: dict[Key, tuple[int | None, int | None]] = {}
        self.open: set[int] = set()  # arms that a failed run leaves open
        self._best: tuple[int, Key | None] = (0, None)  # after so many decisions
        try:
            self._run()
        except Missing as missing:
            self.needs = missing.args

    @property
    def is_done(self) -> bool:
        """Whether the search is finished."""
        return not self.needs

    # ----- the algorithm

    def _run(self) -> None:
        """Narrow every arm, the likeliest first; confirm the best; then find its interval."""
        plan, (best_guess, _) = self.plan, self.plan.guess
        order = sorted(plan.axes, key=lambda arm: (abs(math.log2(arm / best_guess)), arm))
        if plan.every_value:
            keys = [Key(arm, value) for arm in order for value in plan.axes[arm]]
            self._probe(keys, "every seed", "listed in the grid")
        while True:
            for arm in order if not plan.every_value else ():
                self._narrow(arm)
            if plan.both_ends and any(map(self._tries_other_end, order)):
                continue
            if plan.confirm_seeds and self._is_refuted():
                continue
            best = self.best()
            if best and plan.intervals and plan.test.seeds > 1:
                self._find_interval(best)
            if self.best() == best:  # else its interval has shown a smaller pass
                return

    def _narrow(self, arm: int) -> None:
        """Close in on an arm's threshold, or on a fail at the largest value worth having."""
        axis = self.plan.axes[arm]
        while arm not in self.open:
            low, high = self.bracket(arm)
            cap = self.cap(arm)
            if high is None or high >= cap:
                if low >= cap:
                    return
                if self.is_unbounded:
                    at, why = self._grow(arm, low), f"grow: {self.known(arm) or 'no pass is known'}"
                else:
                    at, why = cap - 1, f"near the best cost, {self.best_cost()}?"
            elif high > low:
                at, why = _middle(axis, low, high), f"bisect: {self.known(arm)}"
            elif self.is_certain(key := Key(arm, axis[high])):
                return
            else:
                self._probe([key], "verdict", "certify: does it pass on all seeds?")
                continue
            self._probe([Key(arm, axis[at])], "look", why)

    def _tries_other_end(self, arm: int) -> bool:
        """Try the first value of an arm if none passes, and the last if the first does."""
        axis, (_, high) = self.plan.axes[arm], self.bracket(arm)
        key = Key(arm, axis[0 if high is None else -1])
        if high or arm in self.open or key.value in self.verdicts[arm]:
            return False
        return self._probe([key], "look", "do the values run the right way?")

    def _grow(self, arm: int, low: int) -> int:
        """The place nearest to twice the largest fail; without one, to the guess or best cost."""
        axis, (_, cost) = self.plan.axes[arm], self.plan.guess
        wanted = 2 * axis[low - 1] if low else (self.best_cost() or cost) / arm
        return max(low, min(range(len(axis)), key=lambda at: abs(axis[at] - wanted)))

    def _is_refuted(self) -> bool:
        """Probe the best threshold, then all if unbounded, on fresh seeds; whether one fails."""
        kept = [self.threshold(arm) for arm in self.plan.axes if self.is_unbounded]
        for keys in ([self.best()], kept):
            new = [key for key in keys if key and key not in self.confirmed]
            self._probe(new, "fresh seeds", "confirm: does it pass on fresh seeds?")
            if not all(self.confirmed.get(key) for key in new):
                return True
        return False

    def _find_interval(self, key: Key) -> None:
        """App. A.2: the smallest values whose 95 % interval reaches, and clears, the target."""
        axis, test = self.plan.axes[key.arm], self.plan.test
        at = axis.index(key.value)
        below = [Key(key.arm, value) for value in reversed(axis[:at])]
        above = [Key(key.arm, value) for value in axis[at:]]
        reach = self._edge(below, lambda scores: not test.interval_reaches(scores)[0])
        clear = self._edge(above, lambda scores: test.interval_reaches(scores)[1])
        self.intervals[key] = (
            None if reach is None else axis[at - reach],
            None if clear is None or clear == len(above) else axis[at + clear],
        )

    def _edge(self, keys: Sequence[Key], is_beyond: Callable[[Scores], bool]) -> int | None:
        """How many come before the first beyond an edge; None if a run failed on the way."""
        before, at, end = 0, 0, len(keys)
        while before < end:
            if not self._probe([keys[at]], "every seed", "interval: the spread of seeds"):
                return None
            if is_beyond(self.scores(keys[at], "every seed")):
                end = at
            else:
                before = at + 1
            # A few single steps, then growing ones; once there is an end, bisect.
            at = (before + end) // 2 if end < len(keys) else min(at + max(1, at - 4), end - 1)
        return before

    def _probe(self, keys: Sequence[Key], want: Want, why: str) -> bool:
        """Note what each probe shows, or end the replay there; whether all of them could be run."""
        needs = [Need(key, want, why) for key in keys]
        outcomes = [(need, self.outcome(need)) for need in needs]
        if missing := [need for need, outcome in outcomes if outcome is None]:
            raise Missing(*missing)
        for need, outcome in outcomes:
            if outcome is not None:
                self._note(need, outcome)
        return all(outcome != "open" for _, outcome in outcomes)

    def _note(self, need: Need, outcome: Verdict | Literal["open"]) -> None:
        key, want, _ = need
        # Of a probe that failed, what else ran is left out: that depends on the order of trials.
        scores = {} if outcome == "open" else self.scores(key, want)
        self.decisions.append(Decision(need, outcome, scores))
        if outcome == "open":
            if want != "every seed" or self.plan.every_value:  # an interval may lack an end
                self.open.add(key.arm)
            return
        if want == "fresh seeds":
            self.confirmed[key] = outcome == "pass"
        else:
            self.shown[key] = want, outcome
        known = self.verdicts[key.arm]
        if known.get(key.value) != "fail":  # what fails once, stays so
            known[key.value] = outcome

    # ----- what the evidence says

    def test_of(self, want: Want) -> SeedTest:
        """The test of a probe over the seeds that are wanted."""
        if want == "fresh seeds":
            return self.plan.test.on_fresh(self.plan.confirm_seeds)
        return self.plan.test.at_first if want == "look" else self.plan.test

    def wave(self, need: Need) -> tuple[int, ...]:
        """The seeds to train next for a need."""
        known = self.evidence.get(need.key, {})
        return self.test_of(need.want).next_wave(known, need.want == "every seed")

    def outcome(self, need: Need) -> Verdict | Literal["open"] | None:
        """A verdict; ``open`` if a seed of the next wave failed to run; None if none is known."""
        if not (wave := self.wave(need)):
            return self.test_of(need.want).verdict(self.scores(need.key, need.want))
        if (need.key, need.want) in self.assumed:
            return self.assumed[need.key, need.want]
        return "open" if set(wave) & set(self.failed.get(need.key, ())) else None

    def scores(self, key: Key, want: Want) -> Scores:
        """The scores of a probe that the search has asked for: others may have trained more."""
        return self.test_of(want).needed(self.evidence.get(key, {}), want == "every seed")

    def bracket(self, arm: int) -> tuple[int, int | None]:
        """How many values fail, from the smallest on, and the place of the first that passes."""
        axis, known = self.plan.axes[arm], self.verdicts[arm]
        if not known:
            return 0, None
        passing = min((value for value in known if known[value] == "pass"), default=None)
        fails = [v for v in known if known[v] == "fail" and (passing is None or v < passing)]
        low = axis.index(max(fails)) + 1 if fails else 0
        return low, None if passing is None else axis.index(passing)

    def is_certain(self, key: Key) -> bool:
        """Whether the verdict on a probe holds on all seeds, not just for now."""
        return key in self.shown and self.shown[key][0] != "look"

    def threshold(self, arm: int) -> Key | None:
        """The smallest pass of an arm, if it holds on all seeds and the value below it fails."""
        low, high = self.bracket(arm)
        key = Key(arm, self.plan.axes[arm][low]) if low == high else None
        return key if key and self.is_certain(key) and arm not in self.open else None

    def best(self) -> Key | None:
        """The threshold that costs the least; then the better mean, then the smaller arm."""
        if self._best[0] != len(self.decisions):
            found = [key for arm in self.plan.axes if (key := self.threshold(arm))]
            self._best = len(self.decisions), min(found, key=self._rank, default=None)
        return self._best[1]

    def _rank(self, key: Key) -> tuple[int, float, int]:
        scores = self.scores(key, "verdict")  # none if its pass is assumed
        mean = self.plan.test.mean(scores) if scores else math.inf
        return key.arm * key.value, mean if self.plan.test.minimise else -mean, key.arm

    def best_cost(self) -> int | None:
        """The least cost of a threshold."""
        return best.arm * best.value if (best := self.best()) else None

    @property
    def is_unbounded(self) -> bool:
        """Whether arms are searched to the end: nothing bounds them, or nothing shall."""
        return self.plan.keep_within is None or self.best_cost() is None

    def cap(self, arm: int) -> int:
        """How many values of an arm are near the best: within the share, or one step above it.

        Where a step is larger than the share, arms cannot be compared more finely than by a step.
        """
        axis, best = self.plan.axes[arm], self.best_cost()
        if self.plan.keep_within is None or best is None:
            return len(axis)
        within = math.floor(best * (1 + decimal(self.plan.keep_within))) // arm
        return bisect_right(axis, max(within, best // arm + (best >= arm)))

    # ----- what it comes to

    def known(self, arm: int) -> str:
        """What is known of an arm, such as ``fails at 8, passes at 16``."""
        axis, (low, high), name = self.plan.axes[arm], self.bracket(arm), self.plan.name
        fails = [f"fails at {name(axis[low - 1])}"] if low else []
        return ", ".join(fails + ([] if high is None else [f"passes at {name(axis[high])}"]))

    def result(self, arm: int) -> Result:
        """The status of an arm, its threshold and what shows it."""
        axis, (low, high), cap = self.plan.axes[arm], self.bracket(arm), self.cap(arm)
        key, why, name = self.threshold(arm), self.known(arm), self.plan.name
        passing, following = None if high is None else axis[high], [*axis, axis[-1] + 1]
        value: int | None = None
        status: Status = "open"
        ends: tuple[int | None, int | None] = following[low], None
        if key and high is not None and high < cap:
            status, value, ends = "found", key.value, self.intervals.get(key, (None, None))
            why += "" if low else ", the smallest there is"
        elif low == cap == len(axis) and arm not in self.open:
            status, why = "censored", f"{why}, the largest allowed"
        elif self.needs or arm in self.open:
            ends = ends[0], passing
            why = "a run failed" if arm in self.open else "its search goes on"
        else:
            status, ends = "pruned", (following[cap], None)
            near = f"near the best cost, {self.best_cost()}"
            why = f"fails up to {axis[cap - 1]}, the largest {near}" if cap else f"none is {near}"
        refuted = min((k.value for k, holds in self.confirmed.items()
                       if k.arm == arm and not holds), default=None)  # fmt: skip
        asked = value if value is not None and Key(arm, value) in self.confirmed else refuted
        known = self.verdicts[arm]
        first = [k.value for k, of in self.shown.items() if k.arm == arm and of[1] == "pass"]
        return Result(
            arm=arm,
            status=status,
            value=value,
            passed=self._shown(arm, value),
            failed=self._shown(arm, axis[low - 1] if low else None),
            low=ends[0],
            high=ends[1],
            fresh=self._shown(arm, asked, "fresh seeds"),
            first_value=min(first, default=None),
            fails_above=tuple(
                name(v) for v in sorted(known) if passing and v > passing and known[v] == "fail"
            ),
            why=why if refuted is None else f"{why}; fresh seeds refute {name(refuted)}",
        )

    def _shown(self, arm: int, value: int | None, want: Want = "verdict") -> ProbeResult | None:
        """What a probe showed; if fresh seeds refuted it, what it showed on those."""
        if value is None:
            return None
        key = Key(arm, value)
        if self.confirmed.get(key) is False:
            want = "fresh seeds"
        elif want == "verdict":
            want, _ = self.shown[key]
        scores = self.scores(key, want)
        mean = self.test_of(want).mean(scores) if scores else 0.0
        return ProbeResult(self.plan.name(value), mean, len(scores)) if scores else None


def _middle(axis: Sequence[int], low: int, high: int) -> int:
    """Half the smallest pass if nothing fails; else the geometric mean, or the middle if near."""
    if not low:
        return min(range(high), key=lambda at: abs(axis[at] - axis[high] / 2))
    if axis[high] > 2 * axis[low - 1]:
        wanted = math.isqrt(axis[low - 1] * axis[high])
        return next(at for at in range(low, high) if axis[at] >= wanted or at == high - 1)
    return (low + high - 1) // 2
