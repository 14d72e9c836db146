"""What every model is trained on: which pairs of a context are edges, and how much they weigh."""

from __future__ import annotations

from torch import Tensor


def labels(nodes_l: Tensor, targets_m: Tensor) -> Tensor:
    """y_pq = 1 where q is an out-neighbour of p, over all ordered pairs; bool [..., l, l].

    Args:
        targets_m: the one out-neighbour of each item, [m], or all of them, [m, r], filled up
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
    """How much each edge of a context weighs in the loss; a pair that is none weighs 1.

    Args:
        y_ll: labels as 0 and 1, in the numbers that the weight is to be in.
        balanced: whether that is #negatives / #positives of the context, [...] (App. A.3,
            Eq. 30), or l - 1 in all of them (App. A.1). A context without an edge has nothing
            to weigh; its weight is finite.
    """
    length = y_ll.shape[-1]
    if not balanced:
        return length - 1
    positives = y_ll.sum((-1, -2))
    return (length**2 - positives) / positives.clamp(min=1)
