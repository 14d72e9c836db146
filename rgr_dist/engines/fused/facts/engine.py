"""Compiled training of model ``facts``: one lane at a time, in the cache of a core."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from threading import Lock

from rgr_dist.engines.api import BlockWeights, Outcome
from rgr_dist.engines.early_stopping import Checks
from rgr_dist.engines.facts_outcome import facts_outcome
from rgr_dist.engines.fused.engine import CompiledEngine
from rgr_dist.engines.fused.facts.lane import FactsLane
from rgr_dist.study.cell import Cell, Run
from rgr_dist.study.database import Function
from rgr_dist.study.training import Training

_compiling = Lock()
_compiled: list[bool] = []


def compile_kernels() -> None:
    """Compile or load the kernels, unless this process has done so already."""
    with _compiling:
        if not _compiled:
            database = Function(family="function", keys=2, queries=2, values=2)
            brief = Training(max_steps=1, check_every=1)
            cell = Cell(model="facts", m=4, d_model=2, database=database, training=brief)
            _train(Run(cell=cell, h=1, d_k=1, d_vo=1, seed=0), ())
            _compiled.append(True)


def _train(run: Run, budgets: Sequence[int]) -> list[Outcome]:
    started = time.perf_counter()
    lane, checks = FactsLane(run), Checks(run.cell, budgets)
    outcomes: list[Outcome] = []
    while checks.limits:
        lane.advance(checks.steps_to_next(lane.steps))
        diverged = not lane.is_finite()
        accuracies = {} if diverged else lane.accuracies()
        score = accuracies.get(run.cell.facts.score)
        stop_reason, ends = checks.after(lane.steps, score, diverged)
        if stop_reason is None:
            continue
        if diverged:
            outcome = Outcome(None, None, None, lane.steps, stop_reason, seconds=0.0)
        else:
            weights = lane.weights()
            outcome = facts_outcome(lane.task, run, weights, accuracies, lane.steps, stop_reason)
        seconds = time.perf_counter() - started
        outcomes += [replace(outcome, seconds=seconds)] * ends
    return outcomes


class FactsEngine(CompiledEngine[BlockWeights]):
    """Trains each lane until each triple is right."""

    def train_lane(self, run: Run, budgets: Sequence[int] = ()) -> list[Outcome]:
        """Train a run until it stops: its outcome at each budget and at its end."""
        compile_kernels()
        return _train(run, budgets)

    def weights_of(self, run: Run, steps: int) -> BlockWeights:
        """The weights of a run after so many steps, without checks or stopping."""
        lane = FactsLane(run)
        lane.advance(steps)
        return lane.weights()
