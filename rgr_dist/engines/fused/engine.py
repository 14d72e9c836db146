"""Compiled training on the CPU: one lane at a time, its whole state in cache."""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace

from rgr_dist.engines.api import Engine, Outcome, StopReason, Weights
from rgr_dist.engines.early_stopping import Checks
from rgr_dist.engines.fused.block.lane import BlockLane
from rgr_dist.engines.fused.evaluation import make_scorer
from rgr_dist.engines.fused.facts.lane import FactsLane
from rgr_dist.engines.fused.lane import Lane
from rgr_dist.study.cell import Cell, Run
from rgr_dist.study.families import Permutation, Regular
from rgr_dist.study.training import Training


class FusedEngine(Engine):
    """Trains one lane after another, each until it stops early or at its limit."""

    name = "fused"

    def train_through(self, runs: Sequence[Run], budgets: Sequence[int]) -> list[list[Outcome]]:
        """Train every run, and say how it would have ended at smaller step limits too."""
        return [train_lane(run, budgets) for run in runs]

    def weights_after(self, runs: Sequence[Run], steps: int) -> list[Weights]:
        """The weights after so many steps, without checks or stopping."""
        lanes = [LANES[run.cell.record.task](run) for run in runs]
        for lane in lanes:
            lane.advance(steps)
        return [lane.weights() for lane in lanes]


class EdgeLane(Lane):
    """A lane of model ``max``, ``softmax`` or ``value``, with its checks and its test."""

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        # A cycle of references would keep the weights of ended runs until Python looks for such.
        self.validation = make_scorer(weakref.proxy(self), self.task.validation, often=True)

    def check(self, above: float | None) -> float | None:
        """The score over the validation contexts, or None if it certainly is not above."""
        return self.validation.score(above)

    def outcome(self, stop_reason: StopReason, val_score: float | None) -> Outcome:
        """How the lane ended, tested, but for its ``seconds``."""
        return Outcome(
            steps=self.steps,
            stop_reason=stop_reason,
            score=make_scorer(self, self.task.test).score(),
            val_score=val_score,
            tau=float(self.theta.tau[0]) if self.run.cell.record.has_tau else None,
        )

    @staticmethod
    def brief_runs(run: Run) -> list[Run]:
        """Short runs that need every kernel that a run of this model and kind of graph does."""
        graph = Regular(degree=2) if run.cell.graph.balanced else Permutation()
        runs = []
        for contexts in FEW, MANY:
            brief = Training(
                max_steps=2, check_every=1, validation_contexts=contexts, test_contexts=contexts
            )
            cell = Cell(model=run.cell.model, m=32, d_model=8, graph=graph, training=brief)
            runs.append(Run(cell=cell, h=2, d_k=2, seed=0))
        return runs


FEW, MANY = 2, 100
"""Contexts of 32 items: scored one by one if few, and by pairs or triples of items if many."""
LANES: Mapping[str, type[EdgeLane | FactsLane | BlockLane]] = {
    "edges": EdgeLane,
    "facts": FactsLane,
    "matching": BlockLane,
}
"""By the task of the run's model."""
_compiled: set[tuple[str, bool]] = set()


def train_lane(run: Run, budgets: Sequence[int] = ()) -> list[Outcome]:
    """Train a run until it stops: its outcome at each budget and at its end.

    ``seconds`` is its own time, without that of compiling, which is done here if need be.
    """
    kind = run.cell.model, run.cell.graph.balanced
    if kind not in _compiled:
        for brief in LANES[run.cell.record.task].brief_runs(run):
            _train(brief)
        _compiled.add(kind)
    return _train(run, budgets)


def _train(run: Run, budgets: Sequence[int] = ()) -> list[Outcome]:
    started = time.perf_counter()
    lane, checks = LANES[run.cell.record.task](run), Checks(run.cell, budgets)
    outcomes: list[Outcome] = []
    while checks.limits:
        lane.advance(checks.steps_to_next(lane.steps))
        above = checks.above(lane.steps)
        val_score = lane.check(above) if lane.is_finite() else math.nan
        reasons = checks.after(lane.steps, val_score)
        if not reasons:
            continue
        outcome = Outcome(steps=lane.steps, stop_reason=reasons[0])
        if reasons[0] != "diverged":
            outcome = lane.outcome(reasons[0], val_score)
        seconds = time.perf_counter() - started
        outcomes += [replace(outcome, stop_reason=why, seconds=seconds) for why in reasons]
    return outcomes
