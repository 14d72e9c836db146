"""AdamW of all lanes at once, by the fused kernel of ``torch.optim.AdamW``."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from rgr_dist.engines.api import BETA_1, BETA_2, EPSILON


class AdamW:
    """The moments of some parameters, whose first dimension is the lanes, and their steps.

    Args:
        parameters: updated in place.
        decay: decoupled weight decay.
    """

    def __init__(self, parameters: Sequence[Tensor], rate: float, decay: float = 0.0) -> None:
        self.rate, self.decay = rate, decay
        self.first = [torch.zeros_like(p) for p in parameters]
        self.second = [torch.zeros_like(p) for p in parameters]
        self.steps = torch.zeros((), device=parameters[0].device)  # float32, as torch.optim has it

    def step(self, parameters: list[Tensor], gradients: list[Tensor]) -> None:
        """Take one step; works on buffers of the device alone, so it can be captured."""
        self.steps.add_(1)
        # torch.optim.AdamW(fused=True) makes this very call, with the same bits. Its own step costs
        # 100 us more, half as much again as a step of ten small lanes, and warns outside a graph.
        torch._fused_adamw_(
            parameters,
            gradients,
            self.first,
            self.second,
            [],
            [self.steps] * len(parameters),
            lr=self.rate,
            beta1=BETA_1,
            beta2=BETA_2,
            eps=EPSILON,
            weight_decay=self.decay,
            amsgrad=False,
            maximize=False,
        )

    def keep(self, index: Tensor) -> None:
        """Drop the moments of all lanes but these."""
        for moments in (self.first, self.second):
            moments[:] = [moment.index_select(0, index) for moment in moments]
