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
from rgr_dist.study.cell import Cell
from rgr_dist.study.families import Permutation, Regular
from rgr_dist.study.run import Run
from rgr_dist.study.training import Training


class FusedEngine(Engine):
    """Trains one lane after another, each until it stops early or at its limit."""

    name = "fused"

    def train_through(self, runs: Sequence[Run], budgets: Sequence[int]) -> list[list[Outcome]]:
        """Train every run, and also report how it would have ended at smaller step limits."""
        return [train_lane(run, budgets) for run in runs]

    def weights_after(self, runs: Sequence[Run], steps: int) -> list[Weights]:
        """The weights after ``steps`` steps, without checks or early stopping."""
        lanes = [LANES[run.cell.record.task](run) for run in runs]
        for lane in lanes:
            lane.advance(steps)
        return [lane.weights() for lane in lanes]


class EdgeLane(Lane):
    """A lane of model ``max``, ``softmax`` or ``value``, with its checks and its test."""

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        # A reference cycle would keep the weights of ended runs until garbage collection.
        self.validation = make_scorer(weakref.proxy(self), self.task.validation, often=True)

    def check(self, above: float | None) -> float | None:
        """The score over validation contexts, or None if it is certainly not above ``above``."""
        return self.validation.score(above)

    def outcome(self, stop_reason: StopReason, val_score: float | None) -> Outcome:
        """How the lane ended, with its test score but without its ``seconds``."""
        return Outcome(
            steps=self.steps,
            stop_reason=stop_reason,
            score=make_scorer(self, self.task.test).score(),
            val_score=val_score,
            tau=float(self.theta.tau[0]) if self.run.cell.record.has_tau else None,
        )

    @staticmethod
    def brief_runs(run: Run) -> list[Run]:
        """Short runs that use every kernel that a run of this model and kind of graph uses."""
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
"""Contexts that, with 32 items in all, are scored one by one, or by pairs or triples of items."""
LANES: Mapping[str, type[EdgeLane | FactsLane | BlockLane]] = {
    "edges": EdgeLane,
    "facts": FactsLane,
    "matching": BlockLane,
}
"""Lanes by the task of the run's model."""
_compiled: set[tuple[str, bool]] = set()


def train_lane(run: Run, budgets: Sequence[int] = ()) -> list[Outcome]:
    """Train a run until it stops; returns its outcome at each budget and at its own limit.

    ``seconds`` does not include the time to compile, which happens here first if necessary.
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
