"""What a model of edges is trained on: which pairs of a context are edges, and their weight."""

from __future__ import annotations

from torch import Tensor


def labels(nodes_l: Tensor, targets_m: Tensor) -> Tensor:
    """y_pq = 1 where q is an out-neighbour of p, over all ordered pairs; bool [..., l, l].

    Args:
        targets_m: the one out-neighbour of each item, [m], or all of them, [m, r], padded
            with -1.
    """
    own = targets_m[nodes_l]
    if targets_m.dim() == 1:
        return own.unsqueeze(-1) == nodes_l.unsqueeze(-2)
    y_ll = own[..., :1] == nodes_l.unsqueeze(-2)
    for rank in range(1, own.shape[-1]):
        y_ll |= own[..., rank].unsqueeze(-1) == nodes_l.unsqueeze(-2)
    return y_ll


def positive_weight(y_ll: Tensor, balanced: bool) -> Tensor | int:
    """Weight of each edge of a context in the loss; other pairs weigh 1.

    Args:
        y_ll: labels as 0 and 1, in the dtype that the weight is to have.
        balanced: whether it is #negatives / #positives of the context, [...] (App. A.3, Eq. 30),
            or l - 1 in every context (App. A.1). It is finite for a context without edges too.
    """
    length = y_ll.shape[-1]
    if not balanced:
        return length - 1
    positives = y_ll.sum((-1, -2))
    return (length**2 - positives) / positives.clamp(min=1)
