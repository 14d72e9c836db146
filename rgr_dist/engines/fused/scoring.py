"""Micro-F1 of a lane over a set of contexts, at a small share of the time of training.

Where the items are few, each pair of them is scored once and counts as often as it occurs,
source by source. Where they are many, each context is scored by itself. A check that asks only
whether the score is above a value begins with the sources, or contexts, that were wrong the
last time, and ends as soon as the answer is no.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rgr_dist.engines.fused.kernels import (
    count_in_contexts,
    count_in_pairs,
    count_pairs,
    project_items,
)
from rgr_dist.engines.fused.lane import Lane, padded, zeros
from rgr_dist.engines.fused.pieces import FloatArray
from rgr_dist.engines.fused.tiles import WIDTH
from rgr_dist.problem.contexts import edges_within

Ints = npt.NDArray[np.int64]
Bound = tuple[int, float]


class Scorer:
    """Scores one lane over one set of contexts.

    Args:
        contexts: int32 [n, l].
        by_pairs: whether to score pairs of items rather than contexts, which gives the same
            score; if None, wherever there are no more of them, and a pair has one score in
            every context.

    Attributes:
        errors: wrong pairs of each source, or of each context, at the last look.
    """

    def __init__(
        self, lane: Lane, contexts: npt.NDArray[np.int32], by_pairs: bool | None = None
    ) -> None:
        (n, length), m = contexts.shape, lane.run.cell.m
        if by_pairs is None:
            by_pairs = lane.run.cell.model == "max" and m * m <= n * length * length
        self.errors: Ints = np.zeros(m if by_pairs else n, dtype=np.int64)
        self.parts = (_Sources if by_pairs else _Contexts)(lane, contexts, self.errors)
        self.actual = self.parts.actual

    def score(self, above: float | None = None) -> float | None:
        """Micro-F1, or None if it is certainly not above a value."""
        order = np.argsort(-self.errors, kind="stable")
        tally: Ints = np.zeros(3, dtype=np.int64)
        bound = (self.actual, -1.0 if above is None else above)
        if not self.parts.count(order, tally, bound):
            return None
        true_positives, predicted, _ = tally.tolist()
        edges = predicted + self.actual
        return 2 * true_positives / edges if edges else 1.0


class _Sources:
    """Pairs of items by their source, each counted as often as the contexts hold it."""

    def __init__(self, lane: Lane, contexts: npt.NDArray[np.int32], errors: Ints) -> None:
        self.lane, self.errors = lane, errors
        m, E, M = lane.run.cell.m, lane.sizes.E, padded(lane.run.cell.m, WIDTH)
        M += WIDTH * (1 - M // WIDTH % 2)  # rows of an odd number of cache lines share no sets
        self.sizes = lane.sizes._replace(length=m, L=M)
        self.items_t, self.P = zeros(E, M), zeros(lane.sizes.C, M)
        self.items_t.reshape(E, M)[:, :m] = lane.items.reshape(-1, E)[:m].T
        self.scores, self.winner = zeros(lane.sizes.L, M), zeros(lane.sizes.L, M)
        self.times = zeros(m, M)
        count_pairs(contexts, M, self.times)
        edges = lane.task.graph.sources.astype(np.int64) * M + lane.task.targets
        self.actual = int(self.times[edges].sum(dtype=np.float64))
        self.times[edges] *= -1

    def count(self, order: Ints, tally: Ints, bound: Bound) -> bool:
        """Count edges; False if it ended early."""
        lane = self.lane
        complete: bool = count_in_pairs(
            lane.theta,
            lane.scratch,
            lane.sizes,
            lane.items,
            self.sizes,
            self.items_t,
            self.P,
            order,
            self.scores,
            self.winner,
            self.times,
            self.errors,
            tally,
            bound,
        )
        return complete


class _Contexts:
    """Contexts one by one: the first few are projected alone, for the others all items."""

    def __init__(self, lane: Lane, contexts: npt.NDArray[np.int32], errors: Ints) -> None:
        self.lane, self.contexts, self.errors = lane, contexts, errors
        self.table = zeros(lane.items.size // lane.sizes.E, lane.sizes.T)
        self.actual = int(edges_within(contexts, lane.task.graph).sum())

    def count(self, order: Ints, tally: Ints, bound: Bound) -> bool:
        """Count edges; False if it ended early."""
        lane = self.lane
        # Alone as long as that is no more work than to project all items.
        few = 0 if bound[1] < 0 else lane.run.cell.m // lane.sizes.length
        if not self._count(order[:few], self.table[:0], tally, bound):
            return False
        if few < len(order):
            project_items(lane.theta, lane.scratch, lane.sizes, lane.items, self.table)
        return self._count(order[few:], self.table, tally, bound)

    def _count(self, some: Ints, table: FloatArray, tally: Ints, bound: Bound) -> bool:
        lane = self.lane
        complete: bool = count_in_contexts(
            lane.theta,
            lane.scratch,
            lane.sizes,
            lane.items,
            lane.graph,
            self.contexts,
            table,
            some,
            self.errors,
            tally,
            bound,
        )
        return complete
