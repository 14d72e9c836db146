"""The max-over-heads QK layer (Sec. 3 and 6): scores, loss, and the counts behind micro-F1.

Shapes in names: l items of a context, d = d_model, h heads, k = d_k.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import softplus

from rgr_dist.models.f1 import micro_f1
from rgr_dist.models.labels import labels, positive_weight

Scores = Callable[[Tensor, Tensor, Tensor, int], Tensor]
"""Scores of all pairs from embeddings, W_Q, W_K and the number of heads."""


def head_scores(X_ld: Tensor, W_Q: Tensor, W_K: Tensor, h: int) -> Tensor:
    """<q_p, k_q> of every head, [..., h, l, l]."""
    Q_hlk = (X_ld @ W_Q).unflatten(-1, (h, -1)).transpose(-2, -3)
    K_hlk = (X_ld @ W_K).unflatten(-1, (h, -1)).transpose(-2, -3)
    S_hll: Tensor = Q_hlk @ K_hlk.transpose(-1, -2)
    return S_hll


def max_scores(X_ld: Tensor, W_Q: Tensor, W_K: Tensor, h: int) -> Tensor:
    """S_max(p, q) = max over heads of <q_p, k_q>; no scaling, no softmax.

    Args:
        X_ld: embeddings of the items of contexts, [..., l, d_model].
        W_Q, W_K: projections, [d_model, h * d_k].

    Returns:
        Scores, [..., l, l]; rows are sources.
    """
    return head_scores(X_ld, W_Q, W_K, h).max(dim=-3).values


def weighted_logistic_loss(
    S_ll: Tensor, y_ll: Tensor, tau: Tensor, sharpness: float, balanced: bool = False
) -> Tensor:
    """The loss of App. A.1: mean over the l^2 ordered pairs of a context.

    Args:
        S_ll, y_ll: scores and labels of one context.
        balanced: how positives are weighted (``labels.positive_weight``).
    """
    z = sharpness * (S_ll - tau)
    y = y_ll.to(z.dtype)
    weight = positive_weight(y, balanced)
    return (weight * softplus(-z) * y + softplus(z) * (1 - y)).mean()


def count_edges(S_ll: Tensor, y_ll: Tensor, tau: Tensor) -> tuple[int, int, int]:
    """True positives, predicted and actual edges at the decision rule S > tau."""
    predicted = S_ll > tau
    return (
        int((predicted & y_ll).sum()),
        int(predicted.sum()),
        int(y_ll.sum()),
    )


def score_contexts(
    contexts: Tensor,
    targets_m: Tensor,
    X_md: Tensor,
    W_Q: Tensor,
    W_K: Tensor,
    tau: Tensor,
    h: int,
    scores: Scores = max_scores,
    chunk: int = 250,
) -> float:
    """Micro-F1 of a layer over a set of contexts.

    Args:
        contexts: items of each context, int64 [n_contexts, l].
        targets_m: out-neighbours, as ``labels`` takes them.
        scores: how the layer scores pairs.
        chunk: contexts scored at once; it bounds memory and does not change the result.
    """
    totals = [0, 0, 0]
    with torch.no_grad():
        for nodes in contexts.split(chunk):
            counts = count_edges(scores(X_md[nodes], W_Q, W_K, h), labels(nodes, targets_m), tau)
            totals = [total + count for total, count in zip(totals, counts, strict=True)]
    return micro_f1(*totals)
