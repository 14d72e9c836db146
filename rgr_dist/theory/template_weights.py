"""The paper's template: de-embed by the transpose, then compare signatures (Algorithms 1 to 5).

Head k serves a matching M_k of sources V_k and targets T_k. Its weights are
W_Q = X_inv[:, V_k] w[T_k] and W_K = X_inv[:, T_k] w[T_k] with X_inv = Xᵀ / mu: products of
d_model × B by B × d_k, so that all heads together cost O(m' · d_model · d_k) and no matrix of
pairs is formed.

The scores' noise does not vanish as d_k grows. N_1 and N_2 of App. B.2 are not mean-zero given X,
contrary to the proof: their means are d_k δ_j(π(i)) and d_k δ_i(π⁻¹(j)), because w_t · w_t = d_k.
With the mean of N_3 they are the noise of ``limit_layer``, and they dominate if d_model is small. A
head wider than d_model is pointless in any case: W_Q W_Kᵀ has at most rank d_model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rgr_dist.problem.streams import Float64Array, Stream
from rgr_dist.theory.layer import FloatArray, Layer
from rgr_dist.theory.matchings import Matching

Kind = Literal["rademacher", "bernoulli"]
"""Laws of independent entries of signatures."""


def orthogonal(matchings: Sequence[Matching], m: int, d_k: int) -> Float64Array:
    """Signatures that are orthogonal unit vectors within each head, [m, d_k], and add no noise.

    If d_k is the size of the largest block, the scores are those of the limit d_k → ∞, whose
    signatures have w_s · w_t / d_k = 0 for s ≠ t, and tau is 1/2. With a smaller d_k, several
    targets of a head share one signature.

    Args:
        matchings: the edges (source, target) of each head; each target is in only one of them.
    """
    w = np.zeros((m, d_k))
    for matching in matchings:
        w[matching[:, 1], np.arange(len(matching)) % d_k] = 1
    return w


@dataclass(frozen=True)
class Signatures:
    """A law of signatures with independent entries.

    Attributes:
        kind: ``rademacher``, ±1 with equal chance, or ``bernoulli``, 1 with chance p, else 0.
        p: the chance of a 1 in a Bernoulli entry.
    """

    kind: Kind
    p: float = 0.25

    def draw(self, stream: Stream, m: int, d_k: int) -> Float64Array:
        """Rows w_j, [m, d_k].

        Columns come from the stream in order, so that wider signatures begin with the narrower
        ones and all widths of a draw are paired.
        """
        words = stream.words(m * d_k).reshape(d_k, m).T
        if self.kind == "bernoulli":
            return (words < self.p * 2**32).astype(np.float64)
        return np.where(words < 2**31, 1.0, -1.0)

    def printed_tau(self, d_k: int) -> float:
        """The paper's threshold: d_k / 2 (Sec. 4), or (p + p²) d_k / 2 (Algorithms 3 and 4)."""
        return d_k / 2 if self.kind == "rademacher" else (self.p + self.p**2) / 2 * d_k

    @property
    def union_bound_constant(self) -> float:
        """The C of d_k = C ln m at which the union bound on failure is about m⁻³, for one-hot.

        Bernoulli: Theorem B.1's exponent c_1, but C = 4 / c_1, so that its first term is
        m · m⁻⁴ = m⁻³; the paper's 3 / c_1 gives m⁻². The second term, m² exp(-c_2 d_k), is smaller
        at every p. Rademacher: Hoeffding's exp(-d_k / 8) for each of m² pairs, so C = 8 · 5. The
        proofs use the natural logarithm; the figures of the paper use log₂.
        """
        if self.kind == "rademacher":
            return 40.0
        p = self.p
        return 4 / (p * (1 - p) ** 2 / 8)


def template_layer(
    X: FloatArray, matchings: Sequence[Matching], w: FloatArray, tau: float, mu: float = 1.0
) -> Layer:
    """The template's weights for given signatures.

    Args:
        X: embedding, [m, d_model].
        matchings: the edges of each head.
        w: signatures, [m, d_k], shared by all heads.
        mu: common scale of |x_i|² (Algorithm 4); 1 for unit rows.
    """
    d_k = w.shape[1]
    W_Q, W_K = (np.empty((X.shape[1], len(matchings) * d_k)) for _ in range(2))
    for k, matching in enumerate(matchings):
        columns = slice(k * d_k, (k + 1) * d_k)
        sources, targets = matching.T
        W_Q[:, columns] = X[sources].T @ w[targets] / mu
        W_K[:, columns] = X[targets].T @ w[targets] / mu
    return Layer(W_Q, W_K, len(matchings), tau)


def limit_layer(
    X: FloatArray, matchings: Sequence[Matching], mu: float = 1.0, overlap: float = 0.0
) -> Layer:
    """The template as d_k grows without bound, with scores divided by d_k.

    Head k is Σ x_s x_tᵀ over its matching, plus ``overlap`` · (Σ x_s)(Σ x_t)ᵀ. Its rank is at most
    d_model, which is the width used here if B exceeds it. Rademacher signatures become
    orthogonal, w_s · w_t / d_k = 1 if s = t and else 0, so that orthogonal signatures have exactly
    these scores at d_k = B.

    Args:
        overlap: p / (1 - p) for Bernoulli signatures, whose products tend to p if s = t and to p²
            otherwise; the scores are then also divided by p - p². The printed tau, half-way from p²
            to p, becomes 1/2 + overlap.
    """
    d_model = X.shape[1]
    width = max(1, min(d_model, max(len(matching) for matching in matchings)))
    W_Q, W_K = (np.zeros((d_model, len(matchings) * width)) for _ in range(2))
    for k, matching in enumerate(matchings):
        sources, targets = X[matching[:, 0]], X[matching[:, 1]]
        wide = len(matching) > d_model
        leaning = sources + overlap * sources.sum(axis=0)
        query = leaning.T @ targets if wide else leaning.T
        key = np.eye(d_model) if wide else targets.T
        columns = slice(k * width, k * width + query.shape[1])
        W_Q[:, columns], W_K[:, columns] = query / mu, key / mu
    return Layer(W_Q, W_K, len(matchings), 0.5 + overlap)


def trivial_layer(X: FloatArray, edges: Matching) -> Layer:
    """A head of width 1 for each edge: D_K = m' (B = 1), exact for unit rows, no two parallel.

    An edge (s, t) scores |x_s|² |x_t|² in its own head, scaled to 1 here. For unit rows any other
    pair scores the product of two cosines, which is at most the largest |cosine| of two items, and
    tau lies half-way from that to 1. The printed tau = 1/2 would fail if that cosine exceeds 1/2,
    as it does at d_model = 16. Longer rows may score above an edge. An item whose row is zero
    scores 0 in every pair.
    """
    squares = np.einsum("id,id->i", X, X)
    squares[squares == 0] = 1
    unit = X / np.sqrt(squares)[:, np.newaxis]
    cosines = np.abs(unit @ unit.T)
    np.fill_diagonal(cosines, 0)
    sources, targets = edges.T
    W_Q, W_K = ((X[end] / squares[end, np.newaxis]).T for end in (sources, targets))
    return Layer(W_Q, W_K, len(edges), (1 + float(cosines.max())) / 2)
