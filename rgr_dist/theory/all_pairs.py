"""A layer scored on all m² ordered pairs of items, the diagonal included.

Under max over heads this covers every context of every length: a pair's score does not depend on
the other items (monotonicity under context restriction, Sec. 4).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rgr_dist.models.f1 import micro_f1
from rgr_dist.problem.graphs import Neighbours
from rgr_dist.theory.layer import FloatArray, Layer


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


def score_all_pairs(layer: Layer, X: FloatArray, graph: Neighbours) -> Recovery:
    """Score a layer on all pairs at its tau, in double precision.

    >>> layer = Layer(np.eye(2), np.array([[0.0, 1.0], [1.0, 0.0]]), h=1, tau=0.5)
    >>> swapped = Neighbours.of_edges(2, np.array([[0, 1], [1, 0]]))
    >>> found = score_all_pairs(layer, np.eye(2), swapped)
    >>> found.exact, found.margin
    (True, 0.5)
    """
    Q, K = (X.astype(np.float64) @ W.astype(np.float64) for W in (layer.W_Q, layer.W_K))
    scores, edges = np.full((len(X), len(X)), -np.inf), graph.matrix
    for k in range(layer.h):
        columns = slice(k * layer.d_k, (k + 1) * layer.d_k)
        np.maximum(scores, Q[:, columns] @ K[:, columns].T, out=scores)
    called = scores > layer.tau
    lowest, highest = scores[edges].min(initial=np.inf), scores[~edges].max(initial=-np.inf)
    margin = float(min(lowest - layer.tau, layer.tau - highest))
    return Recovery(int((called & edges).sum()), int(called.sum()), int(edges.sum()), margin)
