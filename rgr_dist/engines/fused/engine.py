"""Compiled training on the CPU: one lane at a time, its whole state in cache."""

from __future__ import annotations

import math
import weakref
from collections.abc import Mapping

from rgr_dist.engines import api
from rgr_dist.engines.api import LaneEngine, Outcome
from rgr_dist.engines.checks import StopReason
from rgr_dist.engines.fused.block.lane import BlockLane
from rgr_dist.engines.fused.evaluation import make_scorer
from rgr_dist.engines.fused.lane import Lane
from rgr_dist.study.run import Run


class EdgeLane(Lane):
    """A lane of model ``max``, ``softmax`` or ``value``, with its checks and its test."""

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        # A reference cycle would keep the weights of ended runs until garbage collection.
        self.validation = make_scorer(weakref.proxy(self), self.task.validation)

    def check(self, above: float | None) -> float | None:
        """The score over validation contexts, or None if it is certainly not above ``above``."""
        return self.validation.score(above) if self.is_finite() else math.nan

    def outcome(self, stop_reason: StopReason, val_score: float | None) -> Outcome:
        """How the lane ended, with its test score but without its ``seconds``."""
        return Outcome(
            steps=self.steps,
            stop_reason=stop_reason,
            score=make_scorer(self, self.task.test).score(),
            val_score=val_score,
            tau=float(self.theta.tau[0]) if self.run.cell.record.has_tau else None,
        )


ACCELERATED: Mapping[str, type[EdgeLane | BlockLane]] = {
    "max": EdgeLane,
    "softmax": EdgeLane,
    "value": EdgeLane,
    "transformer": BlockLane,
}
"""The lanes of the models that have kernels."""


class FusedEngine(LaneEngine):
    """Trains the paper's models by kernels of their own."""

    name = "fused"

    def lane(self, run: Run) -> api.Lane:
        """A lane at the start of a run."""
        return ACCELERATED[run.cell.model](run)
