"""Learning which pairs are edges: labels and the logistic loss (Sec. 6).

Shapes in names: m items, r = the most out-neighbours of an item, l items of a context.
"""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import softplus


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
