"""An attention layer from the text of a file: what such a file holds, and how it becomes a layer.

The file has one class, whose first fields are d_model, h and d_k; its other fields are keys that a
study sets. It says what its parameters are and how they score pairs; the rest is as in every model:
task, contexts, the threshold tau, training, stopping, search. ``study.layer_file`` reads its keys
without running it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from types import ModuleType
from typing import Any, Protocol

from torch import Tensor, nn

from rgr_dist.models.edges import weighted_logistic_loss
from rgr_dist.models.module_layer import ModuleLayer
from rgr_dist.study import assets
from rgr_dist.study.cell import Cell
from rgr_dist.study.layer import Layer

Shapes = Mapping[str, tuple[tuple[int, ...], float]]
"""The shape of each parameter, by name, and the deviation of its entries at the start."""
Parameters = Mapping[str, Tensor]
"""Parameters of one layer by name."""


class AttentionLayer(Protocol):
    """What the class of a file must have; ``cached`` and ``loss`` are optional.

    ``cached()`` says how many numbers a decoder keeps for each token. ``loss(scores, edges, tau)``
    replaces the paper's loss of one context: a scalar from [l, l], [l, l] (1 at an edge, else 0)
    and [].
    """

    def parameters(self) -> Shapes:
        """Its parameters: entries are normal with mean 0 at the start."""

    def scores(self, X: Tensor, p: Parameters) -> Tensor:
        """Scores of all pairs, [..., l, l], rows are sources.

        Args:
            X: embeddings of the items of contexts, [..., l, d_model].
            p: the parameters by name, each of its own shape.
        """


def make_layer(cell: Cell, h: int, d_k: int) -> AttentionLayer:
    """The layer of a cell with h heads of width d_k; raises as ``class_of`` and its file do."""
    assert cell.layer is not None
    return class_of(cell.layer, cell.context.length)(d_model=cell.d_model, h=h, d_k=d_k)


def run_anew(cell: Cell, h: int, d_k: int) -> AttentionLayer:
    """The same layer from a new run of its file; equal, unless the file draws random numbers."""
    assert cell.layer is not None
    one = _run(cell.layer.digest, cell.layer.name)
    made = _made_by(cell.layer, one, cell.context.length)
    return made(d_model=cell.d_model, h=h, d_k=d_k)


@cache
def class_of(layer: Layer, length: int) -> Callable[..., AttentionLayer]:
    """The class of a layer's file with the layer's keys; it takes d_model, h and d_k.

    Args:
        length: the number of items of the contexts that it scores.

    Raises:
        AssetError: the text of the file is not loaded in this process.
        Exception: whatever the text raises when it is run.
    """
    return _made_by(layer, _class(layer.digest, layer.name), length)


def _made_by(layer: Layer, made: Any, length: int) -> Callable[..., AttentionLayer]:
    """A class with a layer's keys filled in; a torch module is made once for each size."""
    keys = dict(layer.keys)
    if not issubclass(made, nn.Module):
        own: Callable[..., AttentionLayer] = partial(made, **keys)
        return own

    @cache
    def module(d_model: int, h: int, d_k: int) -> AttentionLayer:
        return ModuleLayer(lambda: made(d_model, h, d_k, **keys), d_model, length)

    return module


def _run(digest: str, name: str) -> Callable[..., AttentionLayer]:
    """A class from the text of its file, which is run as a module of its own."""
    text = assets.get(digest).tobytes().decode()
    module = ModuleType(f"rgr_layer_{digest[:16]}")
    sys.modules[module.__name__] = module  # where dataclasses look for it
    exec(compile(text, f"<{name}>", "exec"), module.__dict__)
    made: Callable[..., AttentionLayer] = module.__dict__[name]
    return made


_class = cache(_run)


def loss_of(
    layer: AttentionLayer, sharpness: float, balanced: bool
) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """The loss of one context from its scores, its edges as 0 and 1, and tau.

    Args:
        sharpness, balanced: for the paper's loss, used if the layer has none of its own.
    """
    if hasattr(layer, "loss"):
        own: Callable[[Tensor, Tensor, Tensor], Tensor] = layer.loss
        return own
    return partial(weighted_logistic_loss, sharpness=sharpness, balanced=balanced)


def paid(layer: AttentionLayer) -> tuple[int, int | None]:
    """What a layer costs: how many numbers are trained, not counting tau, and how many are cached.

    A decoder keeps the cached numbers for each token; None if the layer does not say.
    """
    cached: Callable[[], int] | None = getattr(layer, "cached", None)
    trained = sum(math.prod(shape) for shape, _ in layer.parameters().values())
    return trained, None if cached is None else cached()
