"""One pre-LN transformer block, read out at the query (Sec. 7.3).

What the paper leaves open is settled here as simply as possible: the layer norms have no
parameters, the MLP has biases and the projections have none, no norm stands before the
output, and a query attends to every position, including its own.

Shapes in names: B examples, n positions (l slots, NULL, the query), d = d_model, h heads,
k = d_k, v = d_model / h, f = d_ff, V = m + 1 answers, the last of them NULL.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn.functional import gelu, layer_norm, softmax

EPSILON = 1e-5
"""Added to the variance in a layer norm."""


def norm(X: Tensor) -> Tensor:
    """Layer norm over the last dimension, without gain or bias."""
    return layer_norm(X, X.shape[-1:], eps=EPSILON)


def superpose(E_Vd: Tensor, examples: Tensor) -> Tensor:
    """The input X = [x_1, …, x_l, E[NULL], E[q]] with x_i = E[a_i] + E[b_i].

    Args:
        E_Vd: embeddings of the m items, then of NULL.
        examples: query, the two items of each slot, label: int64 [B, 2l + 2].

    Returns:
        [B, l + 2, d].
    """
    query_B, items = examples[:, 0], examples[:, 1:-1]
    slots_Bld = E_Vd[items[:, 0::2]] + E_Vd[items[:, 1::2]]
    null_Bd = E_Vd[-1].expand(len(examples), -1)
    return torch.cat([slots_Bld, torch.stack([null_Bd, E_Vd[query_B]], 1)], 1)


def block_logits(X_Bnd: Tensor, E_Vd: Tensor, theta: Mapping[str, Tensor], h: int) -> Tensor:
    """Logits of every answer at the last position, [B, V]: h_last E^T, tied to the embeddings.

    Args:
        theta: the parameters by name: W_Q and W_K, [d, h * k]; W_V and W_O, [d, d]; W_1, [d, f],
            and W_2, [f, d], with their biases b_1 and b_2.
    """
    Z_Bnd = norm(X_Bnd)
    Q_Bhk = (Z_Bnd[:, -1] @ theta["W_Q"]).unflatten(-1, (h, -1))
    K_Bnhk = (Z_Bnd @ theta["W_K"]).unflatten(-1, (h, -1))
    V_Bnhv = (Z_Bnd @ theta["W_V"]).unflatten(-1, (h, -1))
    S_Bhn = torch.einsum("bhk,bnhk->bhn", Q_Bhk, K_Bnhk) / Q_Bhk.shape[-1] ** 0.5
    heads_Bhv = torch.einsum("bhn,bnhv->bhv", softmax(S_Bhn, -1), V_Bnhv)
    attended_Bd = X_Bnd[:, -1] + heads_Bhv.flatten(1) @ theta["W_O"]
    hidden_Bf = gelu(norm(attended_Bd) @ theta["W_1"] + theta["b_1"])
    last_Bd = attended_Bd + hidden_Bf @ theta["W_2"] + theta["b_2"]
    return last_Bd @ E_Vd.T


def count_answers(logits_BV: Tensor, labels_B: Tensor) -> tuple[int, int]:
    """How many queries were answered correctly, and how many with NULL."""
    answers_B = logits_BV.argmax(-1)
    null = logits_BV.shape[-1] - 1
    return int((answers_B == labels_B).sum()), int((answers_B == null).sum())
