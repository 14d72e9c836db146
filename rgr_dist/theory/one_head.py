"""Whether one head can hold a graph: weights that do, or a proof that no weights do.

A head as wide as its embeddings scores a pair by x_iᵀ W x_j with any W. So it classifies pairs
linearly, by the d_model² entries of W and tau. Exactly one of two statements is true (Gordan):

- some W and tau score every edge above tau, and every other pair below it;
- some weights lambda on the pairs, none negative and not all zero, have
  sum lambda y (x_i x_jᵀ, -1) = 0, where y is 1 on an edge and -1 elsewhere.

The squared hinge loss over all m² pairs decides between them. If it falls to zero, its minimiser
gives W and tau of the first. If not, its gradient vanishes at the minimum, and the amounts by which
pairs fall short of their margin give lambda of the second. Neither is taken on trust: weights are
scored on every pair, and a certificate is verified in floating point with bounds on all rounding
errors, or in fractions if it is small and spans fewer dimensions than it has rows.

A narrower head has fewer matrices W to choose from, so what is impossible here is impossible for
one head at any width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cholesky
from scipy.optimize import minimize

from rgr_dist.problem.graphs import Neighbours
from rgr_dist.theory.all_pairs import score_all_pairs
from rgr_dist.theory.layer import FloatArray, Layer

Float64Array = npt.NDArray[np.float64]

ROUNDS = 6
"""Rounds of the minimisation, each from where the last one stopped."""
OPTIONS = {"maxiter": 2000, "maxfun": 4000, "maxcor": 30, "ftol": 0.0, "gtol": 1e-9}
"""Options of each round, for scipy's L-BFGS-B."""
CLOSE = 1e-6
"""Largest residual of a certificate, as a share of the sum of its weights, for entries up to 1."""
FAINT = 1e-9
"""Share of the largest weight below which a weight is set to zero."""
PAIRS_AT_ONCE = 512
"""Pairs whose products are held at once."""
UNIT = 2.0**-53
"""Largest relative error of one operation in double precision."""
MOST_FRACTIONS = 5000
"""Entries of the largest matrix that is solved in fractions, which takes about a second."""


@dataclass(frozen=True)
class OneHead:
    """What was found for a graph and embedding: a layer, a certificate, or neither.

    Attributes:
        nearest: the head where the minimisation ended: d_k = d_model, |W_Q W_Kᵀ| = 1 (Frobenius).
        margin: least distance of its scores from tau if it is right on every pair, else None.
        certificate: lambda [m, m], which sums to 1; None if there is a layer or nothing was proved.
        residual: an upper bound on |sum lambda y (x_i x_jᵀ, -1)|, small enough that some weights
            near lambda, all positive, make the sum exactly zero; None without a certificate.
    """

    nearest: Layer
    margin: float | None = None
    certificate: Float64Array | None = None
    residual: float | None = None

    @property
    def layer(self) -> Layer | None:
        """The head if it is right on every pair, else None."""
        return None if self.margin is None else self.nearest

    @property
    def separable(self) -> bool | None:
        """Whether one head can hold the graph; None if neither was proved."""
        return None if self.layer is None and self.certificate is None else self.layer is not None


def decide(embedding: FloatArray, graph: Neighbours) -> OneHead:
    """Find weights of one head that hold a graph, or prove that there are none.

    Args:
        embedding: rows x_i, [m, d_model].

    Returns:
        A layer or a certificate. Neither if the loss has not settled, as can happen right at the
        boundary between the two, or if the certificate is for rows in fewer than d_model dimensions
        and too large for fractions.

    On a line, one head cannot send three items around in a circle; in the plane, it can.

    >>> circle = Neighbours.of_edges(3, np.array([[0, 1], [1, 2], [2, 0]]))
    >>> decide(np.array([[-1.0], [0.0], [1.0]]), circle).separable
    False
    >>> angles = 2 * np.pi * np.arange(3) / 3
    >>> decide(np.column_stack([np.cos(angles), np.sin(angles)]), circle).separable
    True
    """
    X: Float64Array = embedding.astype(np.float64)
    basis, scales, directions = np.linalg.svd(X, full_matrices=False)
    y = np.where(graph.matrix, 1.0, -1.0)
    rank = int((scales > scales[0] * len(X) * UNIT).sum())
    basis, to_weights = basis[:, :rank], directions[:rank].T / scales[:rank]
    found = np.zeros(rank * rank + 1)
    for _ in range(ROUNDS):
        result = minimize(
            _squared_hinge,
            found,
            args=(basis, y),
            jac=True,
            method="L-BFGS-B",
            options=OPTIONS,
        )
        found = result.x
        W = to_weights @ found[:-1].reshape(rank, rank) @ to_weights.T
        nearest = _layer(W, float(found[-1]))
        margin = _margin(nearest, X, graph)
        if margin is not None:
            return OneHead(nearest, margin)
        lacks = np.maximum(0.0, 1.0 - y * _scores(found, basis))
        lacks[lacks < FAINT * lacks.max()] = 0.0
        residual = certificate_residual(X, graph, lacks)
        if residual is not None:
            certificate = lacks / lacks.sum()
            return OneHead(nearest, None, certificate, residual / float(lacks.sum()))
    return OneHead(nearest)


def certificate_residual(
    X: Float64Array, graph: Neighbours, certificate: Float64Array
) -> float | None:
    """Verify that one head cannot hold a graph, however the certificate was found.

    With A the matrix whose columns are y (x_i x_jᵀ, -1) and D = diag(lambda), let
    r = A lambda. If the smallest singular value of A D exceeds |r|, some u with |u| < 1 has
    A D u = -r, so that lambda (1 + u) is positive and its sum is zero exactly. Both sides are
    bounded with all their rounding errors: |r| from above (Higham, Accuracy and Stability of
    Numerical Algorithms, Sec. 3.5), the singular value from below by a Cholesky factorisation that
    runs to its end (Rump, Verification of positive definiteness, 2006). Only the columns of the
    largest weights are used, twice as many as there are rows. If A D has dependent rows, as it may
    with few items, u is solved for in fractions.

    Args:
        X: embeddings [m, d_model], taken as exact.
        certificate: weights [m, m], with any positive sum.

    Returns:
        The bound on |r|; None if these weights prove nothing, or if it is above ``CLOSE``.
    """
    total = float(certificate.sum())
    if not (np.isfinite(certificate).all() and certificate.min() >= 0 and total > 0):
        return None
    used = np.ix_(certificate.any(axis=1), certificate.any(axis=0))
    left, right = (_coordinates(X[items.ravel()]) for items in used)
    weights = certificate[used]
    signed = np.where(graph.matrix[used], weights, -weights)
    operations = _gamma(sum(weights.shape) + 4)
    rounding = np.linalg.norm(np.abs(left).T @ weights @ np.abs(right)) * operations
    gap = math.hypot(np.linalg.norm(left.T @ signed @ right), math.fsum(signed.ravel()))
    bound = 1.001 * (gap + float(rounding))
    if bound > CLOSE * total * max(1.0, np.abs(left).max() * np.abs(right).max()):
        return None
    is_near = _least_singular_value_exceeds(bound, left, right, weights)
    return bound if is_near or _is_near_in_fractions(left, right, signed) else None


def _coordinates(rows: Float64Array) -> Float64Array:
    """The rows, or as many unit vectors if there are no more rows than columns.

    A sum over pairs that is zero for unit vectors is zero for any vectors.
    """
    return rows if len(rows) > rows.shape[1] else np.eye(len(rows))


def _least_singular_value_exceeds(
    bound: float, left: Float64Array, right: Float64Array, weights: Float64Array
) -> bool:
    """Whether that of A D certainly exceeds the bound, by its columns with the largest weights."""
    rows = left.shape[1] * right.shape[1] + 1
    chosen = np.argsort(weights, axis=None)[::-1][: 2 * rows]
    gram = np.zeros((rows, rows))
    for first in range(0, len(chosen), PAIRS_AT_ONCE):
        columns = _columns(left, right, weights, chosen[first : first + PAIRS_AT_ONCE])
        gram += columns.T @ columns
    slack = float(np.trace(gram)) * (_gamma(len(chosen) + 8) + 4 * _gamma(rows + 2))
    gram.flat[:: rows + 1] -= 1.001 * (bound * bound + slack)
    try:
        cholesky(gram, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return False
    return True


def _is_near_in_fractions(left: Float64Array, right: Float64Array, signed: Float64Array) -> bool:
    """Whether some |u| < 1 has A D u = -r exactly; False if A D is too large for fractions.

    u is the shortest solution, (A D)ᵀ z with A D (A D)ᵀ z = -r. Elimination finds z: it skips rows
    that depend on others, since r depends on them in the same way.
    """
    pairs = np.flatnonzero(signed)
    if (left.shape[1] * right.shape[1] + 1) * len(pairs) > MOST_FRACTIONS:
        return False
    exact: Any = np.frompyfunc(Fraction, 1, 1)
    columns = _columns(exact(left), exact(right), exact(signed), pairs)
    system = np.column_stack([columns.T @ columns, -columns.sum(axis=0)])
    free, pivots = [*range(len(system))], dict[int, int]()
    for unknown in range(len(system)):
        pivot = next((row for row in free if system[row, unknown]), None)
        if pivot is None:
            continue
        free.remove(pivot)
        pivots[unknown] = pivot
        system[pivot] /= system[pivot, unknown]
        others = np.arange(len(system)) != pivot
        system[others] -= np.outer(system[others, unknown], system[pivot])
    z = [system[pivots[at], -1] if at in pivots else 0 for at in range(len(system))]
    return bool((abs(columns @ np.array(z, dtype=object)) < 1).all())


def _layer(W: Float64Array, tau: float) -> Layer:
    norm = float(np.linalg.norm(W))
    scale = norm if 0 < norm < math.inf else 1.0
    return Layer(W / scale, np.eye(len(W)), 1, tau / scale)


def _margin(layer: Layer, X: Float64Array, graph: Neighbours) -> float | None:
    """The margin of a head if it is right on every pair by more than rounding errors, else None."""
    scored, d_model = score_all_pairs(layer, X, graph), X.shape[1]
    lengths = np.linalg.norm(X, axis=1).max()
    doubt = _gamma(4 * d_model) * d_model * float(lengths) ** 2
    return scored.margin if scored.exact and scored.margin > doubt else None


def _squared_hinge(
    values: Float64Array, basis: Float64Array, y: Float64Array
) -> tuple[float, Float64Array]:
    """Half the sum over pairs of max(0, 1 - y score)², and its gradient."""
    lacks = np.maximum(0.0, 1.0 - y * _scores(values, basis))
    pull = -y * lacks
    gradient = np.append((basis.T @ pull @ basis).ravel(), -pull.sum())
    return 0.5 * float(np.vdot(lacks, lacks)), gradient


def _scores(values: Float64Array, basis: Float64Array) -> Float64Array:
    """Scores of all pairs minus tau, [m, m]; the values are W in the basis, then tau."""
    rank = basis.shape[1]
    scores: Float64Array = basis @ values[:-1].reshape(rank, rank) @ basis.T - values[-1]
    return scores


def _columns(
    left: Float64Array, right: Float64Array, weights: Float64Array, pairs: npt.NDArray[np.intp]
) -> Float64Array:
    """lambda (x_i x_jᵀ, -1) of some pairs, one per row; the sign y does not change A Aᵀ."""
    sources, targets = np.divmod(pairs, len(right))
    products = (left[sources, :, None] * right[targets, None, :]).reshape(len(pairs), -1)
    ones = np.full((len(pairs), 1), -1)
    columns: Float64Array = weights[sources, targets, None] * np.hstack([products, ones])
    return columns


def _gamma(operations: int) -> float:
    """The largest relative error that this many roundings can add up to."""
    return operations * UNIT / (1 - operations * UNIT)
