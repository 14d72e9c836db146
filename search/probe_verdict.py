"""Whether a probe passes: the rule, the seeds that a verdict takes, and when it is certain."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Literal

from rgr_dist.search.confidence_interval import mean, t_interval

Verdict = Literal["pass", "fail"]
"""The verdict on a probe."""
Scores = dict[int, float]
"""Scores by seed."""
LOOK = 3
"""Seeds after which a mean that reaches the target counts as a pass for now."""


def passes(scores: Sequence[float], target: float, minimise: bool = False) -> bool:
    """Whether the mean of some scores is as good as the target.

    All numbers are read as the decimals that they print as, and added exactly: a mean equal to the
    target passes, and the order does not matter. An infinite score, from a diverged run, fails.
    """
    if any(map(math.isinf, scores)):
        return False
    gap = sum(scores) - len(scores) * target
    size = sum(map(abs, scores)) + abs(len(scores) * target)
    # Rounding decides only sums this close to the target; exact fractions are slow. An overflow,
    # whose gap is nan, is decided by them too.
    if not abs(gap) > (len(scores) + 4) * sys.float_info.epsilon * size:
        exact = sum(map(decimal, scores), Fraction()) - len(scores) * decimal(target)
        return exact <= 0 if minimise else exact >= 0
    return gap < 0 if minimise else gap > 0


@lru_cache(maxsize=100_000)
def decimal(value: float) -> Fraction:
    """The decimal number that a float prints as, exactly."""
    return Fraction(repr(float(value)))


@dataclass(frozen=True)
class SeedTest:
    """Pass if the mean score over all seeds reaches the target.

    Where the score has bounds, a verdict is often certain before every seed has run: a probe fails
    if the best possible scores of the missing seeds could not save it, and passes if the worst
    could not make it fail. With scores s of at most 1, it fails as soon as the known seeds lack
    sum(1 - s) > n (1 - target).

    Attributes:
        target: mean score to reach.
        seeds: number of seeds n.
        minimise: lower scores are better: pass if the mean is at most the target.
        low, high: bounds of the score, None where it has none.
        extra: seeds that a retest adds.
        first: the smallest seed; the seeds are first … first + n - 1.
        look: number of seeds whose mean, if it reaches the target, is a pass for now; 0 for no such
            pass. After it the search goes on to smaller values; a threshold takes all seeds. Set by
            the search alone.
    """

    target: float
    seeds: int
    minimise: bool = False
    low: float | None = 0.0
    high: float | None = 1.0
    extra: int = 0
    first: int = 0
    look: int = 0

    @cached_property
    def at_first(self) -> SeedTest:
        """The test by which a probe passes for now; itself if there is no best possible score."""
        return self if self.best is None else replace(self, look=LOOK)

    @cached_property
    def with_extra(self) -> SeedTest:
        """The test over the extra seeds too."""
        return replace(self, seeds=self.seeds + self.extra, extra=0)

    def on_fresh(self, seeds: int) -> SeedTest:
        """The same test over this many seeds, which follow those of this one."""
        return replace(self, first=self.first + self.seeds, seeds=seeds, extra=0)

    @cached_property
    def in_order(self) -> range:
        """The seeds, in the order in which they run."""
        return range(self.first, self.first + self.seeds)

    def check(self, score: float) -> None:
        """Make sure that a score is valid.

        Raises:
            ValueError: it is not a number, or outside the bounds.
        """
        low = -math.inf if self.low is None else self.low
        high = math.inf if self.high is None else self.high
        if not low <= score <= high:
            raise ValueError(f"score {score}: not in {low:g}…{high:g}")

    @property
    def best(self) -> float | None:
        """The best possible score; None where there is no bound."""
        return self.low if self.minimise else self.high

    @property
    def worst(self) -> float:
        """The worst possible score, which a diverged run gets; infinite where there is no bound."""
        bound, endless = (self.high, math.inf) if self.minimise else (self.low, -math.inf)
        return endless if bound is None else bound

    def _known(self, scores: Mapping[int, float]) -> tuple[float, ...]:
        return tuple(scores[seed] for seed in self.in_order if seed in scores)

    def verdict(self, scores: Mapping[int, float]) -> Verdict | None:
        """Pass or fail if certain, whatever the missing seeds score; else None."""
        return _verdict(self, self._known(scores))

    def mean(self, scores: Mapping[int, float]) -> float:
        """Mean score of the seeds that are known."""
        return mean(self._known(scores))

    def reaches(self, value: float) -> bool:
        """Whether an end of an interval, or a mean before its verdict, is as good as the target."""
        return value <= self.target if self.minimise else value >= self.target

    def next_wave(self, scores: Mapping[int, float], complete: bool = False) -> tuple[int, ...]:
        """Seeds to train next, side by side; empty once the verdict is known.

        One seed goes first, since it settles most failing probes. If it passes, two more follow,
        then the rest; if not, as many as would settle a fail if they were no better. Where the
        target is the best possible score, one seed below it settles a fail, so waves double. A
        wave counts once all its seeds have a score, so that what a verdict rests on does not depend
        on which of them came first.

        Args:
            complete: go on until every seed has a score.
        """
        return _waves(self, tuple(map(scores.get, self.in_order)), complete)[1]

    def needed(
        self, scores: Mapping[int, float], complete: bool = False, whole: bool = False
    ) -> Scores:
        """The scores of the seeds that the waves of this test would have run, and no others.

        Other studies, or speculation, may have trained more seeds of a probe than its verdict
        takes; what is reported must not depend on that.

        Args:
            complete: as in ``next_wave``.
            whole: leave out a wave that lacks seeds.
        """
        run, _, before = _waves(self, tuple(map(scores.get, self.in_order)), complete)
        return {seed: scores[seed] for seed in (run[:before] if whole else run)}

    def wave_end(self, run: Mapping[int, float]) -> int:
        """How many seeds will have run once the next wave has."""
        known = len(run)
        if self.best is None:  # no fail is certain before the last
            return self.seeds
        if not known:
            return 1
        if self.target == self.best:
            return min(self.seeds, 2 * known)
        if self.reaches(self.mean(run)):
            return min(self.seeds, LOOK) if known < LOOK else self.seeds
        best = decimal(self.best)
        lost = sum(abs(best - decimal(score)) for score in run.values())
        allowed = self.seeds * abs(best - decimal(self.target))
        settling = math.floor(allowed * known / lost) + 1  # if those to come score as these do
        return min(self.seeds, max(known + 1, settling))

    def interval(self, scores: Mapping[int, float]) -> tuple[float, float] | None:
        """95 % t-interval of the mean over the known seeds; None if there are fewer than two."""
        return _interval(self._known(scores))

    def may_reach(self, scores: Mapping[int, float]) -> bool:
        """Whether the better end of the interval reaches the target."""
        bounds = self.interval(scores)
        return bounds is not None and self.reaches(bounds[0 if self.minimise else 1])

    def surely_reaches(self, scores: Mapping[int, float]) -> bool:
        """Whether the worse end of the interval reaches the target."""
        bounds = self.interval(scores)
        return bounds is not None and self.reaches(bounds[1 if self.minimise else 0])

    def interval_in_words(self, scores: Mapping[int, float]) -> str:
        """The interval, cut to the bounds of a score, as a clause; nothing if there is none."""
        if (ends := self.interval(scores)) is None:
            return ""
        low = ends[0] if self.low is None else max(ends[0], self.low)
        high = ends[1] if self.high is None else min(ends[1], self.high)
        return f"; 95% interval {_shown(low)} to {_shown(high)}"

    def explain(self, scores: Mapping[int, float]) -> str:
        """The inequality behind the verdict, in words."""
        return _explain(self, self._known(scores))


# Every replay of a search asks the same of a probe several times, so the answers are cached.


@lru_cache(maxsize=200_000)
def _waves(
    test: SeedTest, scores: tuple[float | None, ...], complete: bool
) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """The seeds that have run, those that the current wave lacks, and how many came before it.

    Args:
        scores: the score of each seed of the test; None if it has not run.
    """
    at = dict(zip(test.in_order, scores, strict=True))
    run: Scores = {}
    while len(run) < test.seeds and (complete or _verdict(test, tuple(run.values())) is None):
        before = len(run)
        wave = test.in_order[before : test.seeds if complete else test.wave_end(run)]
        run |= {seed: score for seed in wave if (score := at[seed]) is not None}
        if lacking := tuple(seed for seed in wave if at[seed] is None):
            return tuple(run), lacking, before
    return tuple(run), (), len(run)


@lru_cache(maxsize=200_000)
def _verdict(test: SeedTest, known: tuple[float, ...]) -> Verdict | None:
    """The verdict on these scores."""
    if any(map(math.isinf, known)):
        return "fail"
    missing = test.seeds - len(known)
    if passes((*known, *[test.worst] * missing), test.target, test.minimise):
        return "pass"
    if 0 < test.look <= len(known) and passes(known, test.target, test.minimise):
        return "pass"
    if missing and (
        test.best is None or passes((*known, *[test.best] * missing), test.target, test.minimise)
    ):
        return None
    return "fail"


@lru_cache(maxsize=200_000)
def _explain(test: SeedTest, known: tuple[float, ...]) -> str:
    """The inequality behind the verdict on these scores."""
    if not known:
        return "no seed has run"
    verdict, best = _verdict(test, known), test.best
    ran, spared = len(known), test.seeds - len(known)
    middle = mean(known)
    if any(map(math.isinf, known)):
        return f"a run diverged; the other {spared} seeds cannot save the mean"
    if not spared:
        signs = ("≥", "<") if not test.minimise else ("≤", ">")
        sign = signs[0] if verdict == "pass" else signs[1]
        reach = sum(passes((score,), test.target, test.minimise) for score in known)
        some = f"; {reach} of them reach it" if 0 < reach < ran else ""
        return f"mean {_shown(middle)} {sign} {test.target} over all {ran} seeds{some}"
    if verdict == "pass" and test.look:
        return f"mean {_shown(middle)} over {ran} of {test.seeds} seeds: a pass for now"
    if verdict == "pass":
        makes = "seed makes" if ran == 1 else "seeds make"
        return f"{ran} {makes} the mean pass in any case; the other {spared} are spared"
    if verdict is None or best is None:
        return f"mean {_shown(middle)} over {ran} of {test.seeds} seeds: undecided"
    most = mean((*known, *[best] * spared))
    sign = ">" if test.minimise else "<"
    others = "the other scores" if spared == 1 else f"the other {spared} score"
    return (
        f"mean {_shown(middle)} over {ran} of {test.seeds} seeds; "
        f"even if {others} {best:g}, it is {most:.6g} {sign} {test.target}"
    )


def _shown(value: float) -> str:
    return f"{value:.4f}" if abs(value) >= 0.01 else f"{value:.3g}"


_interval = lru_cache(maxsize=200_000)(t_interval)
"""``t_interval``, cached: Scipy takes half a millisecond."""
