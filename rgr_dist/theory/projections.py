"""Alternating projections: a construction that is exact where people train.

The template fixes signatures and hopes for little leakage. Here the leakage is part of the
problem. With X = U Σ Vᵀ, the scores that a head of width d_k can give are exactly the matrices
U Â Uᵀ with Â of rank at most d_k. Projecting T onto them has a closed form: Uᵀ T U, cut to its d_k
largest singular values. Correct scores are a simple set too: some head reaches 1 on each edge,
and every head stays at ``CEILING`` or below on every other pair. Projecting onto this set is
clipping; an edge is raised in the head in which it is highest, which assigns the edges to heads.
The two projections alternate until every edge is above every other pair. Steps are over-relaxed
and extrapolated, as is usual for projections.

There is no network, no sampled context and no learning rate. But the method is iterative, and
projecting onto a convex set is a gradient step on the squared distance to it. What sets it apart
from training is that it sees all m² pairs at once and ends with a proof: all of them are right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from rgr_dist.problem.graphs import Neighbours
from rgr_dist.problem.streams import Stream
from rgr_dist.theory.layer import Built, FloatArray, Layer
from rgr_dist.theory.matchings import Ints, edges_of

CEILING = 0.9
"""Highest score of a non-edge, where an edge has 1: a lower one costs width, a higher one time."""
RELAXATION, MOMENTUM = 1.9, 0.92
"""Multiple of each projection's change that is taken, and of the last change that is added."""
LEAST_GAP = 1e-4
"""Least gap between edges' and other pairs' scores at which to stop, far above rounding errors."""
SCORES_AT_ONCE = 2**22
"""Most scores in one block of rows, which bounds memory."""

Float32Array = npt.NDArray[np.float32]


def project(
    X: FloatArray, graph: Neighbours, h: int, d_k: int, stream: Stream, max_iterations: int = 1000
) -> Built:
    """Alternate projections until all m² pairs are right, or the iterations run out.

    An iteration costs 2 m² D_K multiply-adds and never holds the scores of more than one head. If
    they run out, the layer is that of the last iteration. Its tau is half-way between the lowest
    edge and the highest other pair, or 1 below the lowest edge if every pair is an edge.

    Args:
        stream: draws the head in which each edge starts.

    >>> from rgr_dist.study.cell import Cell
    >>> from rgr_dist.theory.construct import problem_of
    >>> problem = problem_of(Cell(m=32, d_model=8), seed=0)
    >>> built = project(problem.X, problem.graph, h=4, d_k=4, stream=problem.stream("heads"))
    >>> built.layer.W_Q.shape, built.iterations < 1000
    ((8, 16), True)
    """
    basis, to_model = _orthonormal(X)
    problem = _Pairs(basis, edges_of(graph))
    owner = stream.permutation(problem.sources.size) % h
    heads = [_Head.of(problem.sum_over(np.flatnonzero(owner == k), 1.0), d_k) for k in range(h)]
    ahead = [(head.query, head.key) for head in heads]
    iteration, low, high = 0, -np.inf, np.inf
    while iteration < max_iterations:
        iteration += 1
        changes, low, high = problem.clip(ahead)
        before, heads = heads, []
        for k, head in enumerate(before):
            query, key = ahead[k]
            heads.append(_Head.of(query @ key.T + RELAXATION * changes[k], d_k))
            ahead[k] = heads[k].beyond(head, MOMENTUM)
        if low > high:  # true of the extrapolated heads, twice as wide: check those that are kept
            low, high = problem.extremes([(head.query, head.key) for head in heads])
            if low - high >= LEAST_GAP:
                break
    else:
        low, high = problem.extremes([(head.query, head.key) for head in heads])
    W_Q = to_model @ np.concatenate([head.query for head in heads], axis=1)
    W_K = to_model @ np.concatenate([head.key for head in heads], axis=1)
    tau = low - 1 if high == -np.inf else (low + high) / 2  # no other pair
    return Built(Layer(W_Q, W_K, h, tau), iteration)


Factors = tuple[Float32Array, Float32Array]
"""Query and key vectors whose products are a head's matrix, each [rank of X, width]."""


@dataclass(frozen=True)
class _Head:
    """A matrix Â = query · keyᵀ of rank d_k at most; both factors are [rank of X, d_k]."""

    query: Float32Array
    key: Float32Array

    @classmethod
    def of(cls, A: Float32Array, d_k: int) -> _Head:
        """The nearest matrix of rank d_k: A projected onto the leading eigenvectors of A Aᵀ.

        A d_k above the rank of X only adds columns of zeros.
        """
        leading = np.linalg.eigh(A @ A.T)[1][:, ::-1][:, :d_k]
        query, key = np.zeros((2, len(A), d_k), A.dtype)
        query[:, : leading.shape[1]], key[:, : leading.shape[1]] = leading, A.T @ leading
        return cls(query, key)

    def beyond(self, before: _Head, momentum: float) -> Factors:
        """Factors of self + momentum · (self - before), whose width is 2 d_k."""
        query = np.concatenate([(1 + momentum) * self.query, -momentum * before.query], axis=1)
        return query.astype(np.float32), np.concatenate([self.key, before.key], axis=1)


class _Pairs:
    """The scores of all pairs, and their projection onto correct scores."""

    def __init__(self, basis: Float32Array, edges: Ints) -> None:
        self.U = basis
        self.sources, self.targets = edges.T
        self.rows = max(1, SCORES_AT_ONCE // len(basis))

    def clip(self, heads: Sequence[Factors]) -> tuple[list[Float32Array], float, float]:
        """How each head's matrix has to change for the scores to be correct, on the basis U.

        Returns:
            Uᵀ (clipped - scores) U of each head; the lowest score of an edge, and the highest of
            any other pair.
        """
        on_edges = self._edge_scores(heads)
        owner, best = on_edges.argmax(axis=0), on_edges.max(axis=0)
        changes, highest = [], -np.inf
        for k, head in enumerate(heads):
            own = np.flatnonzero((owner == k) & (best < 1))
            change = self.sum_over(own, 1 - best[own])
            for first, scores in self._score_rows(head):
                highest = max(highest, float(scores.max()))
                above = np.flatnonzero(scores > CEILING)
                excess = CEILING - scores.ravel()[above]
                ends = np.searchsorted(above, np.arange(len(scores) + 1) * len(self.U))
                shape = (len(scores), len(self.U))
                clipped = csr_array((excess, above % len(self.U), ends), shape=shape)
                change += self.U[first : first + len(scores)].T @ (clipped @ self.U)
            changes.append(change)
        return changes, float(best.min(initial=np.inf)), highest

    def extremes(self, heads: Sequence[Factors]) -> tuple[float, float]:
        """The lowest score of an edge, and the highest of any other pair."""
        low = float(self._edge_scores(heads).max(axis=0).min(initial=np.inf))
        return low, max(float(S.max()) for head in heads for _, S in self._score_rows(head))

    def sum_over(self, edges: Ints, weight: Float32Array | float) -> Float32Array:
        """Σ weight u_i u_jᵀ over some edges (i, j), [rank, rank]."""
        sources = self.U[self.sources[edges]].T * np.float32(weight)
        total: Float32Array = sources @ self.U[self.targets[edges]]
        return total

    def _edge_scores(self, heads: Sequence[Factors]) -> Float32Array:
        """Scores of the edges in each head, [h, m']."""
        return np.stack(
            [
                ((self.U @ query)[self.sources] * (self.U @ key)[self.targets]).sum(axis=1)
                for query, key in heads
            ]
        )

    def _score_rows(self, head: Factors) -> Iterator[tuple[int, Float32Array]]:
        """A head's scores, a block of sources at a time; those of edges are minus infinity."""
        Q, K = (self.U @ factor for factor in head)
        m = len(self.U)
        for first in range(0, m, self.rows):
            scores = Q[first : first + self.rows] @ K.T
            own = slice(*np.searchsorted(self.sources, [first, first + self.rows]))
            scores[self.sources[own] - first, self.targets[own]] = -np.inf
            yield first, scores


def _orthonormal(X: FloatArray) -> tuple[Float32Array, npt.NDArray[np.float64]]:
    """U of X = U Σ Vᵀ, [m, rank], and V Σ⁻¹, which maps X to U."""
    U, s, Vt = np.linalg.svd(X.astype(np.float64), full_matrices=False)
    rank = int((s > s[0] * 1e-6).sum())
    return U[:, :rank].astype(np.float32), Vt[:rank].T / s[:rank]
