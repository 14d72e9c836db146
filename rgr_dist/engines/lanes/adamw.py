"""AdamW of all lanes at once, by the fused kernel of ``torch.optim.AdamW``."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from rgr_dist.engines.api import BETA_1, BETA_2, EPSILON
from rgr_dist.study.training import Training


class AdamW:
    """The moments and steps of parameters whose first dimension is the lanes.

    Args:
        parameters: updated in place.
        training: gives the learning rate, schedule and decoupled weight decay.
    """

    def __init__(self, parameters: Sequence[Tensor], training: Training) -> None:
        self.decay = training.weight_decay or 0.0
        self.rate: float | Tensor = training.learning_rate
        if training.schedule != "constant":  # a captured step reads its rate from the device
            device = parameters[0].device
            wide = torch.float64 if device.type == "cpu" else torch.float32  # kernels read this
            self.rate = torch.zeros((), dtype=wide, device=device)
        self.first = [torch.zeros_like(p) for p in parameters]
        self.second = [torch.zeros_like(p) for p in parameters]
        self.steps = torch.zeros((), device=parameters[0].device)  # float32, as in torch.optim

    def take_rate(self, rate: float) -> None:
        """Use this learning rate from here on; to be called outside a capture."""
        if isinstance(self.rate, Tensor):
            self.rate.fill_(rate)

    def step(self, parameters: list[Tensor], gradients: list[Tensor]) -> None:
        """Take one step; works only on buffers of the device, so it can be captured."""
        self.steps.add_(1)
        # torch.optim.AdamW(fused=True) makes this very call, with the same bits. Its own step costs
        # 100 us more, half the time of a step of ten small lanes, and warns outside a graph.
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
