"""One bracket: what is known of the threshold on an axis, and where to probe next."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isqrt

from rgr_dist.search.probe_verdict import Verdict


@dataclass(frozen=True)
class Bracket:
    """The largest failing and smallest passing value of an axis.

    Attributes:
        axis: the values, positive integers in increasing order.
        below: how many of them, from the smallest on, are known to fail.
        above: position of the smallest value known to pass; None when none is.
        passes: passes in a row since the last fail; the more, the faster to walk down.
    """

    axis: Sequence[int]
    below: int = 0
    above: int | None = None
    passes: int = 0

    @property
    def low(self) -> int:
        """The largest value known to fail; 0 when none is."""
        return self.axis[self.below - 1] if self.below else 0

    @property
    def high(self) -> int | None:
        """The smallest value known to pass; None when none is."""
        return None if self.above is None else self.axis[self.above]

    def tell(self, value: int, verdict: Verdict) -> Bracket:
        """The bracket after a probe strictly inside it.

        Raises:
            ValueError: the value is outside the bracket or not on the axis: it could tell nothing.
        """
        index = bisect_left(self.axis, value)
        end = len(self.axis) if self.above is None else self.above
        if not self.below <= index < end or self.axis[index] != value:
            bound = self.high or self.axis[-1]
            raise ValueError(f"{value} is not inside ({self.low}, {bound}) on the axis")
        if verdict == "pass":
            return replace(self, above=index, passes=self.passes + 1)
        return replace(self, below=index + 1, passes=0)

    @property
    def is_closed(self) -> bool:
        """Whether the threshold is known: a pass with the fail, or nothing, just below it."""
        return self.above == self.below

    @property
    def is_exhausted(self) -> bool:
        """Whether the largest allowed value failed: the threshold is censored."""
        return self.below == len(self.axis)

    def at_most(self, value: float) -> int:
        """The largest value of the axis that is at most this one; 0 when none is."""
        index = bisect_right(self.axis, value)
        return self.axis[index - 1] if index else 0

    def nearest(self, value: float) -> int:
        """The value of the axis nearest to this one."""
        index = bisect_left(self.axis, value)
        around = self.axis[max(0, index - 1) : index + 1]
        return min(around, key=lambda candidate: (abs(candidate - value), candidate))

    def halve(self) -> int:
        """The value with half of the possible thresholds at or below it.

        All open values count as equally likely; while none passes yet, so does having no threshold.
        """
        end = len(self.axis) if self.above is None else self.above
        return self.axis[min(self.below + (end - self.below) // 2, end - 1)]

    def middle(self, spread: float = 1.5) -> int:
        """Where to probe inside a bracket that holds a pass.

        With no fail below the pass, walk down in growing steps: by ``spread``, by 2, by 4.
        Between a fail and a pass, take the geometric mean if they lie far apart, else the middle.
        """
        if self.above is None or self.is_closed:
            raise ValueError(f"nothing to bisect in {self}")
        high = self.axis[self.above]
        if self.below == 0:
            down = (spread, 2.0, 4.0)[min(max(self.passes, 1), 3) - 1]
            index = bisect_right(self.axis, high / down) - 1
        elif high > 2 * self.low:
            index = bisect_left(self.axis, isqrt(self.low * high))
        else:
            index = (self.below + self.above - 1) // 2
        return self.axis[min(max(index, self.below), self.above - 1)]
