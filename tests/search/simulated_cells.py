"""Cells whose every score is known: an exhaustive answer, and workers that run the search."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache

from scipy import stats

from rgr_dist.search.cell_search import replay
from rgr_dist.search.cell_state import CellState, Evidence
from rgr_dist.search.old_portfolio import Portfolio
from rgr_dist.search.probe_verdict import SeedTest
from rgr_dist.search.protocol import CellPlan, Probe, Signal

Told = tuple[str, int, int, int, float]
Row = tuple[str, int | None, int | None, int | None]


def axes_to(limits: dict[int, int]) -> dict[int, range]:
    """Every value from 1 to each arm's limit."""
    return {arm: range(1, limit + 1) for arm, limit in limits.items()}


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

    plan: CellPlan
    test: SeedTest
    score: Callable[[int, int, int], float | None]

    def scores(self, arm: int, value: int) -> list[float]:
        return [self.score(arm, value, seed) for seed in range(self.test.seeds)]

    def passes(self, arm: int, value: int) -> bool:
        """Whether the mean of every seed reaches the target, both as they are written."""
        total = sum(Fraction(str(score)) for score in self.scores(arm, value))
        wanted = self.test.seeds * Fraction(str(self.test.target))
        return total <= wanted if self.test.minimise else total >= wanted

    def threshold(self, arm: int) -> int | None:
        """The smallest value that passes, by trying each."""
        return next((d for d in self.plan.axes[arm] if self.passes(arm, d)), None)

    def bounds(self, arm: int, value: int) -> tuple[float, float]:
        """The 95 % t-interval of the mean."""
        return scipys_interval(tuple(self.scores(arm, value)))

    def interval(self, arm: int, value: int) -> tuple[int | None, int | None]:
        """App. A.2: the optimistic and the conservative cost, walking from the threshold."""
        axis = list(self.plan.axes[arm])
        high = axis.index(value)
        low = self.optimistic(arm, high)
        while high < len(axis):
            if self.surely_reaches(arm, axis[high]):
                return arm * axis[low], arm * axis[high]
            high += 1
        return arm * axis[low], None

    def optimistic(self, arm: int, at: int) -> int:
        """Down from a position on the axis, the first below which no interval reaches."""
        axis = self.plan.axes[arm]
        while at > 0 and self.may_reach(arm, axis[at - 1]):
            at -= 1
        return at

    def may_reach(self, arm: int, value: int) -> bool:
        """Whether the better end of the interval reaches the target."""
        return self._reaches(self.bounds(arm, value)[not self.test.minimise])

    def surely_reaches(self, arm: int, value: int) -> bool:
        """Whether the worse end of the interval does."""
        return self._reaches(self.bounds(arm, value)[self.test.minimise])

    def _reaches(self, mean: float) -> bool:
        return mean <= self.test.target if self.test.minimise else mean >= self.test.target

    def table(self) -> dict[int, Row]:
        """Status, value, cost_low and cost_high of every arm, by trying every value."""
        thresholds = {arm: self.threshold(arm) for arm in self.plan.axes}
        passing = [arm * value for arm, value in thresholds.items() if value is not None]
        asked = self.plan.intervals and self.test.seeds > 1
        rows: dict[int, Row] = {}
        for arm, value in thresholds.items():
            limit = self.plan.axes[arm][-1]
            margin = self.margin(arm, min(passing)) if passing else None
            if value is not None and (margin is None or value <= margin):
                interval = self.interval(arm, value) if asked else (None, None)
                rows[arm] = ("found", value, *interval)
            elif value is None and (margin is None or limit < margin):
                rows[arm] = ("censored", None, arm * (limit + 1), None)
            else:
                sure = arm * (margin + 1)
                tried = [d for d in self.plan.axes[arm] if d <= margin]
                if asked and tried and not self.plan.every_arm:
                    low = self.optimistic(arm, len(tried))
                    sure = min(sure, arm * (*tried, margin + 1)[low])
                rows[arm] = ("pruned", None, sure, None)
        return rows

    def margin(self, arm: int, best: int) -> int | None:
        """The largest value that is near the best cost: by the share, or one step above it."""
        if self.plan.keep_within is None or arm in self.plan.keep_arms:
            return None
        most = math.floor(best * (1 + Fraction(str(self.plan.keep_within))))
        near = [d for d in range(1, 3 * best) if arm * d <= most]
        steps = [d for d in range(1, best + 2) if arm * d <= best]
        return max([0, *near, *(d + 1 for d in steps)])


def rows(state: CellState) -> dict[int, Row]:
    """What the search says, in the form of ``SimulatedCell.table``."""
    results = {arm: state.result(arm) for arm in state.plan.axes}
    return {arm: (r.status, r.value, r.cost_low, r.cost_high) for arm, r in results.items()}


def table(portfolio: Portfolio, cell: str) -> dict[int, Row]:
    return rows(portfolio.state(cell))


def everything(portfolio: Portfolio) -> list[object]:
    """Results with certificates and decisions of every cell: what the stored tables are made of."""
    states = [portfolio.state(cell) for cell in portfolio.plans]
    return [([s.result(arm) for arm in s.plan.axes], s.decisions) for s in states]


@dataclass
class Workers:
    """Slots that run trials as Ray Tune's would, ending in an order drawn by chance.

    Attributes:
        told: every score in the order in which the search learnt of it.
        probes: every probe that was handed out.
    """

    portfolio: Portfolio
    cells: Sequence[SimulatedCell]
    order: random.Random = field(default_factory=lambda: random.Random(0))
    told: list[Told] = field(default_factory=list)
    probes: list[Probe] = field(default_factory=list)
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
            self.probes.append(answer)
        return True

    def _finish(self, probe: Probe) -> None:
        cell = next(cell for cell in self.cells if cell.plan.cell == probe.cell)
        assert probe.value in cell.plan.axes[probe.arm]
        for seed in self.order.sample(probe.seeds, len(probe.seeds)):
            score = cell.score(probe.arm, probe.value, seed)
            if score is None:
                self.portfolio.tell_failed(probe.cell, probe.key, [seed])
                continue
            run = (probe.cell, probe.arm, probe.value, seed, score)
            assert run not in self.told, "trained again"
            self.told.append(run)
            self.portfolio.tell(*run)
        assert not self.portfolio.is_wanted(probe)
        self.portfolio.release(probe)


def search(cell: SimulatedCell) -> tuple[CellState, Evidence]:
    """Answer what the search needs, one probe at a time, until it needs no more."""
    evidence: Evidence = {}
    while (state := replay(cell.plan, cell.test, evidence)).needs:
        need = state.needs[0]
        scores = evidence.setdefault(need.key, {})
        wave = state.wave(need)
        assert wave, f"needs what is known: {need}"
        scores.update({seed: cell.score(need.key.arm, need.key.value, seed) for seed in wave})
    return state, evidence


def cell_of(
    limits: dict, score: Callable, seeds: int = 2, extra: int = 0, **plan: object
) -> SimulatedCell:
    plan = {"guess_cost": 16.0, "guess_arm": 2.0, "intervals": False} | plan
    test = SeedTest(0.99, seeds, extra=extra)
    return SimulatedCell(CellPlan("cell", axes_to(limits), **plan), test, score)
