"""A layer scored on all m² ordered pairs of items, the diagonal included.

Under max over heads this covers every context of every length: a pair's score does not depend on
the other items (monotonicity under context restriction, Sec. 4). It serves trained and constructed
weights alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rgr_dist.models.f1 import micro_f1
from rgr_dist.problem.graphs import Neighbours
from rgr_dist.theory.layer import FloatArray, Layer

SCORES_AT_ONCE = 2**21
"""Most scores in one block of rows: bounds memory and does not change the result."""

Float64Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Recovery:
    """How well a graph is recovered, by counts of pairs.

    Attributes:
        tp, predicted, actual: numbers of true positives, predicted edges and actual edges.
        margin: least distance of a score from tau, in units of the score; distances on the wrong
            side of tau count as negative.
    """

    tp: int
    predicted: int
    actual: int
    margin: float

    @property
    def failed_pairs(self) -> int:
        """Number of missed and of false edges together."""
        return self.predicted + self.actual - 2 * self.tp

    @property
    def exact(self) -> bool:
        """Whether every pair is right."""
        return self.failed_pairs == 0

    @property
    def f1(self) -> float:
        """Micro-F1 over the pairs."""
        return micro_f1(self.tp, self.predicted, self.actual)


def score_rows(layer: Layer, X: FloatArray) -> Iterator[tuple[int, Float64Array]]:
    """The scores of all pairs, a block of sources at a time: its first source, and [rows, m].

    Only one head's block is held in memory in addition to the maximum.
    """
    m, d_k = len(X), layer.d_k
    Q, K = (X.astype(np.float64) @ W.astype(np.float64) for W in (layer.W_Q, layer.W_K))
    rows = max(1, SCORES_AT_ONCE // m)
    for first in range(0, m, rows):
        scores = np.full((min(rows, m - first), m), -np.inf)
        for k in range(layer.h):
            columns = slice(k * d_k, (k + 1) * d_k)
            np.maximum(scores, Q[first : first + rows, columns] @ K[:, columns].T, out=scores)
        yield first, scores


def score_all_pairs(layer: Layer, X: FloatArray, graph: Neighbours) -> Recovery:
    """Score a layer on all pairs at its tau.

    >>> layer = Layer(np.eye(2), np.array([[0.0, 1.0], [1.0, 0.0]]), h=1, tau=0.5)
    >>> swapped = Neighbours.of_edges(2, np.array([[0, 1], [1, 0]]))
    >>> found = score_all_pairs(layer, np.eye(2), swapped)
    >>> found.exact, found.margin
    (True, 0.5)
    """
    tp = predicted = 0
    lowest, highest = np.inf, -np.inf
    for first, scores in score_rows(layer, X):
        sources, targets = _edges_in(graph, first, len(scores))
        on_edges = scores[sources, targets]
        tp += int((on_edges > layer.tau).sum())
        predicted += int((scores > layer.tau).sum())
        lowest = min(lowest, on_edges.min(initial=np.inf))
        scores[sources, targets] = -np.inf
        highest = max(highest, scores.max())
    margin = float(min(lowest - layer.tau, layer.tau - highest))
    return Recovery(tp, predicted, graph.targets.size, margin)


def _edges_in(graph: Neighbours, first: int, rows: int) -> tuple[Ints, Ints]:
    """Source, counted from ``first``, and target of each edge that leaves a block of sources."""
    within = slice(graph.starts[first], graph.starts[first + rows])
    degrees = np.diff(graph.starts[first : first + rows + 1])
    return np.repeat(np.arange(rows), degrees), graph.targets[within].astype(np.int64)
