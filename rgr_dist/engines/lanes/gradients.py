"""From the scores of all heads to their gradient, written out by hand.

Two parts do this, and the model's record names them. *Heads* combine the scores of all heads into
one: ``forward`` turns S_Lhll into combined scores, [L, l, l], and keeps or changes it as needed by
``backward``, which turns it into dL/dS; ``combine`` combines one lane's scores without padding,
[h, n, l, l] to [n, l, l], to evaluate it. A *loss* has ``grad_scores``, dL/dS of combined scores,
[L, l, l]; it writes dL/dtau if there is a threshold. Padded items get a gradient of exactly zero.

Each part works on its own buffers, allocated for a fixed number of lanes. Shapes in names: L lanes,
l items of a context, h heads, v = width of a message; all padded.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from rgr_dist.engines.lanes.batches import Batches


class MaxOverHeads:
    """The maximum: only the head with the largest score has a gradient; ties share it (Sec. 6)."""

    def __init__(self, batches: Batches, h: int, d_k: int) -> None:
        shape = len(batches), batches.length, batches.length
        self.S_Lll, self.ties_Lll = (batches.X_Lld.new_empty(shape) for _ in range(2))

    def forward(self, S_Lhll: Tensor) -> Tensor:
        """S_max of every pair."""
        return torch.amax(S_Lhll, 1, out=self.S_Lll)

    def backward(self, G_Lll: Tensor, S_Lhll: Tensor) -> None:
        """Give a pair's gradient to the heads that reach its maximum, in equal shares."""
        is_max = S_Lhll.eq_(self.S_Lll.unsqueeze(1))  # 1 or 0, as numbers
        G_Lll.div_(torch.sum(is_max, 1, out=self.ties_Lll))
        is_max.mul_(G_Lll.unsqueeze(1))

    def combine(self, S_hnll: Tensor) -> Tensor:
        """S_max of every pair."""
        return S_hnll.amax(0)


class SoftmaxSum:
    """Softmax over the context of S / sqrt(d_k), summed over heads (Sec. 7.1 and 8)."""

    def __init__(self, batches: Batches, h: int, d_k: int) -> None:
        L, length, like = len(batches), batches.length, batches.X_Lld
        self.d_k = d_k  # without padding
        self.scale = torch.tensor(d_k).to(like).rsqrt()
        self.absent_l = like.new_zeros(length)
        self.absent_l[batches.cell.context.length :] = -torch.inf
        self.A_Lhll = like.new_empty(L, h, length, length)
        self.A_Lll = like.new_empty(L, length, length)
        self.mean_Lhl1 = like.new_empty(L, h, length, 1)

    def forward(self, S_Lhll: Tensor) -> Tensor:
        """Summed attention of every pair; padding gets none."""
        S_Lhll.mul_(self.scale).add_(self.absent_l)
        torch.softmax(S_Lhll, 3, out=self.A_Lhll)
        return torch.sum(self.A_Lhll, 1, out=self.A_Lll)

    def backward(self, G_Lll: Tensor, S_Lhll: Tensor) -> None:
        """A (G - sum over q of A G), times the scale."""
        torch.mul(self.A_Lhll, G_Lll.unsqueeze(1), out=S_Lhll)
        torch.sum(S_Lhll, 3, keepdim=True, out=self.mean_Lhl1)
        S_Lhll.addcmul_(self.A_Lhll, self.mean_Lhl1, value=-1).mul_(self.scale)

    def combine(self, S_hnll: Tensor) -> Tensor:
        """Summed attention of every pair."""
        return S_hnll.mul(self.d_k**-0.5).softmax(3).sum(0)


class EdgeLoss:
    """The weighted logistic loss of App. A.1 and A.3: edges score above tau, other pairs below."""

    def __init__(self, batches: Batches) -> None:
        cell, like, length = batches.cell, batches.X_Lld, batches.length
        self.batches, self.balanced = batches, cell.graph.balanced
        self.length, self.alpha = cell.context.length, cell.training.sharpness
        shape = len(batches), length, length
        self.G: Tensor = like.new_empty(shape)
        self.factor = like.new_empty(shape)
        self.boost_L11 = like.new_empty(len(batches), 1, 1)
        real = torch.arange(length, device=like.device) < self.length
        pairs = (real.unsqueeze(1) & real).to(like.dtype)
        self.sharpness = torch.full_like(pairs, self.alpha)
        self.slope = pairs * (self.alpha / self.length**2)

    def grad_scores(self, S_Lll: Tensor, tau_L: Tensor, tau_gradient_L: Tensor) -> Tensor:
        """Alpha / l^2 times sigmoid(z), or -weight sigmoid(-z) at an edge; z = alpha (S - tau).

        The weight is l - 1, or #negatives / #positives of the context.
        """
        G, factor, y = self.G, self.factor, self.batches.y_Lll
        torch.add(self.sharpness, y, alpha=-2 * self.alpha, out=factor)
        torch.sub(S_Lll, tau_L.view(-1, 1, 1), out=G).mul_(factor).sigmoid_()
        if self.balanced:
            boost = self.boost_L11  # 1 + weight; without positives, any finite number
            torch.sum(y, (1, 2), keepdim=True, out=boost)
            boost.clamp_(min=1).reciprocal_().mul_(self.length**2)
            torch.mul(y, boost, out=factor)
            torch.addcmul(self.slope, self.slope, factor, value=-1, out=factor)
        else:
            torch.addcmul(self.slope, self.slope, y, value=-self.length, out=factor)
        G.mul_(factor)
        torch.sum(G, (1, 2), out=tau_gradient_L).neg_()
        return G


class MessageLoss:
    """The squared error of messages mixed by scores, against the target's (Sec. 7.2, eq. (4))."""

    def __init__(self, batches: Batches) -> None:
        L, length, new = len(batches), batches.length, batches.X_Lld.new_empty
        self.batches = batches
        self.G: Tensor = new(L, length, length)
        self.error_Llv = torch.empty_like(batches.V_Llv)
        self.counts_Ll1, self.weight_L11 = new(L, length, 1), new(L, 1, 1)

    def grad_scores(self, S_Lll: Tensor, tau_L: Tensor, tau_gradient_L: Tensor) -> Tensor:
        """2 / n times error times message, at the n positions whose target is in the context."""
        y, V = self.batches.y_Lll, self.batches.V_Llv
        torch.amax(y, 2, keepdim=True, out=self.counts_Ll1)
        torch.sum(self.counts_Ll1, 1, keepdim=True, out=self.weight_L11)
        self.weight_L11.clamp_(min=1).reciprocal_().mul_(2)
        torch.sub(S_Lll, y, out=self.G).mul_(self.counts_Ll1)
        torch.bmm(self.G, V, out=self.error_Llv)
        torch.bmm(self.error_Llv, V.transpose(1, 2), out=self.G)
        return self.G.mul_(self.weight_L11)


HEADS: Mapping[str | None, type[MaxOverHeads | SoftmaxSum]] = {
    "max": MaxOverHeads,
    "softmax": SoftmaxSum,
}
LOSSES: Mapping[str, type[EdgeLoss | MessageLoss]] = {"edges": EdgeLoss, "messages": MessageLoss}
"""Heads and losses by their names in a model's record."""
