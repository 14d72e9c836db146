"""Compiled training on the CPU: one lane at a time, its whole state in cache."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Lock
from typing import Generic, TypeVar

from rgr_dist.engines.api import BlockWeights, Outcome, StopReason, Weights
from rgr_dist.engines.early_stopping import Checks
from rgr_dist.engines.fused.evaluation import make_scorer
from rgr_dist.engines.fused.lane import Lane
from rgr_dist.study.cell import Cell, Run
from rgr_dist.study.families import Permutation, Regular
from rgr_dist.study.training import Training

Result = TypeVar("Result")
W = TypeVar("W", Weights, BlockWeights)


class CompiledEngine(ABC, Generic[W]):
    """Trains each lane by itself, in compiled code, on so many threads."""

    name = "fused"

    def __init__(self, threads: int = 1) -> None:
        if threads < 1:
            raise ValueError(f"threads: {threads}; give at least 1")
        self.threads = threads

    @abstractmethod
    def train_lane(self, run: Run, budgets: Sequence[int] = ()) -> list[Outcome]:
        """Train a run until it stops: its outcome at each budget and at its end.

        ``seconds`` is its own time, without compiling.
        """

    @abstractmethod
    def weights_of(self, run: Run, steps: int) -> W:
        """The weights of a run after so many steps, without checks or stopping."""

    def train(self, runs: Sequence[Run]) -> list[Outcome]:
        """Train every run until it stops, test it, and return the outcomes in order."""
        return [outcome for (outcome,) in self.train_through(runs, ())]

    def train_through(self, runs: Sequence[Run], budgets: Sequence[int]) -> list[list[Outcome]]:
        """Train every run, and tell how it would have ended at smaller step limits too.

        The seconds of each are its share of the time that threads share.
        """
        ends = self._map(lambda run: self.train_lane(run, budgets), runs)
        at_once = max(1, min(self.threads, len(runs)))
        return [
            [replace(outcome, seconds=outcome.seconds / at_once) for outcome in outcomes]
            for outcomes in ends
        ]

    def weights_after(self, runs: Sequence[Run], steps: int) -> list[W]:
        """The weights after so many steps, without checks or stopping."""
        return self._map(lambda run: self.weights_of(run, steps), runs)

    def _map(self, work: Callable[[Run], Result], runs: Sequence[Run]) -> list[Result]:
        if self.threads == 1 or len(runs) < 2:
            return [work(run) for run in runs]
        with ThreadPoolExecutor(min(self.threads, len(runs))) as pool:
            return list(pool.map(work, runs))


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


class FusedEngine(CompiledEngine[Weights]):
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
