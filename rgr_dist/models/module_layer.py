"""A torch module as a layer: a file may hold one in place of a class of this project's form.

Its ``forward`` returns the scores, or the attention weights, of all pairs of each context of a
batch. It keeps its authors' initialisation, and runs in evaluation mode, without dropout.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.func import functional_call


class ModuleLayer:
    """A module at one size, as a layer of ``models.own_layer``.

    Parameters that do not reach the scores, such as those of values, stay as they are and do not
    count as the layer's; nor do frozen parameters and buffers.

    Args:
        make: makes a new module at each call.
        d_model: the width of the embeddings that it takes.
        length: the number of items of the contexts that it scores.
    """

    def __init__(self, make: Callable[[], nn.Module], d_model: int, length: int) -> None:
        self.make = make
        torch.backends.mha.set_fastpath_enabled(False)  # it rounds differently from training
        self.module = self._made(0)
        every = self.module.named_parameters()
        named = {name: parameter for name, parameter in every if parameter.requires_grad}
        scores = self.module(torch.ones(1, length, d_model))
        found = torch.autograd.grad(scores.square().sum(), [*named.values()], allow_unused=True)
        reached = dict(zip(named, found, strict=True))
        self.names = [name for name, gradient in reached.items() if gradient is not None]
        self.module.requires_grad_(False)
        # What does not reach the scores is still computed, in the same type as the rest.
        self.held: dict[tuple[torch.dtype, torch.device], nn.Module] = {}
        for own in ("cached", "loss"):
            if hasattr(self.module, own):
                setattr(self, own, getattr(self.module, own))

    def _made(self, seed: int) -> nn.Module:
        """The module as initialised from a seed, without a change to other random numbers."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return self.make().eval()

    def parameters(self) -> dict[str, tuple[tuple[int, ...], float]]:
        """Shapes of what reaches the scores; deviations are 0, since ``start`` gives the values."""
        named = dict(self.module.named_parameters())
        return {name: (tuple(named[name].shape), 0.0) for name in self.names}

    def start(self, seed: int) -> dict[str, npt.NDArray[np.float64]]:
        """The parameters as the module's own initialisation draws them from a seed."""
        named = dict(self._made(seed).named_parameters())
        return {name: named[name].detach().double().numpy() for name in self.names}

    def hold(self, X: Tensor) -> None:
        """Keep a copy with the type and device of X, made outside torch.func, which forbids it."""
        kind = X.dtype, X.device
        if kind not in self.held:
            self.held[kind] = deepcopy(self.module).to(X.device, X.dtype)

    def scores(self, X: Tensor, p: Mapping[str, Tensor]) -> Tensor:
        """The module's scores [b, l, l] of contexts [b, l, d_model], or [l, l] of one context."""
        contexts = X[None] if X.dim() == 2 else X
        self.hold(X)
        module = self.held[X.dtype, X.device]
        scores: Tensor = functional_call(module, dict(p), (contexts,))
        return scores[0] if X.dim() == 2 else scores
