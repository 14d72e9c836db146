"""Learning which pairs are edges: labels, logistic loss, and the counts behind micro-F1 (Sec. 6).

Shapes in names: m items, r = the most out-neighbours of an item, l items of a context, d = d_model,
h heads.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import softplus

from rgr_dist.models.f1 import micro_f1
from rgr_dist.models.heads import Scores, max_scores


def labels(nodes_l: Tensor, targets_mr: Tensor) -> Tensor:
    """y_pq = 1 where q is an out-neighbour of p, over all ordered pairs; bool [..., l, l].

    Args:
        targets_mr: out-neighbours of each item, [m, r], padded with -1.
    """
    own = targets_mr[nodes_l]
    y_ll = own[..., :1] == nodes_l.unsqueeze(-2)
    for rank in range(1, own.shape[-1]):
        y_ll |= own[..., rank].unsqueeze(-1) == nodes_l.unsqueeze(-2)
    return y_ll


def positive_weight(y_ll: Tensor, balanced: bool) -> Tensor | int:
    """Weight of each edge of a context in the loss; other pairs weigh 1.

    Args:
        y_ll: labels as 0 and 1, in the dtype that the weight should have.
        balanced: whether the weight is #negatives / #positives of the context, [...] (App. A.3,
            Eq. 30), finite even without edges, or l - 1 in every context (App. A.1).
    """
    length = y_ll.shape[-1]
    if not balanced:
        return length - 1
    positives = y_ll.sum((-1, -2))
    return (length**2 - positives) / positives.clamp(min=1)


def weighted_logistic_loss(
    S_ll: Tensor, y_ll: Tensor, tau: Tensor, sharpness: float, balanced: bool = False
) -> Tensor:
    """The loss of App. A.1: mean over the l^2 ordered pairs of a context.

    Args:
        S_ll, y_ll: scores and labels of one context.
        balanced: how positives are weighted (``positive_weight``).
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
    targets_mr: Tensor,
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
        targets_mr: out-neighbours, as ``labels`` takes them.
        scores: how the layer scores pairs.
        chunk: contexts scored at once; it bounds memory and does not change the result.
    """
    totals = [0, 0, 0]
    with torch.no_grad():
        for nodes in contexts.split(chunk):
            counts = count_edges(scores(X_md[nodes], W_Q, W_K, h), labels(nodes, targets_mr), tau)
            totals = [total + count for total, count in zip(totals, counts, strict=True)]
    return micro_f1(*totals)
