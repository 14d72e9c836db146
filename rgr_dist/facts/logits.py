"""The logits of a facts layer for all pairs, from its weights (``models.facts``), in numpy."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def all_logits(
    weights: Mapping[str, npt.NDArray[np.floating]], h: int, residual: bool
) -> FloatArray:
    """L, float64 [|K|, |Q|, |V|]: E_q + sum_i A^i_kq V^i_k + (1 - A^i_kq) V^i_q.

    Args:
        weights: by name, in any precision; everything is computed in double precision.
    """
    w = {name: value.astype(np.float64) for name, value in weights.items()}
    d_qk, d_vo = w["W_Q"].shape[1] // h, w["W_V"].shape[1] // h
    E = w["X_Q"] @ w["U"] if residual else np.zeros((len(w["X_Q"]), w["U"].shape[1]))
    L = np.tile(E, (len(w["X_K"]), 1, 1))
    for i in range(h):
        keys, values = slice(i * d_qk, (i + 1) * d_qk), slice(i * d_vo, (i + 1) * d_vo)
        queries = w["X_Q"] @ w["W_Q"][:, keys] / np.sqrt(d_qk)
        own = (queries * (w["X_Q"] @ w["W_K"][:, keys])).sum(1)
        scores = w["X_K"] @ w["W_K"][:, keys] @ queries.T - own
        A, rest = (np.exp(-np.logaddexp(0.0, sign * scores))[:, :, None] for sign in (-1, 1))
        answers = w["W_V"][:, values] @ (w["W_O"][values] @ w["U"])
        # 1 - A by itself: a difference would leave rounding errors, which count as ranks of L.
        L += A * (w["X_K"] @ answers)[:, None] + rest * (w["X_Q"] @ answers)
    return L
