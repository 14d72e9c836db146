"""The paper's template: de-embed by the transpose, then compare signatures (Algorithms 1 to 5).

Head k serves a matching M_k of sources V_k and targets T_k. Its weights are
W_Q = X_inv[:, V_k] w[T_k] and W_K = X_inv[:, T_k] w[T_k] with X_inv = Xᵀ / mu: products of
d_model × B by B × d_k, so that all heads together cost O(m' · d_model · d_k) and no matrix of
pairs is formed.

The scores' noise does not vanish with d_k. N_1 and N_2 of App. B.2 are not mean-zero given X, as
the proof has them: their means are d_k δ_j(π(i)) and d_k δ_i(π⁻¹(j)), because w_t · w_t = d_k. With
the mean of N_3 they are what ``limit_layer`` has, and they dominate where d_model is small. A head
wider than d_model is pointless in any case: W_Q W_Kᵀ has at most rank d_model.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from rgr_dist.theory.layer import FloatArray, Layer
from rgr_dist.theory.matchings import Matching

Float64Array = npt.NDArray[np.float64]


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


def limit_layer(X: FloatArray, matchings: Sequence[Matching], mu: float = 1.0) -> Layer:
    """The template as d_k grows without bound, with scores divided by d_k and tau = 1/2.

    Signatures become orthogonal, w_s · w_t / d_k = 1 if s = t and else 0, so that orthogonal
    signatures have exactly these scores at d_k = B. Head k is then Σ x_s x_tᵀ over its matching,
    whose rank is at most d_model: that is the width used here where B exceeds it.
    """
    d_model = X.shape[1]
    width = max(1, min(d_model, max(len(matching) for matching in matchings)))
    W_Q, W_K = (np.zeros((d_model, len(matchings) * width)) for _ in range(2))
    for k, matching in enumerate(matchings):
        sources, targets = X[matching[:, 0]], X[matching[:, 1]]
        wide = len(matching) > d_model
        query = sources.T @ targets if wide else sources.T
        key = np.eye(d_model) if wide else targets.T
        columns = slice(k * width, k * width + query.shape[1])
        W_Q[:, columns], W_K[:, columns] = query / mu, key / mu
    return Layer(W_Q, W_K, len(matchings), 0.5)


def trivial_layer(X: FloatArray, edges: Matching) -> Layer:
    """A head of width 1 for each edge: D_K = m' (B = 1), exact wherever no two rows agree.

    An edge (s, t) scores |x_s|² |x_t|² in its own head, made 1 here, and any other pair the
    product of two cosines. For unit rows the largest of those is the largest |cosine| of two
    items, and tau lies half-way from it to 1. The printed tau = 1/2 would fail where that cosine
    exceeds 1/2, as it does at d_model = 16.
    """
    squares = np.einsum("id,id->i", X, X)
    unit = X / np.sqrt(squares)[:, np.newaxis]
    cosines = np.abs(unit @ unit.T)
    np.fill_diagonal(cosines, 0)
    sources, targets = edges.T
    W_Q, W_K = ((X[end] / squares[end, np.newaxis]).T for end in (sources, targets))
    return Layer(W_Q, W_K, len(edges), (1 + float(cosines.max())) / 2)
