"""Cells whose every score is known: an exhaustive answer, and workers that run the search."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from scipy import stats

from search.portfolio import Portfolio
from search.protocol import CellPlan, Probe, Signal
from search.seed_test import SeedTest

Told = tuple[str, int, int, int, float]
Row = tuple[str, int | None, int | None, int | None]


@dataclass(frozen=True)
class SimulatedCell:
    """A plan and the score of every run; a score of None is a run that cannot be trained."""

    plan: CellPlan
    test: SeedTest
    score: Callable[[int, int, int], float | None]

    def scores(self, h: int, d_k: int) -> list[float]:
        return [self.score(h, d_k, seed) for seed in range(self.test.seeds)]

    def passes(self, h: int, d_k: int) -> bool:
        """Whether the mean of every seed reaches the target, both as they are written."""
        total = sum(Fraction(str(score)) for score in self.scores(h, d_k))
        return total >= self.test.seeds * Fraction(str(self.test.target))

    def threshold(self, h: int) -> int | None:
        """The smallest d_k that passes, by trying each."""
        return next((d for d in range(1, self.plan.limits[h] + 1) if self.passes(h, d)), None)

    def bounds(self, h: int, d_k: int) -> tuple[float, float]:
        """The 95 % t-interval of the mean."""
        scores = self.scores(h, d_k)
        if len(set(scores)) == 1:
            return scores[0], scores[0]
        mean, error = sum(scores) / len(scores), stats.sem(scores)
        return stats.t.interval(0.95, len(scores) - 1, mean, error)

    def interval(self, h: int, d_k: int) -> tuple[int | None, int | None]:
        """App. A.2: the optimistic and the conservative D_K, walking from the threshold."""
        low = d_k
        while low > 1 and self.bounds(h, low - 1)[1] >= self.test.target:
            low -= 1
        above = range(d_k, self.plan.limits[h] + 1)
        high = next((d for d in above if self.bounds(h, d)[0] >= self.test.target), None)
        return h * low, None if high is None else h * high

    def table(self) -> dict[int, Row]:
        """Status, d_k, D_K_low and D_K_high of every head, by trying every width."""
        thresholds = {h: self.threshold(h) for h in self.plan.limits}
        passing = [h * d_k for h, d_k in thresholds.items() if d_k is not None]
        keep = self.plan.keep_within
        margin = None
        if passing and keep is not None:
            margin = int(min(passing) * (1 + Fraction(str(keep))))
        rows: dict[int, Row] = {}
        for h, d_k in thresholds.items():
            beyond = h * (self.plan.limits[h] + 1)
            if d_k is not None and (margin is None or h * d_k <= margin):
                asked = self.plan.intervals and self.test.seeds > 1
                rows[h] = ("found", d_k, *(self.interval(h, d_k) if asked else (None, None)))
            elif d_k is None and (margin is None or beyond <= margin):
                rows[h] = ("censored", None, beyond, None)
            else:
                rows[h] = ("pruned", None, h * (margin // h + 1), None)
        return rows


def table(portfolio: Portfolio, cell: str) -> dict[int, Row]:
    """What the search says, in the form of ``SimulatedCell.table``."""
    results = {h: portfolio.state(cell).result(h) for h in portfolio.plans[cell].limits}
    return {h: (r.status, r.d_k, r.D_K_low, r.D_K_high) for h, r in results.items()}


def everything(portfolio: Portfolio) -> list[object]:
    """Results with certificates and decisions of every cell: what the stored tables are made of."""
    states = [portfolio.state(cell) for cell in portfolio.plans]
    return [([s.result(h) for h in s.plan.limits], s.decisions) for s in states]


@dataclass
class Workers:
    """Slots that run trials as Ray Tune's would: a wave at a time, in an order drawn by chance.

    Attributes:
        told: every score in the order in which the search learnt of it.
        waves: of each trial, how many runs its waves trained.
    """

    portfolio: Portfolio
    cells: Sequence[SimulatedCell]
    slots: int = 1
    order: random.Random = field(default_factory=lambda: random.Random(0))
    told: list[Told] = field(default_factory=list)
    probes: list[Probe] = field(default_factory=list)
    _live: list[tuple[Probe, dict[int, float]]] = field(default_factory=list)

    def run(self, waves: int | None = None) -> Workers:
        """Run to the end, or be killed after so many waves."""
        done = 0
        while self._fill() or self._live:
            if done == waves:
                return self
            self._wave(self.order.randrange(len(self._live)))
            done += 1
            assert done < 20_000, "the search never ends"
        assert self.portfolio.is_done
        return self

    def _fill(self) -> bool:
        while len(self._live) < self.slots:
            answer = self.portfolio.ask()
            if not isinstance(answer, Probe):
                assert answer is Signal.DONE or self._live, "waits for nothing"
                return False
            running = [(p.cell, p.h, p.d_k) for p, _ in self._live]
            assert (answer.cell, answer.h, answer.d_k) not in running, "handed out twice at once"
            self._live.append((answer, dict(answer.scores)))
            self.probes.append(answer)
        return True

    def _wave(self, place: int) -> None:
        probe, scores = self._live[place]
        cell = next(cell for cell in self.cells if cell.plan.cell == probe.cell)
        assert 1 <= probe.d_k <= cell.plan.limits[probe.h]
        wave = list(cell.test.next_wave(scores, probe.complete))
        assert wave, f"a trial goes on with nothing to train: {probe}"
        self.order.shuffle(wave)
        for seed in wave:
            score = cell.score(probe.h, probe.d_k, seed)
            if score is None:
                self.portfolio.tell_failed(probe.cell, probe.h, probe.d_k)
                continue
            scores[seed] = score
            run = (probe.cell, probe.h, probe.d_k, seed, score)
            assert run not in self.told, "trained again"
            self.told.append(run)
            self.portfolio.tell(*run)
        if not self.portfolio.is_wanted(probe.cell, probe.h, probe.d_k):
            self.portfolio.release(probe.cell, probe.h, probe.d_k)
            del self._live[place]
