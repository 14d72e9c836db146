"""When a run stops before its last step: the rule of App. A.1, and its like for an error."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rgr_dist.study.study import Cell


@dataclass
class EarlyStop:
    """What the checks of one run have shown so far.

    A micro-F1 stops a run once ``patience`` checks in a row were above ``stop_score``. An error
    (Sec. 7.2: same interval and patience) stops it once so many in a row were no better than
    the best before them; better is less by more than ``tolerance`` times the best.
    """

    cell: Cell
    in_a_row: int = 0
    best: float = math.inf

    @property
    def above(self) -> float | None:
        """A check need not tell a score that is certainly not above this; None: it must."""
        return None if self.cell.minimised else self.cell.training.stop_score

    def after(self, val_score: float | None) -> bool:
        """Whether to stop after this check; None is a score that is not above ``above``."""
        training = self.cell.training
        if self.cell.minimised:
            assert val_score is not None
            counts = val_score >= self.best * (1 - training.tolerance)
            if not counts:
                self.best = val_score
        else:
            counts = val_score is not None and val_score > training.stop_score
        self.in_a_row = self.in_a_row + 1 if counts else 0
        return self.in_a_row == training.patience
