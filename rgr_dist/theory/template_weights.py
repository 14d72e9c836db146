"""The paper's template: de-embed by the transpose, then compare signatures (Algorithms 1 to 5).

Head k serves a matching M_k of sources V_k and targets T_k. Its weights are
W_Q = X_inv[:, V_k] w[T_k] and W_K = X_inv[:, T_k] w[T_k] with X_inv = Xᵀ / mu: products of
d_model × B by B × d_k, so that all heads together cost O(m' · d_model · d_k) and no matrix of
pairs is formed.

The scores' noise does not vanish as d_k grows. N_1 and N_2 of App. B.2 are not mean-zero given X,
contrary to the proof: their means are d_k δ_j(π(i)) and d_k δ_i(π⁻¹(j)), because w_t · w_t = d_k.
They dominate if d_model is small. A head wider than d_model is pointless in any case: W_Q W_Kᵀ has
at most rank d_model.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rgr_dist.problem.streams import Float64Array, Stream
from rgr_dist.theory.layer import FloatArray, Layer
from rgr_dist.theory.matchings import Matching


def signatures(stream: Stream, m: int, d_k: int, p: float | None = None) -> Float64Array:
    """Rows w_j of independent entries, [m, d_k].

    Columns come from the stream in order, so that wider signatures begin with the narrower ones
    and all widths of a draw are paired.

    Args:
        p: the chance of a 1, else 0 (Bernoulli); None for ±1 with equal chance (Rademacher).
    """
    words = stream.words(m * d_k).reshape(d_k, m).T
    if p is not None:
        return (words < p * 2**32).astype(np.float64)
    return np.where(words < 2**31, 1.0, -1.0)


def printed_tau(d_k: int, p: float | None = None) -> float:
    """The paper's threshold: d_k / 2 (Sec. 4), or (p + p²) d_k / 2 (Algorithms 3 and 4)."""
    return d_k / 2 if p is None else (p + p**2) / 2 * d_k


def template_layer(
    X: FloatArray, matchings: Sequence[Matching], w: FloatArray, tau: float, mu: float = 1.0
) -> Layer:
    """The template's weights for given signatures.

    Args:
        X: embedding, [m, d_model].
        matchings: the edges of each head.
        w: signatures, [m, d_k], shared by all heads.
        mu: common scale of |x_i|² (Algorithm 4); 1 for unit rows.

    A permutation of two items, each in a head of its own:

    >>> edges = [np.array([[0, 1]]), np.array([[1, 0]])]
    >>> layer = template_layer(np.eye(2), edges, w=np.ones((2, 1)), tau=0.5)
    >>> layer.W_Q.tolist(), layer.W_K.tolist()
    ([[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]])
    """
    d_k = w.shape[1]
    W_Q, W_K = (np.empty((X.shape[1], len(matchings) * d_k)) for _ in range(2))
    for k, matching in enumerate(matchings):
        columns = slice(k * d_k, (k + 1) * d_k)
        sources, targets = matching.T
        W_Q[:, columns] = X[sources].T @ w[targets] / mu
        W_K[:, columns] = X[targets].T @ w[targets] / mu
    return Layer(W_Q, W_K, len(matchings), tau)
