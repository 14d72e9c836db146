"""A value channel: messages mixed by the raw maximum scores (Sec. 7.2).

Scores are those of the layer ``max``; a frozen random W_V makes the messages. Shapes in names:
l items of a context, v = width of a message.
"""

from __future__ import annotations

from torch import Tensor


def retrieval_errors(S_ll: Tensor, y_ll: Tensor, V_lv: Tensor) -> tuple[Tensor, Tensor]:
    """Squared errors |y^_p - y_pi(p)|^2 of the retrieved messages, eq. (3), and which count.

    Args:
        S_ll: raw scores, [..., l, l].
        y_ll: labels as 0 and 1, [..., l, l].
        V_lv: messages of the items of the contexts, [..., l, v].

    Returns:
        The errors, [..., l], zero at positions whose target is not in their context; and 1 at all
        other positions, 0 at these.
    """
    counts_l = y_ll.amax(-1)
    errors_l = ((S_ll - y_ll) @ V_lv).square().sum(-1)
    return errors_l * counts_l, counts_l


def retrieval_loss(S_ll: Tensor, y_ll: Tensor, V_lv: Tensor) -> Tensor:
    """Mean squared error over the positions that count, eq. (4); 0 where none does."""
    errors_l, counts_l = retrieval_errors(S_ll, y_ll, V_lv)
    return errors_l.sum() / counts_l.sum().clamp(min=1)
