"""What counts of pairs say of a recovered graph."""

from __future__ import annotations

from rgr_dist.models.f1 import micro_f1


class Recovery:
    """True positives, predicted and actual edges, and what follows from them."""

    tp: int
    predicted: int
    actual: int

    @property
    def failed_pairs(self) -> int:
        """Missed edges and false ones."""
        return self.predicted + self.actual - 2 * self.tp

    @property
    def exact(self) -> bool:
        """Whether every pair is right."""
        return self.failed_pairs == 0

    @property
    def f1(self) -> float:
        """Micro-F1 over the pairs."""
        return micro_f1(self.tp, self.predicted, self.actual)
