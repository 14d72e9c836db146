"""The rule of a pass: a mean over seeds, which seeds a verdict takes, and when it is certain."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from statistics import fmean
from typing import Literal

Verdict = Literal["pass", "fail"]
"""The verdict on a probe."""
Scores = dict[int, float]
"""Scores by seed."""
LOOK = 3
"""Seeds after which a mean that reaches the target counts as a pass for now."""
CONFIDENCE = 0.95
"""Coverage of every interval (App. A.2)."""


def passes(scores: Sequence[float], target: float, minimise: bool = False) -> bool:
    """Whether the mean of some scores is as good as the target.

    All numbers are read as the decimals that they print as, and added exactly: a mean equal to the
    target passes, and the order does not matter. An infinite score, from a diverged run, fails.
    """
    if any(map(math.isinf, scores)):
        return False
    gap = sum(scores) - len(scores) * target
    size = sum(map(abs, scores)) + abs(len(scores) * target)
    # Rounding decides only sums this close to the target; exact fractions are slow.
    if abs(gap) <= (len(scores) + 4) * sys.float_info.epsilon * size:
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
        first: the smallest seed; the seeds are first … first + n - 1.
        look: number of seeds whose mean, if it reaches the target, is a pass for now; 0 for no such
            pass. Set by ``at_first`` alone.
    """

    target: float
    seeds: int
    minimise: bool = False
    low: float | None = 0.0
    high: float | None = 1.0
    first: int = 0
    look: int = 0

    @cached_property
    def at_first(self) -> SeedTest:
        """The test by which a probe passes for now; itself if there is no best possible score."""
        return self if self.best is None else replace(self, look=LOOK)

    def on_fresh(self, seeds: int) -> SeedTest:
        """The same test over this many seeds, which follow those of this one."""
        return replace(self, first=self.first + self.seeds, seeds=seeds)

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

    def verdict(self, scores: Mapping[int, float]) -> Verdict | None:
        """Pass or fail if certain, whatever the missing seeds score; else None."""
        return _verdict(self, self._known(scores))

    def mean(self, scores: Mapping[int, float]) -> float:
        """Mean score of the seeds that are known."""
        return fmean(self._known(scores))

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

    def needed(self, scores: Mapping[int, float], complete: bool = False) -> Scores:
        """The scores of the seeds that the waves of this test would have run, and no others.

        Other studies, or speculation, may have trained more seeds of a probe than its verdict
        takes; what is reported must not depend on that.
        """
        run = _waves(self, tuple(map(scores.get, self.in_order)), complete)[0]
        return {seed: scores[seed] for seed in run}

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

    def interval_reaches(self, scores: Mapping[int, float]) -> tuple[bool, bool]:
        """Whether the better end of the 95 % interval reaches the target, and the worse one."""
        if (ends := _interval(self._known(scores))) is None:
            return False, False
        low, high = map(self.reaches, ends)
        return (low, high) if self.minimise else (high, low)

    def explain(self, scores: Mapping[int, float]) -> str:
        """The inequality behind the verdict, in words."""
        if not (known := self._known(scores)):
            return "no seed has run"
        verdict, ran, spared = self.verdict(scores), len(known), self.seeds - len(known)
        shown = f"mean {_shown(fmean(known))}"
        if any(map(math.isinf, known)):
            return "a run diverged, and no other seed can save the mean"
        if not spared:
            good, bad = ("≤", ">") if self.minimise else ("≥", "<")
            return f"{shown} {good if verdict == 'pass' else bad} {self.target} over {ran} seeds"
        shown += f" over {ran} of {self.seeds} seeds"
        if verdict is None or self.best is None:
            return f"{shown}: undecided"
        if verdict == "pass":
            return f"{shown}: a pass for now" if self.look else f"{shown}: the rest cannot fail it"
        most = fmean((*known, *[self.best] * spared))
        sign = ">" if self.minimise else "<"
        return f"{shown}; if the rest score {self.best:g}, it is {most:.6g} {sign} {self.target}"

    def _known(self, scores: Mapping[int, float]) -> tuple[float, ...]:
        return tuple(scores[seed] for seed in self.in_order if seed in scores)


# Every replay of a search asks the same of a probe several times, so the answers are cached.


@lru_cache(maxsize=200_000)
def _waves(
    test: SeedTest, scores: tuple[float | None, ...], complete: bool
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The seeds that have run, and those that the current wave lacks.

    Args:
        scores: the score of each seed of the test; None if it has not run.
    """
    at = dict(zip(test.in_order, scores, strict=True))
    run: Scores = {}
    while len(run) < test.seeds and (complete or _verdict(test, tuple(run.values())) is None):
        wave = test.in_order[len(run) : test.seeds if complete else test.wave_end(run)]
        run |= {seed: score for seed in wave if (score := at[seed]) is not None}
        if lacking := tuple(seed for seed in wave if at[seed] is None):
            return tuple(run), lacking
    return tuple(run), ()


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


def t_interval(scores: Sequence[float]) -> tuple[float, float] | None:
    """95 % t-interval of the mean (App. A.2): mean ± t(0.975, n - 1) s / √n, not clipped.

    Returns:
        (low, high); of zero width if all scores are equal; both infinite if a score is; None if
        there are fewer than two scores.
    """
    from scipy.special import stdtrit  # takes 0.25 s, and not every command has intervals

    n = len(scores)
    if n < 2:
        return None
    if min(scores) == max(scores):
        return scores[0], scores[0]
    middle = fmean(scores)
    if math.isinf(middle):
        return middle, middle
    error = math.sqrt(math.fsum((score - middle) ** 2 for score in scores) / (n - 1) / n)
    half = float(stdtrit(n - 1, (1 + CONFIDENCE) / 2)) * error
    return middle - half, middle + half


_interval = lru_cache(maxsize=200_000)(t_interval)


def _shown(value: float) -> str:
    return f"{value:.4f}" if abs(value) >= 0.01 else f"{value:.3g}"
