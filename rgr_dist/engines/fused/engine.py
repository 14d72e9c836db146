"""Compiled training on the CPU: one lane at a time, its whole state in cache."""

from __future__ import annotations

import math
import weakref
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from rgr_dist.engines import api
from rgr_dist.engines.api import LaneEngine, Outcome, Weights, mean
from rgr_dist.engines.checks import StopReason, worst
from rgr_dist.engines.fused.block.lane import BlockLane
from rgr_dist.engines.fused.embeddings import LEAST_NORM, Embeddings, train_shared
from rgr_dist.engines.fused.evaluation import make_scorer
from rgr_dist.engines.fused.lane import BLOCK, Lane
from rgr_dist.engines.fused.simd_memory import zeros
from rgr_dist.engines.fused.step import Parameters
from rgr_dist.engines.schedule import adamw_factors
from rgr_dist.study.run import Run


class EdgeLane(Lane):
    """A lane of model ``max``, ``softmax`` or ``value``, with its checks and its test."""

    def __init__(self, run: Run, relation: int = 0) -> None:
        super().__init__(run, relation)
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


class SharedLane(api.Lane):
    """A lane of relations that share an embedding, which is trained.

    Attributes:
        relations: a lane for each, with its checks and its test; their arrays are parts of this
            lane's, and all have the same workspace and items.
        theta: their parameters, a row for each.
    """

    def __init__(self, run: Run) -> None:
        count, m = run.cell.training.relations, run.cell.m
        self.run, self.steps, self.order = run, 0, [*range(count)]
        self.relations = [EdgeLane(run, relation) for relation in range(count)]
        first = self.relations[0]
        shapes = [(count, part.size) for part in first.theta]
        self.theta = Parameters(*(zeros(*shape).reshape(shape) for shape in shapes))
        for r, lane in enumerate(self.relations):
            own = Parameters(*(rows[r] for rows in self.theta))
            own.W[:] = lane.theta.W
            lane.theta, lane.workspace = own, first.workspace
            lane.arrays = first.arrays._replace(theta=own, graph=lane.arrays.graph)
        self.targets = np.stack([lane.task.targets for lane in self.relations])
        items, E = first.arrays.items, first.sizes.E
        rows = items.reshape(-1, E)[:m]
        buffers = [zeros(*shape) for shape in [(m, E)] * 4 + [(m,), (first.sizes.L, E)]]
        self.E = Embeddings(*buffers)
        self.E.E[:] = rows.ravel()
        self.E.scale[:] = 1 / np.maximum(np.linalg.norm(rows, axis=1), LEAST_NORM)
        rows *= self.E.scale[:, np.newaxis]

    def advance(self, steps: int) -> None:
        """Take ``steps`` training steps."""
        training, end = self.run.cell.training, self.steps + steps
        while self.steps < end:
            count = min(max(64, BLOCK // len(self.relations)), end - self.steps)
            tasks = [lane.task for lane in self.relations]
            train_shared(
                self.relations[0].arrays,
                self.theta,
                self.targets,
                self.E,
                np.stack([task.training_contexts(self.steps, count) for task in tasks]),
                training.sharpness,
                *adamw_factors(training, self.steps, count)[:2].astype(np.float32),
            )
            self.steps += count

    def check(self, above: float | None) -> float | None:
        """The score of the worst relation over its validation contexts."""
        if not all(np.isfinite(part).all() for part in (self.theta.W, self.theta.tau, self.E.E)):
            return math.nan
        return worst(self.order, lambda r: self.relations[r].validation.score(above))

    def outcome(self, stop_reason: StopReason, val_score: float | None) -> Outcome:
        """How the lane ended, with the mean of the test scores."""
        outcomes = [lane.outcome(stop_reason, val_score) for lane in self.relations]
        return replace(mean(outcomes), steps=self.steps)

    def weights(self) -> Weights:
        """A copy of the weights; those of the relations side by side."""
        each = [lane.weights() for lane in self.relations]
        E = self.E.E.reshape(self.run.cell.m, -1)[:, : self.run.cell.d_model].copy()
        return {"E": E, **{name: np.stack([own[name] for own in each]) for name in each[0]}}


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
        if run.cell.training.embeddings == "trained":
            return SharedLane(run)
        return ACCELERATED[run.cell.model](run)
