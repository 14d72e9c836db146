"""A torch module as a layer: a file may hold one in place of a class of this project's form.

Its ``forward`` gives the scores, or the weights, of all pairs of each context of a batch. It starts
as its authors start it, and is measured in evaluation mode, without dropout.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.func import functional_call

TRIED = 3
"""Items of the context by which it is found what reaches the scores."""


class ModuleLayer:
    """What ``models.own_layer`` asks of a layer, of a module at one size.

    Parameters that do not reach the scores, such as those of values, are left as they are, and are
    none of the layer's; frozen ones and buffers too.

    Args:
        make: the module, anew at each call.
        d_model: of the embeddings that it takes.
    """

    def __init__(self, make: Callable[[], nn.Module], d_model: int) -> None:
        self.make = make
        torch.backends.mha.set_fastpath_enabled(False)  # it rounds in another way than training
        self.module = self._made(0)
        every = self.module.named_parameters()
        named = {name: parameter for name, parameter in every if parameter.requires_grad}
        scores = self.module(torch.ones(1, TRIED, d_model))
        found = torch.autograd.grad(scores.square().sum(), [*named.values()], allow_unused=True)
        reached = dict(zip(named, found, strict=True))
        self.names = [name for name, gradient in reached.items() if gradient is not None]
        self.module.requires_grad_(False)
        # What does not reach the scores is computed all the same, in the type of the rest.
        self.held: dict[tuple[torch.dtype, torch.device], nn.Module] = {}
        for own in ("cached", "loss"):
            if hasattr(self.module, own):
                setattr(self, own, getattr(self.module, own))

    def _made(self, seed: int) -> nn.Module:
        """The module as it starts from a seed, which changes no other random numbers."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return self.make().eval()

    def parameters(self) -> dict[str, tuple[tuple[int, ...], float]]:
        """The shapes of what reaches the scores; deviations are 0, for ``start`` has the values."""
        named = dict(self.module.named_parameters())
        return {name: (tuple(named[name].shape), 0.0) for name in self.names}

    def start(self, seed: int) -> dict[str, npt.NDArray[np.float64]]:
        """The parameters as the module's own initialisation draws them from a seed."""
        named = dict(self._made(seed).named_parameters())
        return {name: named[name].detach().double().numpy() for name in self.names}

    def hold(self, X: Tensor) -> None:
        """Keep the module in the type and on the device of X, which torch.func forbids within."""
        kind = X.dtype, X.device
        if kind not in self.held:
            self.held[kind] = deepcopy(self.module).to(X.device, X.dtype)

    def scores(self, X: Tensor, p: Mapping[str, Tensor]) -> Tensor:
        """What the module's ``forward`` gives of [b, l, d_model]: [b, l, l], or of one context."""
        contexts = X[None] if X.dim() == 2 else X
        self.hold(X)
        module = self.held[X.dtype, X.device]
        scores: Tensor = functional_call(module, dict(p), (contexts,))
        return scores[0] if X.dim() == 2 else scores
