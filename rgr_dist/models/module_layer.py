"""A torch module as a layer: a file may hold one in place of a class of this project's form.

Its ``forward`` returns the scores, or the attention weights, of all pairs of each context of a
batch. It keeps its authors' initialisation, and runs in evaluation mode, without dropout.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from copy import deepcopy

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.func import functional_call

ROUNDING = 1e-4
"""By how much scores of the same tensors may differ."""


class ModuleLayer:
    """A module at one size, as a layer of ``models.own_layer``.

    Parameters that do not reach the scores, such as those of values, stay as they are and do not
    count as the layer's; nor do frozen parameters and buffers. Those of the latter that are random
    are drawn for each seed.

    Args:
        make: makes a new module at each call.
        d_model: the width of the embeddings that it takes.
        length: the number of items of the contexts that it scores.

    Attributes:
        names: the trained parameters.
        drawn: the dtypes of the random buffers and frozen parameters, by name.

    Raises:
        ValueError: its scores depend on random numbers that cannot be drawn for each seed.
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
        self.drawn = self._drawn(torch.randn(1, length, d_model, generator=torch.Generator()))
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

    def _drawn(self, X: Tensor) -> dict[str, torch.dtype]:
        """The dtypes of what is not trained, and changes the scores of X from seed to seed.

        Raises:
            ValueError: it cannot be drawn for each seed, or is no parameter or buffer.
        """
        module, anew = self._made(0), self._made(1)
        here, there = _tensors(module), _tensors(anew)

        def gives(changed: Collection[str]) -> Tensor:
            given = {name: there[name] for name in changed}
            scores: Tensor = functional_call(module, given, (X,))
            return scores

        drawn = {}
        with torch.no_grad():
            for name in (one for one in here if one not in self.names):
                is_kept = here[name].shape == there[name].shape
                if is_kept and _alike(gives([name]), gives([])):
                    continue
                if not here[name].is_floating_point():  # start gives numbers of float32
                    is_kept &= torch.equal(there[name].float().to(there[name].dtype), there[name])
                if not is_kept:
                    raise ValueError(
                        f"{name} is random, and has no fixed shape or no numbers of float32"
                    )
                drawn[name] = here[name].dtype
            if not _alike(gives([*self.names, *drawn]), anew(X), ROUNDING):
                raise ValueError(
                    "its scores depend on random numbers that are not trained: keep them in "
                    "buffers or frozen parameters"
                )
        return drawn

    def parameters(self) -> dict[str, tuple[tuple[int, ...], float]]:
        """Shapes of what reaches the scores; deviations are 0, since ``start`` gives the values."""
        named = dict(self.module.named_parameters())
        return {name: (tuple(named[name].shape), 0.0) for name in self.names}

    def start(self, seed: int) -> dict[str, npt.NDArray[np.float64]]:
        """What is trained or drawn, as the module's own initialisation gives it from a seed."""
        named = _tensors(self._made(seed))
        return {name: named[name].double().numpy() for name in (*self.names, *self.drawn)}

    def hold(self, X: Tensor) -> None:
        """Keep a copy with the type and device of X, made outside torch.func, which forbids it."""
        kind = X.dtype, X.device
        if kind not in self.held:
            self.held[kind] = deepcopy(self.module).to(X.device, X.dtype)

    def scores(self, X: Tensor, p: Mapping[str, Tensor]) -> Tensor:
        """The module's scores [b, l, l] of contexts [b, l, d_model], or [l, l] of one context.

        Args:
            p: what ``start`` returns, by name; only trained parameters get gradients.
        """
        contexts = X[None] if X.dim() == 2 else X
        self.hold(X)
        module, given = self.held[X.dtype, X.device], dict(p)
        for name, kind in self.drawn.items():
            given[name] = given[name].detach().to(X.dtype if kind.is_floating_point else kind)
        scores: Tensor = functional_call(module, given, (contexts,))
        return scores[0] if X.dim() == 2 else scores


def _tensors(module: nn.Module) -> dict[str, Tensor]:
    """The parameters and buffers of a module, by name."""
    named = [*module.named_parameters(), *module.named_buffers()]
    return {name: tensor.detach() for name, tensor in named}


def _alike(one: Tensor, other: Tensor, tolerance: float = 0.0) -> bool:
    """Whether two tensors are equal, also in what is no number."""
    return torch.allclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True)
