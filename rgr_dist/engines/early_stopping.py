"""When a run stops: it has converged (App. A.1, Sec. 7.2), or has no prospect of passing.

The randomness of a run does not depend on its limit, so a run at a smaller limit is the beginning
of one at a larger limit. ``Checks`` says what training at the larger limit shows about both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from rgr_dist.engines.api import StopReason
from rgr_dist.study.cell import Cell

FEWEST_CHECKS, FEWEST_STEPS = 10, 0.1
"""The fewest checks, and share of its step limit, after which a run may be given up."""


@dataclass
class EarlyStop:
    """What the checks of one run have shown so far, and whether they stop it (App. A.1).

    A micro-F1 stops a run once ``patience`` checks in a row were above ``stop_score``. An error
    (Sec. 7.2: same interval and patience) stops it once that many checks in a row did not improve
    on the best one before them by more than ``tolerance`` times that best. A layer of facts stops
    once every asked triple is right; the transformer never stops early.
    """

    cell: Cell
    in_a_row: int = 0
    best: float = math.inf
    scores: tuple[float, ...] = ()
    is_promising: bool = False

    @property
    def above(self) -> float | None:
        """A check need not compute a score that is certainly not above this; if None, it must."""
        training = self.cell.training
        may_be_given_up = training.give_up_below is not None and not self.is_promising
        needs_score = self.cell.record.minimised or may_be_given_up
        return None if needs_score else training.stop_score

    def after(self, val_score: float | None) -> bool:
        """Whether to stop after this check; a score of None is one that is not above ``above``."""
        training, record = self.cell.training, self.cell.record
        if not record.stops_early:
            return False
        if record.stops_when_perfect:
            return val_score == 1
        if record.minimised:
            assert val_score is not None
            counts = val_score >= self.best * (1 - training.tolerance)
            if not counts:
                self.best = val_score
        else:
            counts = val_score is not None and val_score > training.stop_score
        if training.give_up_below is not None and val_score is not None:
            self.scores += (val_score,)
            self.is_promising |= val_score >= training.give_up_below
        self.in_a_row = self.in_a_row + 1 if counts else 0
        return self.in_a_row == training.patience

    def is_hopeless(self, limit: int) -> bool:
        """Whether the score, always below ``give_up_below``, would stay there up to a step limit.

        This assumes that the score keeps rising as it did from the second quarter of the checks to
        the last. Most curves flatten, so it overestimates. Not in the paper. A run that is hopeless
        at one limit is hopeless at every smaller one.
        """
        training, checks = self.cell.training, len(self.scores)
        if training.give_up_below is None or self.is_promising:
            return False
        if checks < max(FEWEST_CHECKS, FEWEST_STEPS * limit / training.check_every):
            return False
        quarter = checks // 4
        before, lately = fmean(self.scores[quarter : 2 * quarter]), fmean(self.scores[-quarter:])
        rise = max(0.0, lately - before) / (checks - 2 * quarter)
        left = limit / training.check_every - (checks - (quarter - 1) / 2)
        return lately + rise * left < training.give_up_below


class Checks:
    """The checks of one training on its way through several step limits.

    A run is checked every ``check_every`` steps and at its limit. If a limit is not a multiple of
    that interval, a longer run has no check there, so this check leaves no trace in it.

    Args:
        cell: the run's cell, whose step limit is the last of the limits.
        budgets: the smaller limits, increasing.
    """

    def __init__(self, cell: Cell, budgets: Sequence[int] = ()) -> None:
        self.every = cell.training.check_every
        self.limits = [*budgets, cell.training.max_steps]
        self.stop = EarlyStop(cell)

    def steps_to_next(self, steps: int) -> int:
        """How many steps remain, after ``steps`` of them, until the next check."""
        return min(self.every - steps % self.every, self.limits[0] - steps)

    def above(self, steps: int) -> float | None:
        """A check need not compute a score that is certainly not above this; if None, it must."""
        return None if steps == self.limits[0] else self.stop.above

    def is_due(self, steps: int) -> bool:
        """Whether the run is checked after ``steps`` steps."""
        return steps % self.every == 0 or steps == self.limits[0]

    def after(self, steps: int, val_score: float | None) -> list[StopReason]:
        """Record a check, and find the limits at which it ends the run.

        Args:
            val_score: None if it is certainly not above ``above``, not finite if the run diverged.

        Returns:
            Why the run ends: a reason for each limit at which this check ends it, the smallest
            limit first; empty if it goes on. These limits are removed from ``limits``.
        """
        is_regular = steps % self.every == 0
        stop = self.stop if is_regular else replace(self.stop)
        ended: StopReason | None = None
        if val_score is not None and not math.isfinite(val_score):
            ended = "diverged"
        elif stop.after(val_score):
            ended = "converged"
        if ended is not None:
            reasons = [ended] * (len(self.limits) if is_regular else 1)
        else:
            reasons = ["max_steps"] if steps == self.limits[0] else []
            if is_regular:
                reasons += ["given_up"] * sum(map(stop.is_hopeless, self.limits[len(reasons) :]))
        del self.limits[: len(reasons)]
        return reasons
