"""Compiled training on the CPU: one lane at a time, its whole state in cache."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from threading import Lock

from rgr_dist.engines.api import Outcome, StopReason, Weights
from rgr_dist.engines.early_stopping import Checks
from rgr_dist.engines.fused.evaluation import make_scorer
from rgr_dist.engines.fused.lane import Lane
from rgr_dist.engines.fused.side_by_side import SideBySide
from rgr_dist.study.cell import Cell, Run
from rgr_dist.study.families import Permutation, Regular
from rgr_dist.study.training import Training


def compile_for(run: Run) -> None:
    """Compile or load what runs of its kind need, unless this process has done so already."""
    kind = run.cell.model, run.cell.graph.balanced
    with _compiling:
        if kind in _compiled:
            return
        for contexts in FEW, MANY:
            brief = Training(
                max_steps=2, check_every=1, validation_contexts=contexts, test_contexts=contexts
            )
            graph = Regular(degree=2) if run.cell.graph.balanced else Permutation()
            cell = Cell(model=run.cell.model, m=32, d_model=8, graph=graph, training=brief)
            _train(Run(cell=cell, h=2, d_k=2, seed=0))
        _compiled.add(kind)


FEW, MANY = 2, 100
"""Contexts of 32 items: scored one by one if few, and by pairs or triples of items if many."""
_compiling = Lock()
_compiled: set[tuple[str, bool]] = set()


def _train(run: Run, budgets: Sequence[int] = ()) -> list[Outcome]:
    started = time.perf_counter()
    lane, checks = Lane(run), Checks(run.cell, budgets)
    validation = make_scorer(lane, lane.task.validation, often=True)
    outcomes: list[Outcome] = []
    while checks.limits:
        lane.advance(checks.steps_to_next(lane.steps))
        val_score, diverged = None, not lane.is_finite()
        if not diverged:
            val_score = validation.score(checks.above(lane.steps))
            diverged = val_score is not None and not math.isfinite(val_score)
        stop_reason, ends = checks.after(lane.steps, val_score, diverged)
        if stop_reason is not None:
            outcome = _outcome(lane, stop_reason, val_score)
            seconds = time.perf_counter() - started
            outcomes += [replace(outcome, seconds=seconds)] * ends
    return outcomes


def _outcome(lane: Lane, stop_reason: StopReason, val_score: float | None) -> Outcome:
    """How a lane ended, tested unless it diverged."""
    if stop_reason == "diverged":
        return Outcome(None, None, None, lane.steps, stop_reason, seconds=0.0)
    return Outcome(
        score=make_scorer(lane, lane.task.test).score(),
        val_score=val_score,
        tau=float(lane.theta.tau[0]) if lane.run.cell.record.has_tau else None,
        steps=lane.steps,
        stop_reason=stop_reason,
        seconds=0.0,
    )


class FusedEngine(SideBySide[Weights]):
    """Trains each lane until it stops early or at its limit, and tests it."""

    def train_lane(self, run: Run, budgets: Sequence[int] = ()) -> list[Outcome]:
        """Train a run until it stops, and test it at each budget and at its end."""
        compile_for(run)
        return _train(run, budgets)

    def weights_of(self, run: Run, steps: int) -> Weights:
        """The weights of a run after so many steps, without checks or stopping."""
        lane = Lane(run)
        lane.advance(steps)
        return lane.weights()
