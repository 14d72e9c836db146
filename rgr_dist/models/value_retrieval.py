"""A value channel: messages mixed by the raw maximum scores (Sec. 7.2).

Scores are the ``max_scores`` of ``heads``; a frozen random W_V makes the messages. Shapes in
names: m items, l items of a context, d = d_model, v = width of a message.
"""

from __future__ import annotations

from torch import Tensor, no_grad

from rgr_dist.models.edges import labels
from rgr_dist.models.heads import max_scores


def retrieval_errors(S_ll: Tensor, y_ll: Tensor, V_lv: Tensor) -> tuple[Tensor, int]:
    """Squared errors |y^_p - y_pi(p)|^2 of the retrieved messages, eq. (3), and how many count.

    Args:
        S_ll: raw scores, [..., l, l].
        y_ll: labels, bool [..., l, l].
        V_lv: messages of the items of the contexts, [..., l, v].

    Returns:
        The errors, [..., l], zero at positions whose target is not in their context; and the
        number of all other positions.
    """
    counts_l = y_ll.any(-1)
    retrieved_lv, wanted_lv = S_ll @ V_lv, y_ll.to(V_lv.dtype) @ V_lv
    errors_l = (retrieved_lv - wanted_lv).square().sum(-1)
    return errors_l.where(counts_l, 0.0), int(counts_l.sum())


def retrieval_loss(S_ll: Tensor, y_ll: Tensor, V_lv: Tensor) -> Tensor:
    """Mean squared error over the positions that count, eq. (4); 0 where none does."""
    errors_l, count = retrieval_errors(S_ll, y_ll, V_lv)
    return errors_l.sum() / max(1, count)


def retrieval_error_over(
    contexts: Tensor,
    targets_mr: Tensor,
    X_md: Tensor,
    V_mv: Tensor,
    W_Q: Tensor,
    W_K: Tensor,
    h: int,
    chunk: int = 250,
) -> float:
    """Mean squared error of a layer over all positions that count in a set of contexts.

    If no context holds a target, the error is 0.0.

    Args:
        contexts: items of each context, int64 [n_contexts, l].
        chunk: contexts scored at once; it bounds memory and does not change the result.
    """
    total, count = 0.0, 0
    with no_grad():
        for nodes in contexts.split(chunk):
            S_nll = max_scores(X_md[nodes], W_Q, W_K, h)
            errors_nl, some = retrieval_errors(S_nll, labels(nodes, targets_mr), V_mv[nodes])
            total, count = total + float(errors_nl.double().sum()), count + some
    return total / max(1, count)
