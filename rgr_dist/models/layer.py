"""What an attention layer is: max and softmax, those of the zoo, and one from a user's file.

A file has one class, whose first fields are d_model, h and d_k; its other fields are keys that a
study sets. It says what its parameters are and how they score pairs; the rest is as in every model:
task, contexts, the threshold tau, training, stopping, search. A torch module may take its place
(``models.module``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, Protocol

from torch import Tensor, nn

from rgr_dist.models.edges import weighted_logistic_loss
from rgr_dist.models.module import ModuleLayer
from rgr_dist.models.zoo.max import Max
from rgr_dist.models.zoo.softmax import Softmax
from rgr_dist.study import assets
from rgr_dist.study.layer import Layer
from rgr_dist.study.layer_file import class_of
from rgr_dist.study.run import Run

Shapes = Mapping[str, tuple[tuple[int, ...], float]]
"""The shape of each parameter, by name, and the deviation of its entries at the start."""
Parameters = Mapping[str, Tensor]
"""Parameters of one layer by name."""
PAPERS: Mapping[str, Callable[..., Any]] = {"max": Max, "softmax": Softmax, "value": Max}
"""The layers of the paper's models, by model."""


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


def make_layer(run: Run, seed: int = 0, anew: bool = False) -> AttentionLayer:
    """The layer of a run.

    Args:
        seed: of torch's random numbers while a module is made.
        anew: whether to run the layer's file again.

    Raises:
        AssetError: the text of the file is not loaded in this process.
        Exception: whatever the text raises when it is run.
    """
    sizes, spec = (run.cell.d_model, run.h, run.d_k), run.cell.layer
    if spec is None:
        paper: AttentionLayer = PAPERS[run.cell.model](*sizes)
        return paper
    of = (_run if anew else _class)(spec)
    if issubclass(of, nn.Module):
        make = partial(of, *sizes, **dict(spec.keys))
        return ModuleLayer(make, seed, run.cell.context.length, run.cell.d_model)
    own: AttentionLayer = of(*sizes, **dict(spec.keys))
    return own


def _run(layer: Layer) -> type[Any]:
    return class_of(assets.get(layer.digest).tobytes().decode())


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
