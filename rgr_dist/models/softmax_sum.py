"""Scaled softmax attention, summed over heads and then thresholded (Sec. 7.1 and 8).

Labels, loss and micro-F1 are those of ``max_heads``. Shapes in names: l items of a context,
d = d_model, h heads, k = d_k.
"""

from __future__ import annotations

from torch import Tensor

from rgr_dist.models.max_heads import head_scores


def summed_attention(X_ld: Tensor, W_Q: Tensor, W_K: Tensor, h: int) -> Tensor:
    """A(p, q) = sum over heads of softmax over q of <q_p, k_q> / sqrt(d_k), eqs. (5) and (6).

    The softmax runs over every item of the context, p itself included.

    Args:
        X_ld: embeddings of the items of contexts, [..., l, d_model].
        W_Q, W_K: projections, [d_model, h * d_k].

    Returns:
        Summed attention, [..., l, l]; rows are sources and sum to h.
    """
    d_k = W_Q.shape[-1] // h
    logits_hll = head_scores(X_ld, W_Q, W_K, h) / d_k**0.5
    A_ll: Tensor = logits_hll.softmax(-1).sum(-3)
    return A_ll
