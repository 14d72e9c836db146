"""Scores a lane over a set of contexts, in a small share of the time of training.

Micro-F1: where the items are few, each pair of them is scored once and counts as often as it
occurs, source by source; where they are many, each context is scored by itself. A check that
only asks whether F1 exceeds a value begins with the sources, or contexts, that had the most
errors last time, and ends as soon as the answer is no.

Mean squared error of retrieved messages (Sec. 7.2): contexts are scored one by one. Every check
needs the error itself, so none ends early.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

from rgr_dist.engines.fused.evaluation_kernels import (
    AllItems,
    count_in_contexts,
    count_in_pairs,
    count_pairs,
    error_in_contexts,
    project_items,
)
from rgr_dist.engines.fused.lane import Lane
from rgr_dist.engines.fused.simd import WIDTH, padded
from rgr_dist.engines.fused.simd_memory import FloatArray, zeros
from rgr_dist.models.f1 import micro_f1
from rgr_dist.problem.contexts import edges_within

Contexts = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]
Bound = tuple[int, float]


def make_scorer(lane: Lane, contexts: Contexts) -> F1Scorer | ErrorByContexts:
    """The fastest scorer for the lane's model and these contexts.

    Args:
        contexts: int32 [n, l].
    """
    (n, length), m, model = contexts.shape, lane.run.cell.m, lane.run.cell.record
    if model.loss == "messages":
        return ErrorByContexts(lane, contexts)
    # The softmax of a pair depends on its context.
    by_pairs = model.scores_pairs and m * m <= n * length * length
    return (F1ByPairs if by_pairs else F1ByContexts)(lane, contexts)


class F1Scorer(ABC):
    """Micro-F1, counted over units in any order; a unit is a source with its pairs, or a context.

    Attributes:
        actual: edges in all contexts.
        errors: wrong pairs of each unit when it was last counted.
    """

    def __init__(self, lane: Lane, units: int, actual: int) -> None:
        self.lane, self.actual = lane, actual
        self.errors: Ints = np.zeros(units, dtype=np.int64)

    def score(self, above: float | None = None) -> float | None:
        """Micro-F1, or None if it is certainly not above ``above``."""
        order = np.argsort(-self.errors, kind="stable")
        counts: Ints = np.zeros(3, dtype=np.int64)
        if not self._count(order, counts, (self.actual, -1.0 if above is None else above)):
            return None
        tp, predicted, _ = counts.tolist()
        return micro_f1(tp, predicted, self.actual)

    @abstractmethod
    def _count(self, order: Ints, counts: Ints, bound: Bound) -> bool:
        """Add to true positives, predicted edges and errors; returns False if it ended early."""


class F1ByPairs(F1Scorer):
    """Micro-F1 from pairs of items, by source, each counted as often as the contexts hold it."""

    def __init__(self, lane: Lane, contexts: Contexts) -> None:
        m, M = lane.run.cell.m, padded(lane.run.cell.m, WIDTH)
        M += WIDTH * (1 - M // WIDTH % 2)  # rows of an odd number of cache lines share no sets
        self.every = _all_items(lane, M, lane.sizes.L)
        self.times = zeros(m, M)
        count_pairs(contexts, M, self.times)
        edges = lane.task.graph.sources.astype(np.int64) * M + lane.task.targets
        super().__init__(lane, m, int(self.times[edges].sum(dtype=np.float64)))
        self.times[edges] *= -1

    def _count(self, order: Ints, counts: Ints, bound: Bound) -> bool:
        E, m = self.lane.sizes.E, self.lane.run.cell.m
        items = self.lane.arrays.items.reshape(-1, E)[:m]
        self.every.X_t.reshape(E, -1)[:, :m] = items.T
        complete: bool = count_in_pairs(
            self.lane.arrays, self.every, self.times, order, self.errors, counts, bound
        )
        return complete


class F1ByContexts(F1Scorer):
    """Micro-F1 from contexts one by one; after the first few, all items are projected at once."""

    def __init__(self, lane: Lane, contexts: Contexts) -> None:
        self.contexts, self.table = contexts, _new_table(lane)
        super().__init__(lane, len(contexts), int(edges_within(contexts, lane.task.graph).sum()))

    def _count(self, order: Ints, counts: Ints, bound: Bound) -> bool:
        lane = self.lane
        # They are projected alone while that is no more work than projecting all items.
        few = 0 if bound[1] < 0 else lane.run.cell.m // lane.sizes.length
        if not self._count_some(order[:few], self.table[:0], counts, bound):
            return False
        if few < len(order):
            project_items(lane.arrays, self.table)
        return self._count_some(order[few:], self.table, counts, bound)

    def _count_some(self, some: Ints, table: FloatArray, counts: Ints, bound: Bound) -> bool:
        complete: bool = count_in_contexts(
            self.lane.arrays, self.contexts, table, some, self.errors, counts, bound
        )
        return complete


class ErrorByContexts:
    """Mean squared error summed over contexts."""

    def __init__(self, lane: Lane, contexts: Contexts) -> None:
        self.lane, self.contexts, self.table = lane, contexts, _new_table(lane)
        self.retrievals = int(edges_within(contexts, lane.task.graph).sum())

    def score(self, above: float | None = None) -> float:
        """Mean squared error over the retrieved messages; 0.0 if there are none."""
        arrays, targets = self.lane.arrays, self.lane.task.targets
        project_items(arrays, self.table)
        error = error_in_contexts(arrays, targets, self.contexts, self.table)
        return float(error) / max(1, self.retrievals)


def _all_items(lane: Lane, M: int, sources: int) -> AllItems:
    """Room to score ``sources`` sources at once with all m items, padded to M."""
    sizes = lane.sizes._replace(length=lane.run.cell.m, L=M)
    E, C = lane.sizes.E, lane.sizes.C
    return AllItems(sizes, zeros(E, M), zeros(C, M), zeros(sources, M), zeros(sources, M))


def _new_table(lane: Lane) -> FloatArray:
    """Room for the queries and keys of all items."""
    return zeros(lane.arrays.items.size // lane.sizes.E, lane.sizes.T)
