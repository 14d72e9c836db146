"""The test of one probe over its seeds: verdict, exact curtailment, waves."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache

from search.confidence_interval import t_interval
from search.protocol import Verdict


@dataclass(frozen=True)
class SeedTest:
    """Pass if the mean score over all seeds reaches the target.

    Where the score has bounds, a verdict is often certain before every seed has run. With
    scores of at most 1, a probe fails once the shortfall of the known ones exceeds what the
    mean may lack, sum(1 - s) > n (1 - target); with scores of at least 0, it passes once the
    known ones alone reach n * target. The sums are exact rationals: a verdict does not depend on
    the order of the seeds. An infinite score, of a run that diverged, fails its probe.

    Attributes:
        target: mean score to reach. It and the scores are taken as the decimal numbers that
            they print as, so that a mean exactly at the target passes.
        seeds: number of seeds n.
        first: the smallest of them; the seeds are first … first + n - 1.
        one_by_one: seeds are dear: begin with one, and add as few as may settle a fail.
        minimise: lower scores are better: pass if the mean is at most the target.
        low, high: bounds of the score, None where it has none.
        extra: seeds that a retest adds.
    """

    target: float
    seeds: int
    minimise: bool = False
    low: float | None = 0.0
    high: float | None = 1.0
    extra: int = 0
    first: int = 0
    one_by_one: bool = False

    @property
    def with_extra(self) -> SeedTest:
        """The test over the extra seeds too."""
        return replace(self, seeds=self.seeds + self.extra, extra=0)

    def on_fresh(self, seeds: int) -> SeedTest:
        """The same test over so many seeds that follow those of this one."""
        return replace(self, first=self.first + self.seeds, seeds=seeds, extra=0)

    @cached_property
    def in_order(self) -> range:
        """The seeds, in the order in which they run."""
        return range(self.first, self.first + self.seeds)

    def check(self, score: float) -> None:
        """Make sure that a score can be one.

        Raises:
            ValueError: it is no number, or outside the bounds.
        """
        low = -math.inf if self.low is None else self.low
        high = math.inf if self.high is None else self.high
        if not low <= score <= high:
            raise ValueError(f"score {score}: not in {low:g}…{high:g}")

    @property
    def worst(self) -> float:
        """The score of a run that diverged."""
        bound, endless = (self.high, math.inf) if self.minimise else (self.low, -math.inf)
        return endless if bound is None else bound

    @cached_property
    def signed_bounds(self) -> tuple[Fraction | None, Fraction | None, Fraction]:
        """Worst and best score and the wanted sum, signed so that more is better."""
        sign = -1 if self.minimise else 1
        low, high = (None if b is None else sign * _decimal(b) for b in (self.low, self.high))
        worst, best = (high, low) if self.minimise else (low, high)
        return worst, best, sign * self.seeds * _decimal(self.target)

    def _known(self, scores: Mapping[int, float]) -> list[float]:
        return [scores[seed] for seed in self.in_order if seed in scores]

    def verdict(self, scores: Mapping[int, float]) -> Verdict | None:
        """Pass or fail if certain, whatever the missing seeds score; else None."""
        return _verdict(self, tuple(self._known(scores)))

    def mean(self, scores: Mapping[int, float]) -> float:
        """Mean score of the seeds that are known."""
        known = self._known(scores)
        return math.fsum(known) / len(known)

    def reaches(self, value: float) -> bool:
        """Whether a mean, or the end of its interval, is as good as the target."""
        return value <= self.target if self.minimise else value >= self.target

    def next_wave(self, scores: Mapping[int, float], complete: bool = False) -> tuple[int, ...]:
        """Seeds to train next, side by side; empty once the verdict is known.

        Two seeds settle most failing probes. If they pass, the rest go together; if they do
        not, three more, then the rest. Where seeds are dear, one goes first; if it passes, two
        more, then the rest; if not, as many as would settle a fail, were they no better. Where
        the target is the best of all scores, one seed below it settles a fail: waves double. A wave
        counts when all its seeds have a score, so that what a verdict rests on does not depend
        on which of them came first.

        Args:
            complete: go on until every seed has a score.
        """
        return self._waves(scores, complete)[1]

    def needed(self, scores: Mapping[int, float], complete: bool = False) -> dict[int, float]:
        """Those of the scores that the waves of this test would have run, and no more.

        Other studies, or speculation, may have trained more seeds of a probe than its verdict
        takes; what is reported must not depend on that.
        """
        return {seed: scores[seed] for seed in self._waves(scores, complete)[0]}

    def _waves(
        self, scores: Mapping[int, float], complete: bool
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return _waves(self, tuple(map(scores.get, self.in_order)), complete)

    def wave_end(self, run: Mapping[int, float]) -> int:
        """How many seeds there are to be when the next wave has run, if a score has bounds."""
        known = len(run)
        if self.target == (self.low if self.minimise else self.high):
            return min(self.seeds, max(1, 2 * known))
        promising = known > 0 and self.reaches(self.mean(run))
        if not self.one_by_one:
            return (
                self.seeds if known >= 5 or (promising and known >= 2) else 5 if known >= 2 else 2
            )
        if promising:
            return 3 if known < 3 else self.seeds
        return min(self.seeds, max(known + 1, self._settling(run)))

    def _settling(self, run: Mapping[int, float]) -> int:
        """Seeds that settle a fail if those to come score as these do; the mean is below target."""
        _, best, wanted = self.signed_bounds
        if not run or best is None:
            return 1
        total = sum(map(_decimal, run.values()), Fraction()) * (-1 if self.minimise else 1)
        lost, allowed = len(run) * best - total, self.seeds * best - wanted
        return math.floor(allowed * len(run) / lost) + 1

    def interval(self, scores: Mapping[int, float]) -> tuple[float, float] | None:
        """95 % t-interval of the mean over the known seeds; None below two seeds."""
        return _interval(tuple(self._known(scores)))

    def may_reach(self, scores: Mapping[int, float]) -> bool:
        """Whether the better end of the interval reaches the target."""
        bounds = self.interval(scores)
        return bounds is not None and self.reaches(bounds[0 if self.minimise else 1])

    def surely_reaches(self, scores: Mapping[int, float]) -> bool:
        """Whether the worse end of the interval reaches the target."""
        bounds = self.interval(scores)
        return bounds is not None and self.reaches(bounds[1 if self.minimise else 0])

    def explain(self, scores: Mapping[int, float]) -> str:
        """The inequality behind the verdict, in words."""
        known = self._known(scores)
        spared = self.seeds - len(known)
        if not known:
            return "no seed has run"
        mean = _shown(self.mean(scores))
        verdict = self.verdict(scores)
        if any(math.isinf(score) for score in known):
            return f"a run diverged; the other {spared} seeds cannot save the mean"
        if not spared:
            sign = ("≤" if self.minimise else "≥") if verdict == "pass" else "<>"[self.minimise]
            return f"mean {mean} {sign} {self.target} over all {self.seeds} seeds"
        if verdict == "pass":
            return f"{len(known)} seeds settle n * target; the other {spared} are spared"
        if verdict is None:
            return f"mean {mean} over {len(known)} of {self.seeds} seeds: undecided"
        best = self.low if self.minimise else self.high
        assert best is not None  # or nothing would be certain before the last seed
        lost = _shown(math.fsum(abs(best - score) for score in known))
        allowed = f"{self.seeds * abs(best - self.target):.4g}"
        named = f"(target - {best:g})" if self.minimise else f"({best:g} - target)"
        return (
            f"{len(known)} seeds lack {lost} > {allowed} = n{named}: "
            f"the other {spared} cannot save the mean"
        )


def _shown(value: float) -> str:
    return f"{value:.4f}" if abs(value) >= 0.01 else f"{value:.3g}"


@lru_cache(maxsize=200_000)
def _waves(
    test: SeedTest, scores: tuple[float | None, ...], complete: bool
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The seeds of the waves so far, and those that the present one lacks.

    A search asks for those of the same probe at every replay, and several times in each.

    Args:
        scores: of each seed of the test, None where it has not run.
    """
    at = dict(zip(test.in_order, scores, strict=True))
    run: dict[int, float] = {}
    while len(run) < test.seeds and (complete or _verdict(test, tuple(run.values())) is None):
        whole = complete or (test.low is None and test.high is None)
        wave = test.in_order[len(run) : test.seeds if whole else test.wave_end(run)]
        run |= {seed: score for seed in wave if (score := at[seed]) is not None}
        if lacking := tuple(seed for seed in wave if at[seed] is None):
            return tuple(run), lacking
    return tuple(run), ()


@lru_cache(maxsize=200_000)
def _verdict(test: SeedTest, known: tuple[float, ...]) -> Verdict | None:
    """The verdict on so many scores."""
    if any(map(math.isinf, known)):
        return "fail"
    worst, best, _ = test.signed_bounds
    if len(known) == test.seeds:
        return "pass" if _reaches(test, known, Fraction()) else "fail"
    if worst is not None and _reaches(test, known, worst):
        return "pass"
    if best is not None and not _reaches(test, known, best):
        return "fail"
    return None


def _reaches(test: SeedTest, known: tuple[float, ...], bound: Fraction) -> bool:
    """Whether the scores reach the wanted sum where each that is missing is at a bound."""
    sign, missing = -1 if test.minimise else 1, test.seeds - len(known)
    total, wanted, rest = sign * sum(known), sign * test.seeds * test.target, missing * float(bound)
    size = sum(map(abs, known)) + abs(wanted) + abs(rest)
    gap = total + rest - wanted
    if abs(gap) > (test.seeds + 4) * sys.float_info.epsilon * size:
        return gap > 0  # no rounding can have changed this; fractions are slow
    exact = sum(map(_decimal, known), Fraction()) * sign
    return exact + missing * bound >= test.signed_bounds[2]


@lru_cache(maxsize=200_000)
def _interval(known: tuple[float, ...]) -> tuple[float, float] | None:
    """The interval of so many scores, cached like the verdict: scipy takes half a millisecond."""
    return t_interval(known)


@lru_cache(maxsize=100_000)
def _decimal(value: float) -> Fraction:
    """The decimal number that a float prints as, exactly."""
    return Fraction(repr(float(value)))
