"""When a run stops because it has converged (App. A.1, Sec. 7.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rgr_dist.study.study import Cell


@dataclass
class EarlyStop:
    """What the checks of one run have shown so far, and whether they stop it (App. A.1).

    A micro-F1 stops a run once ``patience`` checks in a row were above ``stop_score``. An error
    (Sec. 7.2: same interval and patience) stops it once that many checks in a row did not improve
    on the best one before them by more than ``tolerance`` times that best.
    """

    cell: Cell
    in_a_row: int = 0
    best: float = math.inf

    @property
    def above(self) -> float | None:
        """A check may skip a score that is certainly not above this; None: it must give it."""
        return None if self.cell.record.minimised else self.cell.training.stop_score

    def after(self, val_score: float | None) -> bool:
        """Whether to stop after this check; None is a score that is not above ``above``."""
        training = self.cell.training
        if self.cell.record.minimised:
            assert val_score is not None
            counts = val_score >= self.best * (1 - training.tolerance)
            if not counts:
                self.best = val_score
        else:
            counts = val_score is not None and val_score > training.stop_score
        self.in_a_row = self.in_a_row + 1 if counts else 0
        return self.in_a_row == training.patience
