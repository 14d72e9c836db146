"""What the models of Sec. 6, 7.1 and 7.2 make of the heads' scores, and the gradient of that.

A step of training asks for one thing: from the scores of all heads, dL/dS of them. It is the
work of two pieces, how heads are combined (their maximum, or their summed softmax) and what is
asked of a pair's combined score S(p, q) (to tell edges, or to mix messages). Gradients are
written out by hand. Padded items get a pull of exactly zero.

Pieces work on buffers of their own, allocated for so many lanes. Shapes in names: L lanes, l
items of a context, h heads, v = width of a message; all padded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

if TYPE_CHECKING:
    from rgr_dist.engines.lanes.state import Lanes


class Heads(Protocol):
    """How the scores of heads become one."""

    def combine(self, S_Lhll: Tensor) -> Tensor:
        """Combined scores, [L, l, l]; keeps or changes ``S_Lhll`` as its gradient needs it."""

    def spread(self, G_Lll: Tensor, S_Lhll: Tensor) -> None:
        """Turn what ``combine`` left in ``S_Lhll`` into dL/dS, from dL/d(combined score)."""


class Demand(Protocol):
    """What is asked of combined scores."""

    def pull(self, S_Lll: Tensor, tau_L: Tensor, tau_gradient_L: Tensor) -> Tensor:
        """dL/dS of combined scores, [L, l, l]; writes dL/dtau if there is a threshold."""


class MaxOverHeads:
    """The maximum: only the winning head of a pair is pulled; heads that tie share it (Sec. 6)."""

    def __init__(self, lanes: Lanes) -> None:
        shape = len(lanes), lanes.contexts.length, lanes.contexts.length
        self.S_Lll, self.winners = (lanes.parameters[0].new_empty(shape) for _ in range(2))

    def combine(self, S_Lhll: Tensor) -> Tensor:
        """S_max of every pair."""
        return torch.amax(S_Lhll, 1, out=self.S_Lll)

    def spread(self, G_Lll: Tensor, S_Lhll: Tensor) -> None:
        """The pull of a pair, at its winners."""
        wins = S_Lhll.eq_(self.S_Lll.unsqueeze(1))  # 1 or 0, as numbers
        G_Lll.div_(torch.sum(wins, 1, out=self.winners))
        wins.mul_(G_Lll.unsqueeze(1))


class SoftmaxSum:
    """Softmax over the context of S / sqrt(d_k), summed over heads (Sec. 7.1 and 8)."""

    def __init__(self, lanes: Lanes) -> None:
        L, length, like = len(lanes), lanes.contexts.length, lanes.parameters[0]
        roots = torch.tensor(lanes.widths).to(like).rsqrt()
        self.scale_L111 = roots.view(L, 1, 1, 1)  # each lane's own d_k, not what it is padded to
        self.absent_l = like.new_zeros(length)
        self.absent_l[lanes.cell.context.length :] = -torch.inf
        self.A_Lhll = like.new_empty(L, lanes.h, length, length)
        self.A_Lll = like.new_empty(L, length, length)
        self.mean_Lhl1 = like.new_empty(L, lanes.h, length, 1)

    def combine(self, S_Lhll: Tensor) -> Tensor:
        """Summed attention of every pair; none goes to what is not in the context."""
        S_Lhll.mul_(self.scale_L111).add_(self.absent_l)
        torch.softmax(S_Lhll, 3, out=self.A_Lhll)
        return torch.sum(self.A_Lhll, 1, out=self.A_Lll)

    def spread(self, G_Lll: Tensor, S_Lhll: Tensor) -> None:
        """A (G - sum over q of A G), and the scale."""
        torch.mul(self.A_Lhll, G_Lll.unsqueeze(1), out=S_Lhll)
        torch.sum(S_Lhll, 3, keepdim=True, out=self.mean_Lhl1)
        S_Lhll.addcmul_(self.A_Lhll, self.mean_Lhl1, value=-1).mul_(self.scale_L111)


class Edges:
    """To be above tau where there is an edge: the weighted logistic loss of App. A.1."""

    def __init__(self, lanes: Lanes) -> None:
        self.contexts = lanes.contexts
        self.length, self.alpha = lanes.cell.context.length, lanes.cell.training.sharpness
        like, length = lanes.parameters[0], lanes.contexts.length
        shape = len(lanes), length, length
        self.G: Tensor = like.new_empty(shape)
        self.factor = like.new_empty(shape)
        real = torch.arange(length, device=like.device) < self.length
        pairs = (real.unsqueeze(1) & real).to(like.dtype)
        self.sharpness = torch.full_like(pairs, self.alpha)
        self.slope = pairs * (self.alpha / self.length**2)

    def pull(self, S_Lll: Tensor, tau_L: Tensor, tau_gradient_L: Tensor) -> Tensor:
        """Alpha / l^2 times sigmoid(z) at no edge, times -weight sigmoid(-z) at an edge."""
        G, factor, y = self.G, self.factor, self.contexts.y_Lll
        boost = self.contexts.labels.boost_L  # 1 + weight; None: l
        torch.add(self.sharpness, y, alpha=-2 * self.alpha, out=factor)
        torch.sub(S_Lll, tau_L.view(-1, 1, 1), out=G).mul_(factor).sigmoid_()
        if boost is None:
            torch.addcmul(self.slope, self.slope, y, value=-self.length, out=factor)
        else:
            torch.mul(y, boost, out=factor)
            torch.addcmul(self.slope, self.slope, factor, value=-1, out=factor)
        G.mul_(factor)
        torch.sum(G, (1, 2), out=tau_gradient_L).neg_()
        return G


class Messages:
    """To mix the target's message out of all: the squared error of Sec. 7.2, eq. (4)."""

    def __init__(self, lanes: Lanes) -> None:
        L, length, new = len(lanes), lanes.contexts.length, lanes.parameters[0].new_empty
        self.contexts = lanes.contexts
        self.G: Tensor = new(L, length, length)
        self.error_Llv = torch.empty_like(lanes.contexts.V_Llv)
        self.counts_Ll1, self.weight_L11 = new(L, length, 1), new(L, 1, 1)

    def pull(self, S_Lll: Tensor, tau_L: Tensor, tau_gradient_L: Tensor) -> Tensor:
        """2 / n times error times message, at the n positions whose target is in the context."""
        y, V = self.contexts.y_Lll, self.contexts.V_Llv
        torch.amax(y, 2, keepdim=True, out=self.counts_Ll1)
        torch.sum(self.counts_Ll1, 1, keepdim=True, out=self.weight_L11)
        self.weight_L11.clamp_(min=1).reciprocal_().mul_(2)
        torch.sub(S_Lll, y, out=self.G).mul_(self.counts_Ll1)
        torch.bmm(self.G, V, out=self.error_Llv)
        torch.bmm(self.error_Llv, V.transpose(1, 2), out=self.G)
        return self.G.mul_(self.weight_L11)


def make_pull(lanes: Lanes) -> tuple[Heads, Demand]:
    """The two pieces of the lanes' model, with room for the present lanes."""
    heads = SoftmaxSum(lanes) if lanes.cell.model == "softmax" else MaxOverHeads(lanes)
    demand = Messages(lanes) if lanes.cell.model == "value" else Edges(lanes)
    return heads, demand
