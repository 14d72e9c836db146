"""Restricted self-incoherence of an embedding (Definition B.4), computed exactly.

With X_inv = Xᵀ / mu, leakage is δ_i = e_i X Xᵀ / mu - e_i. The suprema over all sets S of at most B
items are sums of the B largest terms, so sorting finds them for every B at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rgr_dist.problem.streams import Float64Array
from rgr_dist.theory.layer import FloatArray


@dataclass(frozen=True)
class Geometry:
    """Self-incoherence of m items at every block size.

    Attributes:
        mu: common scale, the mean of |x_i|².
        epsilon_d: diagonal stability, the largest | |x_i|² / mu - 1 |.
        rho: restricted leakage mass at B = 1 … m, [m].
        gamma: restricted cross-leakage at B = 1 … m, [m]; over all i and j including i = j, as in
            the definition, so that it is at least rho.
    """

    m: int
    d_model: int
    mu: float
    epsilon_d: float
    rho: Float64Array
    gamma: Float64Array

    def largest_block(self, constant: float = 1.0) -> int | None:
        """The largest B of Theorem B.5: epsilon_d ≤ c, rho ≤ c / ln m, gamma ≤ c / ln m.

        The theorem gives no values for its constants c_1, c_2, c_3; here all are equal. None if no
        B meets the conditions. For Gaussian rows Corollary B.6's B = Θ(d_model) does not: there
        rho ≈ B / d_model, which exceeds c / ln m; only B = c d_model / ln m meets them.
        """
        within = np.maximum(self.rho, self.gamma) <= constant / math.log(self.m)
        if self.epsilon_d > constant or not within[0]:
            return None
        return int(within.argmin()) if not within.all() else self.m


def geometry(X: FloatArray) -> Geometry:
    """The geometry of an embedding, [m, d_model]; O(m³ log m) time, O(m²) memory.

    >>> found = geometry(np.eye(8) + np.eye(8, k=1))  # each leaks into the next
    >>> print(found.mu, found.rho[:3].round(3), found.largest_block())
    1.875 [0.284 0.569 0.569] 1
    """
    m, d_model = X.shape
    squares = np.einsum("id,id->i", X, X, dtype=np.float64)
    scale = float(squares.mean())
    delta = X.astype(np.float64) @ X.T.astype(np.float64) / scale - np.eye(m)
    leaks = delta**2
    np.fill_diagonal(leaks, 0)
    rho = np.sort(leaks, axis=1)[:, ::-1].cumsum(axis=1).max(axis=0)
    gamma = np.zeros(m)
    for i in range(m):
        products = np.sort(delta[i] * delta[i:], axis=1)
        positive = np.maximum(products[:, ::-1], 0).cumsum(axis=1).max(axis=0)
        negative = np.maximum(-products, 0).cumsum(axis=1).max(axis=0)
        gamma = np.maximum(gamma, np.maximum(positive, negative))
    return Geometry(m, d_model, scale, float(np.abs(squares / scale - 1).max()), rho, gamma)
