"""One attention-only layer over a key and a query that answers with a value (arXiv:2502.05076).

The input is the two tokens (k, q) and the answer is read at q. Shapes in names: B examples,
K, Q, V numbers of keys, queries and values, d = d_model, h heads, c = d_head,qk, v = d_head,vo.
Parameters by name: embeddings X_K [K, d] and X_Q [Q, d]; W_Q and W_K [d, h c]; W_V [d, h v];
W_O [h v, d]; unembedding U [d, V]. No positions, norms, biases or MLP.

*From tokens to factors.* In head i the query x_q attends to the two positions with the scores
s_k = x_q W_Q^i (x_k W_K^i)^T / sqrt(c) and s_q, the same with x_q for x_k. The softmax of these two
is A^i_kq = sigmoid(s_k - s_q) on the key's token and 1 - A^i_kq on the query's. So the answer to
(k, q) has the logits

    L_kq = r x_q U + sum_i (A^i_kq x_k + (1 - A^i_kq) x_q) W_V^i W_O^i U
         = E_q + sum_i A^i_kq (V^i_k - V'^i_q),

    V^i = X_K W_V^i W_O^i U,  V'^i = X_Q W_V^i W_O^i U,  E = r X_Q U + sum_i V'^i,

where r is 1 with a residual connection and 0 without. The summary writes L = E + sum_h A^h V^h:
its E is ours, which involves no attention, and its A^h V^h stands for the product at each (k, q).
It omits the query's own value V': each head subtracts A^i V'^i from E. The factors are small:
A^i is K x Q and V^i is K x V, while L is K x Q x V.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import softmax

Parameters = Mapping[str, Tensor]


def token_logits(
    keys_B: Tensor,
    queries_B: Tensor,
    theta: Parameters,
    h: int,
    residual: bool,
    scale: Tensor | float | None = None,
) -> Tensor:
    """Logits of every value, [B, V], token by token.

    Args:
        keys_B, queries_B: int64 [B].
        scale: 1 / sqrt(c), if heads are wider than c and the rest of their weights is zero.
    """
    x_Bd = theta["X_Q"][queries_B]
    tokens_B2d = torch.stack([theta["X_K"][keys_B], x_Bd], 1)
    Q_Bhc = (x_Bd @ theta["W_Q"]).unflatten(-1, (h, -1))
    K_B2hc = (tokens_B2d @ theta["W_K"]).unflatten(-1, (h, -1))
    V_B2hv = (tokens_B2d @ theta["W_V"]).unflatten(-1, (h, -1))
    scale = Q_Bhc.shape[-1] ** -0.5 if scale is None else scale
    S_Bh2 = torch.einsum("bhc,bnhc->bhn", Q_Bhc, K_B2hc) * scale
    heads_Bhv = torch.einsum("bhn,bnhv->bhv", softmax(S_Bh2, -1), V_B2hv)
    out_Bd = heads_Bhv.flatten(1) @ theta["W_O"]
    return (x_Bd + out_Bd if residual else out_Bd) @ theta["U"]


def right_by_argmax(logits_BV: Tensor, values_B: Tensor) -> Tensor:
    """Whether the right value's logit is above every other, bool [B]."""
    right_B1 = logits_BV.gather(-1, values_B[:, None])
    return (logits_BV >= right_B1).sum(-1) == 1


def right_by_softmax(logits_BV: Tensor, values_B: Tensor, tau: float) -> Tensor:
    """Whether the right value's probability is at least tau, bool [B]."""
    return softmax(logits_BV, -1).gather(-1, values_B[:, None])[:, 0] >= tau


def all_logits(
    weights: Mapping[str, npt.NDArray[np.floating]], h: int, residual: bool
) -> npt.NDArray[np.float64]:
    """L, float64 [|K|, |Q|, |V|], in numpy: E_q + sum_i A^i_kq V^i_k + (1 - A^i_kq) V^i_q.

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
