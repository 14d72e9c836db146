"""Compiled training on the CPU: one lane at a time, its whole state in cache.

A lane is fast by itself, and its numbers cannot depend on others: lanes are spread over
threads, and one thread trains a lane from start to end.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Lock
from typing import TypeVar

from rgr_dist.engines.api import Outcome, StopReason, Weights
from rgr_dist.engines.early_stopping import EarlyStop
from rgr_dist.engines.fused.evaluation import make_scorer
from rgr_dist.engines.fused.lane import Lane
from rgr_dist.study.families import Permutation, Regular
from rgr_dist.study.study import Cell, Run, Training

Result = TypeVar("Result")


def train_lane(run: Run) -> Outcome:
    """Train a run until it stops, and test it; ``seconds`` is its own time, without compiling."""
    compile_for(run)
    return _train_lane(run)


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
            _train_lane(Run(cell=cell, h=2, d_k=2, seed=0))
        _compiled.add(kind)


FEW, MANY = 2, 100
"""Contexts of 32 items: scored one by one if few, and by pairs or triples of items if many."""
_compiling = Lock()
_compiled: set[tuple[str, bool]] = set()


def _train_lane(run: Run) -> Outcome:
    started = time.perf_counter()
    lane, training = Lane(run), run.cell.training
    validation = make_scorer(lane, lane.task.validation, often=True)
    stop = EarlyStop(run.cell)
    stop_reason: StopReason = "max_steps"
    score = val_score = tau = None
    while lane.steps < training.max_steps:
        lane.advance(min(training.check_every, training.max_steps - lane.steps))
        if not lane.is_finite():
            stop_reason, val_score = "diverged", None
            break
        last = lane.steps == training.max_steps
        val_score = validation.score(above=None if last else stop.above)
        if val_score is not None and not math.isfinite(val_score):
            stop_reason, val_score = "diverged", None
            break
        if stop.after(val_score):
            stop_reason = "converged"
            break
    del validation  # makes room for the test's
    if stop_reason != "diverged":
        score = make_scorer(lane, lane.task.test).score()
        tau = float(lane.theta.tau[0]) if run.cell.record.has_tau else None
    return Outcome(
        score=score,
        val_score=val_score,
        tau=tau,
        steps=lane.steps,
        stop_reason=stop_reason,
        seconds=time.perf_counter() - started,
    )


def _weights_after(run: Run, steps: int) -> Weights:
    lane = Lane(run)
    lane.advance(steps)
    return lane.weights()


class FusedEngine:
    """Trains each lane by itself, in compiled code, on so many threads."""

    name = "fused"

    def __init__(self, threads: int = 1) -> None:
        if threads < 1:
            raise ValueError(f"threads: {threads}; give at least 1")
        self.threads = threads

    def train(self, runs: Sequence[Run]) -> list[Outcome]:
        """Train every run until it stops, test it, and return the outcomes in order."""
        outcomes = self._map(train_lane, runs)
        side_by_side = max(1, min(self.threads, len(runs)))
        return [replace(outcome, seconds=outcome.seconds / side_by_side) for outcome in outcomes]

    def weights_after(self, runs: Sequence[Run], steps: int) -> list[Weights]:
        """The weights after so many steps, without checks or stopping."""
        return self._map(lambda run: _weights_after(run, steps), runs)

    def _map(self, work: Callable[[Run], Result], runs: Sequence[Run]) -> list[Result]:
        if self.threads == 1 or len(runs) < 2:
            return [work(run) for run in runs]
        with ThreadPoolExecutor(min(self.threads, len(runs))) as threads:
            return list(threads.map(work, runs))
