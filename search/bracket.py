"""One bracket: what is known of the threshold on an integer axis, and where to probe next."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isqrt

from search.protocol import Verdict


@dataclass(frozen=True)
class Bracket:
    """The largest failing and smallest passing value of a search from 1 to ``limit``.

    Attributes:
        low: the largest value known to fail; 0 when none is.
        high: the smallest value known to pass; None when none is.
        passes: passes in a row since the last fail: how fast to walk down.
    """

    limit: int
    low: int = 0
    high: int | None = None
    passes: int = 0

    def tell(self, value: int, verdict: Verdict) -> Bracket:
        """The bracket after a probe strictly inside it.

        Raises:
            ValueError: the value lies outside, so it could tell nothing.
        """
        inside = self.low < value <= self.limit and (self.high is None or value < self.high)
        if not inside:
            raise ValueError(f"{value} is not inside ({self.low}, {self.high or self.limit})")
        if verdict == "pass":
            return replace(self, high=value, passes=self.passes + 1)
        return replace(self, low=value, passes=0)

    @property
    def is_closed(self) -> bool:
        """Whether the threshold is known: a pass with the fail, or nothing, just below it."""
        return self.high is not None and self.high == self.low + 1

    @property
    def is_exhausted(self) -> bool:
        """Whether the largest allowed value failed: the threshold is censored."""
        return self.high is None and self.low == self.limit

    def middle(self) -> int:
        """Where to probe inside a bracket that holds a pass.

        Walking down from a pass with no fail below, the steps grow: 2/3, 1/2, 1/4 of the last.
        Between a fail and a pass: the geometric mean if they lie far apart, else the mean.
        """
        if self.high is None or self.is_closed:
            raise ValueError(f"nothing to bisect in {self}")
        if self.low == 0:
            down = (self.high * 2 // 3, self.high // 2, self.high // 4)[min(self.passes, 3) - 1]
            return max(1, down)
        if self.high > 2 * self.low:
            return max(self.low + 1, isqrt(self.low * self.high))
        return (self.low + self.high) // 2
