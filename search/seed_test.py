"""The test of one probe over its seeds: verdict, exact curtailment, waves, t-interval."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

from scipy import stats

from search.protocol import Verdict


@dataclass(frozen=True)
class SeedTest:
    """Pass if the mean score over all seeds reaches the target.

    A score lies between 0 and 1, so a verdict is often certain before every seed has run:
    the probe fails once the shortfall of the known scores exceeds what the mean may lack,
    sum(1 - s) > n (1 - target), and passes once the known scores alone reach n * target.
    The sums are exact rationals: a verdict never hangs on the order of the seeds.

    Attributes:
        target: mean score to reach. It and the scores are taken as the decimal numbers that
            they print as, so that a mean exactly at the target passes.
        seeds: number of seeds n; the seeds are 0 … n - 1.
    """

    target: float
    seeds: int

    @cached_property
    def _wanted(self) -> Fraction:
        return self.seeds * _decimal(self.target)

    def _known(self, scores: Mapping[int, float]) -> list[float]:
        return [scores[seed] for seed in range(self.seeds) if seed in scores]

    def verdict(self, scores: Mapping[int, float]) -> Verdict | None:
        """Pass or fail if certain, whatever the missing seeds score; else None."""
        known = self._known(scores)
        total = sum(map(_decimal, known), Fraction())
        if total >= self._wanted:
            return "pass"
        if total + (self.seeds - len(known)) < self._wanted:
            return "fail"
        return None

    def is_complete(self, scores: Mapping[int, float]) -> bool:
        """Whether every seed has a score."""
        return len(self._known(scores)) == self.seeds

    def mean(self, scores: Mapping[int, float]) -> float:
        """Mean score of the seeds that are known."""
        known = self._known(scores)
        return math.fsum(known) / len(known)

    def next_wave(self, scores: Mapping[int, float], complete: bool = False) -> tuple[int, ...]:
        """Seeds to train next, together; empty once the verdict is known.

        Two seeds settle most failing probes. If the known ones pass, the rest go together;
        if they do not, three more, then the rest.

        Args:
            complete: go on until every seed has a score.
        """
        missing = [seed for seed in range(self.seeds) if seed not in scores]
        if not missing or (not complete and self.verdict(scores) is not None):
            return ()
        known = self.seeds - len(missing)
        promising = known >= 2 and self.mean(scores) >= self.target
        if complete or promising or known >= 5:
            return tuple(missing)
        return tuple(missing[: 2 - known if known < 2 else 5 - known])

    def needed(self, scores: Mapping[int, float], complete: bool = False) -> dict[int, float]:
        """Those of the scores that the waves of this test would have run, and no more.

        Other studies, or speculation, may have trained more seeds of a probe than its verdict
        takes; what is reported must not hang on that.
        """
        run: dict[int, float] = {}
        while wave := self.next_wave(run, complete):
            known = {seed: scores[seed] for seed in wave if seed in scores}
            run |= known
            if len(known) < len(wave):
                break
        return run

    def interval(self, scores: Mapping[int, float]) -> tuple[float, float] | None:
        """95 % t-interval of the mean over the known seeds (App. A.2); None below two seeds."""
        known = self._known(scores)
        n = len(known)
        if n < 2:
            return None
        if min(known) == max(known):
            return known[0], known[0]
        mean = math.fsum(known) / n
        spread = math.sqrt(math.fsum((s - mean) ** 2 for s in known) / (n - 1) / n)
        half = float(stats.t.ppf(0.975, n - 1)) * spread
        return mean - half, mean + half

    def explain(self, scores: Mapping[int, float]) -> str:
        """The inequality behind the verdict, in words."""
        known = self._known(scores)
        spared = self.seeds - len(known)
        if not known:
            return "no seed has run"
        mean = self.mean(scores)
        verdict = self.verdict(scores)
        if not spared:
            sign = "≥" if verdict == "pass" else "<"
            return f"mean {mean:.4f} {sign} {self.target} over all {self.seeds} seeds"
        if verdict == "fail":
            lost = math.fsum(1 - s for s in known)
            allowed = self.seeds * (1 - self.target)
            return (
                f"{len(known)} seeds lack {lost:.4f} > {allowed:.4g} = n(1 - target): "
                f"the other {spared} cannot save the mean"
            )
        if verdict == "pass":
            return f"{len(known)} seeds already sum to n * target; the other {spared} are spared"
        return f"mean {mean:.4f} over {len(known)} of {self.seeds} seeds: undecided"


@lru_cache(maxsize=100_000)
def _decimal(value: float) -> Fraction:
    """The decimal number that a float prints as, exactly."""
    return Fraction(repr(float(value)))
