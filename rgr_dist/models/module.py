"""A torch module as a layer: a file may hold one in place of a class of this project's form.

Its ``forward`` returns the scores, or the attention weights, of all pairs of each context of a
batch. It keeps its authors' initialisation, and runs in evaluation mode, without dropout.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

AT_ONCE = 8
"""Contexts that a module scores at once: one that keeps a cache may have made it for few."""


class ModuleLayer:
    """The module of one seed. It is trained itself, so whatever it keeps is its own.

    Args:
        make: makes a new module at each call.
        seed: of torch's random numbers while it is made; others are not changed.
        length, d_model: of the contexts that it scores.

    Attributes:
        theta: its own parameters that reach the scores, by name. Those that do not, such as those
            of values, stay as they are and do not count as the layer's.
    """

    def __init__(self, make: Callable[[], nn.Module], seed: int, length: int, d_model: int) -> None:
        torch.backends.mha.set_fastpath_enabled(False)  # it rounds differently from training
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.module = make().eval().float()
        named = {name: p for name, p in self.module.named_parameters() if p.requires_grad}
        scores = self(torch.ones(1, length, d_model))
        reached = torch.autograd.grad(scores.square().sum(), [*named.values()], allow_unused=True)
        pairs = zip(named.items(), reached, strict=True)
        self.theta = {name: p for (name, p), gradient in pairs if gradient is not None}
        for own in ("cached", "loss"):
            if hasattr(self.module, own):
                setattr(self, own, getattr(self.module, own))

    def __call__(self, X: Tensor) -> Tensor:
        """What its ``forward`` returns, [b, l, l] of contexts [b, l, d_model]."""
        scores: Tensor = self.module(X)
        if not isinstance(scores, Tensor):
            raise TypeError(
                f"forward returns {type(scores).__name__}, not a tensor; return the scores alone"
            )
        for buffer in self.module.buffers():  # what it keeps is not trained through
            buffer.detach_()
        return scores

    def to(self, device: torch.device, dtype: torch.dtype) -> dict[str, nn.Parameter]:
        """Move the module, and return ``theta``; complex buffers stay complex."""
        self.module.to(device)
        if dtype == torch.float64:
            self.module.double()
        named = dict(self.module.named_parameters())
        self.theta = {name: named[name] for name in self.theta}
        return self.theta

    def parameters(self) -> dict[str, tuple[tuple[int, ...], float]]:
        """Shapes of what is trained; deviations are 0, since the module draws its own values."""
        return {name: (tuple(p.shape), 0.0) for name, p in self.theta.items()}

    def scores(self, X: Tensor, p: Mapping[str, Tensor]) -> Tensor:
        """The module's scores [b, l, l] of contexts [b, l, d_model], or [l, l] of one context."""
        if X.dim() == 2:
            return self(X[None])[0]
        return torch.cat([self(some) for some in X.split(AT_ONCE)])
