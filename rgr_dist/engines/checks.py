"""When a run stops: it has converged (App. A.1, Sec. 7.2), has diverged, or is at its step limit.

The randomness of a run does not depend on its limit, so a run at a smaller limit is the beginning
of one at a larger limit. ``Checks`` says what training at the larger limit shows about both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

from rgr_dist.study.cell import Cell

StopReason = Literal["converged", "max_steps", "diverged"]


class Checks:
    """The checks of one training on its way through several step limits (App. A.1).

    A run is checked every ``check_every`` steps, of which limits are multiples, and at its own
    limit. A micro-F1 stops it once ``patience`` checks in a row were above ``stop_score``. An error
    (Sec. 7.2: same interval and patience) stops it once that many checks in a row did not improve
    on the best one before them by more than ``tolerance`` times that best. A record may say
    that a check without an error stops it; the transformer never stops early.

    Args:
        cell: the run's cell, whose step limit is the last of the limits.
        budgets: the smaller limits, increasing.

    Attributes:
        limits: those at which the run has not ended yet.
    """

    def __init__(self, cell: Cell, budgets: Sequence[int] = ()) -> None:
        self.cell, self.limits = cell, [*budgets, cell.training.max_steps]
        self.in_a_row, self.best = 0, math.inf

    def steps_to_next(self, steps: int) -> int:
        """How many steps remain, after ``steps`` of them, until the next check."""
        every = self.cell.training.check_every
        return min(every - steps % every, self.limits[0] - steps)

    def above(self, steps: int) -> float | None:
        """A check need not compute a score that is certainly not above this; if None, it must."""
        needs_score = steps == self.limits[0] or self.cell.record.minimised
        return None if needs_score else self.cell.training.stop_score

    def after(self, steps: int, val_score: float | None) -> list[StopReason]:
        """Record a check, and find the limits at which it ends the run.

        Args:
            val_score: None if it is certainly not above ``above``, not finite if the run diverged.

        Returns:
            Why the run ends: a reason for each limit at which this check ends it, the smallest
            limit first; empty if it goes on. These limits are removed from ``limits``.
        """
        reasons: list[StopReason] = []
        if val_score is not None and not math.isfinite(val_score):
            reasons = ["diverged"] * len(self.limits)
        elif self._has_converged(val_score):
            reasons = ["converged"] * len(self.limits)
        elif steps == self.limits[0]:
            reasons = ["max_steps"]
        del self.limits[: len(reasons)]
        return reasons

    def _has_converged(self, val_score: float | None) -> bool:
        training, record = self.cell.training, self.cell.record
        if not record.stops_early:
            return False
        if record.stops_when_perfect:
            return val_score == 1
        if record.minimised:
            assert val_score is not None
            counts = val_score >= self.best * (1 - training.tolerance)
            self.best = self.best if counts else val_score
        else:
            counts = val_score is not None and val_score > training.stop_score
        self.in_a_row = self.in_a_row + 1 if counts else 0
        return self.in_a_row == training.patience


def worst(order: list[int], score: Callable[[int], float | None]) -> float | None:
    """The lowest score of some relations; None once one of them is certainly not high enough.

    Args:
        order: the relations in the order in which they are asked: one that stops a check is moved
            to its front.
        score: of a relation; None if it is certainly not high enough.
    """
    scores = []
    for r in order:
        found = score(r)
        if found is None:
            order.remove(r)
            order.insert(0, r)
            return None
        scores.append(found)
    return min(scores)
