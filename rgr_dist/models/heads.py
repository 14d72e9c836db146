"""How the scores of heads are combined: by their maximum (Sec. 3 and 6), or by the sum of their
softmaxes (Sec. 7.1 and 8).

Shapes in names: l items of a context, d = d_model, h heads, k = d_k.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torch import Tensor

Scores = Callable[[Tensor, Tensor, Tensor, int], Tensor]
"""Scores of all pairs of contexts, [..., l, l], whose rows are sources; from the embeddings of the
items, [..., l, d_model], the projections W_Q and W_K, [d_model, h * d_k], and h."""


def head_scores(X_ld: Tensor, W_Q: Tensor, W_K: Tensor, h: int) -> Tensor:
    """<q_p, k_q> of every head, [..., h, l, l]."""
    Q_hlk = (X_ld @ W_Q).unflatten(-1, (h, -1)).transpose(-2, -3)
    K_hlk = (X_ld @ W_K).unflatten(-1, (h, -1)).transpose(-2, -3)
    S_hll: Tensor = Q_hlk @ K_hlk.transpose(-1, -2)
    return S_hll


def max_scores(X_ld: Tensor, W_Q: Tensor, W_K: Tensor, h: int) -> Tensor:
    """S_max(p, q) = max over heads of <q_p, k_q>; no scaling, no softmax."""
    return head_scores(X_ld, W_Q, W_K, h).max(dim=-3).values


def summed_attention(X_ld: Tensor, W_Q: Tensor, W_K: Tensor, h: int) -> Tensor:
    """A(p, q) = sum over heads of softmax over q of <q_p, k_q> / sqrt(d_k), eqs. (5) and (6).

    The softmax runs over every item of the context, p itself included; rows sum to h.
    """
    d_k = W_Q.shape[-1] // h
    logits_hll = head_scores(X_ld, W_Q, W_K, h) / d_k**0.5
    A_ll: Tensor = logits_hll.softmax(-1).sum(-3)
    return A_ll


SCORES: Mapping[str | None, Scores] = {"max": max_scores, "softmax": summed_attention}
"""The function for each way to combine heads that a model's record can name."""
