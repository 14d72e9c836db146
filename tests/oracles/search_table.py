"""Cells whose every score is known: an exhaustive answer, and workers that run the search."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from typing import Any

from hypothesis import strategies as st
from scipy import stats

from rgr_dist.search.portfolio import Portfolio, Probe, Signal
from rgr_dist.search.seed_test import SeedTest
from rgr_dist.search.threshold import Key, Plan, Search

Row = tuple[str, int | None, int | None, int | None]
ARMS = (1, 2, 3, 4, 6, 8, 16, 32)
KEPT = (None, 0.0, 0.1, 0.1, 0.5)


@cache
def scipys_interval(scores: tuple[float, ...]) -> tuple[float, float]:
    """The 95 % t-interval of the mean; cached, since many cells share scores."""
    if len(set(scores)) == 1:
        return scores[0], scores[0]
    mean, error = sum(scores) / len(scores), stats.sem(scores)
    return stats.t.interval(0.95, len(scores) - 1, mean, error)


@dataclass(frozen=True)
class SimulatedCell:
    """A plan and the score of every run; a score of None is a run that cannot be trained."""

    plan: Plan
    score: Callable[[int, int, int], float | None]

    @property
    def test(self) -> SeedTest:
        return self.plan.test

    def passes(self, arm: int, value: int, test: SeedTest | None = None) -> bool:
        """Whether the mean of every seed reaches the target, both as they are written."""
        test = test or self.test
        total = sum(Fraction(str(self.score(arm, value, seed))) for seed in test.in_order)
        wanted = test.seeds * Fraction(str(test.target))
        return total <= wanted if test.minimise else total >= wanted

    def threshold(self, arm: int) -> int | None:
        """The smallest value that passes, by trying each."""
        return next((value for value in self.plan.axes[arm] if self.passes(arm, value)), None)

    def interval(self, arm: int, value: int) -> tuple[int, int | None]:
        """App. A.2: the optimistic and the conservative value, walking from the threshold."""
        axis = list(self.plan.axes[arm])
        low = high = axis.index(value)
        while low > 0 and self._reaches(self._bounds(arm, axis[low - 1])[not self.test.minimise]):
            low -= 1
        while high < len(axis):
            if self._reaches(self._bounds(arm, axis[high])[self.test.minimise]):
                return axis[low], axis[high]
            high += 1
        return axis[low], None

    def _bounds(self, arm: int, value: int) -> tuple[float, float]:
        return scipys_interval(tuple(self.score(arm, value, seed) for seed in self.test.in_order))

    def _reaches(self, mean: float) -> bool:
        return mean <= self.test.target if self.test.minimise else mean >= self.test.target

    def table(self) -> dict[int, Row]:
        """Status, value, low and high of every arm, by trying every value."""
        found = {arm: self.threshold(arm) for arm in self.plan.axes}
        costs = {arm: arm * value for arm, value in found.items() if value is not None}
        best = min(costs.values(), default=None)
        rows: dict[int, Row] = {}
        for arm, value in found.items():
            axis = self.plan.axes[arm]
            near = [v for v in axis if best is None or self._is_near(arm, v, best)]
            if value is not None and value in near:
                rows[arm] = ("found", value, None, None)
            elif value is None and len(near) == len(axis):
                rows[arm] = ("censored", None, axis[-1] + 1, None)
            else:
                low = axis[len(near)] if len(near) < len(axis) else axis[-1] + 1
                rows[arm] = ("pruned", None, low, None)
        if self.plan.intervals and self.test.seeds > 1 and costs:
            arm = min(costs, key=lambda arm: (costs[arm], self._loss(arm, found[arm]), arm))
            rows[arm] = ("found", found[arm], *self.interval(arm, found[arm]))
        return rows

    def _loss(self, arm: int, value: int) -> float:
        scores = [self.score(arm, value, seed) for seed in self.test.in_order]
        return (1 if self.test.minimise else -1) * math.fsum(scores) / len(scores)

    def _is_near(self, arm: int, value: int, best: int) -> bool:
        """Whether a value is near the best cost: by the share, or one step above it."""
        if self.plan.keep_within is None:
            return True
        share = 1 + Fraction(str(self.plan.keep_within))
        return arm * value <= best * share or (value > 1 and arm * (value - 1) <= best)


def rows(search: Search) -> dict[int, Row]:
    """What the search says, in the form of ``SimulatedCell.table``."""
    results = {arm: search.result(arm) for arm in search.plan.axes}
    return {arm: (r.status, r.value, r.low, r.high) for arm, r in results.items()}


def everything(portfolio: Portfolio) -> list[object]:
    """Results with certificates and decisions of every cell: what the stored tables are made of."""
    searches = [portfolio.search(cell) for cell in portfolio.plans]
    return [([s.result(arm) for arm in s.plan.axes], s.decisions) for s in searches]


@dataclass
class Workers:
    """Slots that run trials as Ray Tune's would, ending in an order drawn by chance.

    Attributes:
        told: every score in the order in which the search learnt of it.
    """

    portfolio: Portfolio
    cells: dict[str, SimulatedCell]
    order: random.Random = field(default_factory=lambda: random.Random(0))
    told: list[tuple[str, Key, int, float]] = field(default_factory=list)
    _live: list[Probe] = field(default_factory=list)

    def run(self, trials: int | None = None) -> Workers:
        """Run to the end, or be killed after so many trials."""
        done = 0
        while self._fill() or self._live:
            if done == trials:
                return self
            self._finish(self._live.pop(self.order.randrange(len(self._live))))
            done += 1
            assert done < 20_000, "the search never ends"
        assert self.portfolio.is_done
        return self

    def _fill(self) -> bool:
        while len(self._live) < self.portfolio.slots:
            answer = self.portfolio.ask()
            if not isinstance(answer, Probe):
                assert answer is Signal.DONE or self._live, "waits for nothing"
                return False
            running = {(p.cell, p.key, seed) for p in self._live for seed in p.seeds}
            asked = {(answer.cell, answer.key, seed) for seed in answer.seeds}
            assert asked, "asks for nothing"
            assert not asked & running, "handed out twice at once"
            self._live.append(answer)
        return True

    def _finish(self, probe: Probe) -> None:
        cell = self.cells[probe.cell]
        assert probe.value in cell.plan.axes[probe.arm]
        for seed in self.order.sample(probe.seeds, len(probe.seeds)):
            score = cell.score(probe.arm, probe.value, seed)
            if score is None:
                self.portfolio.tell_failed(probe.cell, probe.key, [seed])
                continue
            run = (probe.cell, probe.key, seed, score)
            assert run not in self.told, "trained again"
            self.told.append(run)
            self.portfolio.tell(probe.cell, probe.key, {seed: score})
        assert not self.portfolio.is_wanted(probe)
        self.portfolio.release(probe)


def work(cell: SimulatedCell, slots: int = 1, seed: int = 0, look_ahead: int = 8) -> Workers:
    """Workers on a single cell."""
    portfolio = Portfolio({"cell": cell.plan}, slots, look_ahead)
    return Workers(portfolio, {"cell": cell}, random.Random(seed))


def search(cell: SimulatedCell) -> Search:
    """Answer what the search needs, one probe at a time, until it needs no more."""
    evidence: dict[Key, dict[int, float]] = {}
    while (known := Search(cell.plan, evidence)).needs:
        need = known.needs[0]
        wave = known.wave(need)
        assert wave, f"needs what is known: {need}"
        scores = evidence.setdefault(need.key, {})
        scores.update({seed: cell.score(*need.key, seed) for seed in wave})
    return known


# ----- strategies: sharp, rising, lagging and noisy cells


@st.composite
def plans(draw: st.DrawFn, test: SeedTest, largest: int = 120, **fixed: Any) -> Plan:
    """Any arms in any order, any limits, any guess however wrong, any kept margin."""
    arms = draw(st.lists(st.sampled_from(ARMS), min_size=1, max_size=5, unique=True))
    plan = Plan(
        axes={arm: range(1, draw(st.integers(1, max(1, largest // arm))) + 1) for arm in arms},
        test=test,
        guess=(draw(st.sampled_from([1.0, 2.7, 8.0, 99.0])), draw(st.floats(0.1, 2 * largest))),
        keep_within=draw(st.sampled_from(KEPT)),
        intervals=draw(st.booleans()),
    )
    return replace(plan, **fixed)


def step(thresholds: dict[int, int]) -> Callable[[int, int, int], float]:
    """A score that leaps from 0.5 to 1 at each arm's threshold."""
    return lambda arm, value, seed: 1.0 if value >= thresholds[arm] else 0.5


def drawn_cell(number: int) -> SimulatedCell:
    """A cell drawn evenly by chance, larger than those that hypothesis likes to draw."""
    chance = random.Random(number)
    arms = chance.sample(ARMS, chance.randint(1, len(ARMS)))
    limits = {arm: chance.randint(1, max(1, 120 // arm)) for arm in arms}
    thresholds = {arm: round(chance.uniform(0.2, 1.2) * limit) for arm, limit in limits.items()}
    plan = Plan(
        axes={arm: range(1, limit + 1) for arm, limit in limits.items()},
        test=SeedTest(0.99, 2),
        guess=(chance.uniform(1, 64), chance.uniform(1, 200)),
        keep_within=chance.choice(KEPT),
        intervals=False,
    )
    return SimulatedCell(plan, step(thresholds))


@st.composite
def sharp_cells(draw: st.DrawFn, seeds: int | None = None, **fixed: Any) -> SimulatedCell:
    """Monotone in value: from a threshold on every seed passes, below it the mean fails clearly.

    A threshold beyond the arm's limit is a plateau that never passes. The seeds have their luck at
    every value, so that intervals clear the target from some value on, or at none.
    """
    test = SeedTest(0.99, seeds or draw(st.sampled_from([1, 2, 3, 10])))
    plan = draw(plans(test, **fixed))
    thresholds = {arm: draw(st.integers(1, axis[-1] + 3)) for arm, axis in plan.axes.items()}
    salt = draw(st.integers(0, 9))

    def score(arm: int, value: int, seed: int) -> float:
        chance = random.Random(f"{salt} {arm} {seed}")
        if value >= thresholds[arm]:
            return round(chance.uniform(0.991, 1), 4)
        return 0.9 if seed == 0 else round(chance.uniform(0.8, 1), 4)

    return SimulatedCell(plan, score)


@st.composite
def rising_cells(draw: st.DrawFn, **fixed: Any) -> SimulatedCell:
    """Means that rise with value through the target, with a luck of each seed that stays."""
    test = SeedTest(0.99, draw(st.sampled_from([2, 3, 5])))
    plan = draw(plans(test, largest=60, **fixed))
    luck = [round(draw(st.floats(-0.02, 0.02)), 4) for _ in range(test.seeds)]
    start = {arm: draw(st.integers(0, axis[-1])) for arm, axis in plan.axes.items()}
    slope = {arm: draw(st.sampled_from([0.0, 0.0005, 0.002, 0.01, 0.1])) for arm in plan.axes}

    def score(arm: int, value: int, seed: int) -> float:
        mean = 0.985 + slope[arm] * (value - start[arm])
        return round(min(1.0, max(0.0, mean + luck[seed % test.seeds])), 4)

    return SimulatedCell(plan, score)


@st.composite
def lagging_cells(draw: st.DrawFn, **fixed: Any) -> SimulatedCell:
    """Most seeds score 1 at every value and the last ones rise slowly.

    A first look passes far below the threshold, and all the seeds refute it again and again.
    """
    test = SeedTest(0.9, draw(st.integers(4, 10)))
    plan = draw(plans(test, largest=60, **fixed))
    rises = {arm: draw(st.sampled_from([0.003, 0.01, 0.03])) for arm in plan.axes}
    late = draw(st.integers(1, 3))

    def score(arm: int, value: int, seed: int) -> float:
        lags = seed % test.seeds >= test.seeds - late
        return round(min(1.0, 0.4 + rises[arm] * value), 4) if lags else 1.0

    return SimulatedCell(plan, score)


@st.composite
def noisy_cells(draw: st.DrawFn, **fixed: Any) -> SimulatedCell:
    """Scores around the target at every value: verdicts in no order at all."""
    test = SeedTest(0.99, draw(st.sampled_from([1, 2, 5, 10])))
    plan = draw(plans(test, largest=40, **fixed))
    salt = draw(st.integers(0, 99))

    def score(arm: int, value: int, seed: int) -> float:
        chance = random.Random(f"{salt} {arm} {value} {seed}")
        return chance.choice([0.97, 0.985, 0.99, 0.99, 0.995, 1.0])

    return SimulatedCell(plan, score)
