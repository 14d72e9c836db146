"""Checks that the layers that a study takes from files can be trained, before any training.

Each is tried at every d_model and context length of the study, at every head count of the search
and at three widths.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch import Tensor
from torch.func import grad, vmap

from rgr_dist.engines.layer_start import start_of
from rgr_dist.faults import UserError
from rgr_dist.models.edges import labels
from rgr_dist.models.own_layer import AttentionLayer, loss_of, make_layer, run_anew
from rgr_dist.problem.edge_task import Task
from rgr_dist.study.cell import Cell
from rgr_dist.study.run import Run
from rgr_dist.study.study import Study

WIDTHS = 1, 3
"""Values of d_k at which a layer is tried, in addition to the widest."""
WIDEST = 512
"""The largest total width of the widest heads tried, which are no wider than d_model."""
EVERY_HEAD = 1, 2, 3
"""Head counts that are tried if the search takes all of them."""
CONTEXTS = 3
"""Contexts that are scored together, as a check during training does."""
ROUNDING = 1e-4
"""How much the scores of a context may differ when it is scored together with others."""
TAKEN = "tau", "embedding", "graph", "train", "validation", "test"
"""Names that no parameter may have: ours, and those by which a problem's own data is drawn."""
LONGEST = 120
"""Characters shown of an error that a file raises."""


class LayerError(UserError, ValueError):
    """A layer's file cannot be trained; the message says at which sizes, and why."""


def check_layers(study: Study) -> None:
    """Try every layer of a study that comes from a file.

    Raises:
        LayerError: in one line, it names the layer, the sizes and what is wrong.
    """
    sizes = {
        (cell.layer, cell.d_model, cell.context.length): cell
        for cell in reversed(study.cells)
        if cell.layer is not None
    }
    heads = study.search.heads
    several = len({cell.context.length for cell in sizes.values()}) > 1
    for cell in reversed(sizes.values()):
        length = f", length = {cell.context.length}" if several else ""
        place = f"{cell.model_name} at d_model = {cell.d_model}{length}"
        for h in heads:
            for d_k in sorted({*WIDTHS, min(cell.d_model, WIDEST // h)} - {0}):
                with _within(f"{place}, h = {h}, d_k = {d_k}"):
                    _check(Run(cell=cell, h=h, d_k=d_k, seed=0))


@contextmanager
def _within(place: str) -> Iterator[None]:
    """Turn what a layer does wrong, or raises, into a one-line ``LayerError`` that names it."""
    try:
        yield
    except LayerError as error:
        raise LayerError(f"model {place}: {error}") from None
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        said = "an error without a message"
        with suppress(Exception):
            said = " ".join(str(error).split())[:LONGEST]
        raise LayerError(f"model {place}: {type(error).__name__}: {said}") from None


def _check(run: Run) -> None:
    cell, layer = run.cell, make_layer(run.cell, run.h, run.d_k)
    _check_shapes(layer)
    task, length = Task.of(cell, run.seed), cell.context.length
    nodes = torch.from_numpy(task.training_contexts(0, CONTEXTS)).long()
    X = torch.from_numpy(task.embedding).float()[nodes]
    p = _start(layer, run)
    given = [one.clone() for one in (X, *p.values())]
    S = _scores(layer, X, p, (CONTEXTS, length, length))
    if not all(map(torch.equal, given, (X, *p.values()))):
        raise LayerError("scores change the embeddings or parameters that they are given")
    if not torch.equal(S, layer.scores(X, p)):
        raise LayerError("scores differ from call to call: a layer draws no random numbers")
    again = run_anew(cell, run.h, run.d_k)
    anew = _start(again, run)
    is_same = p.keys() == anew.keys() and all(map(torch.equal, p.values(), anew.values()))
    if not is_same or not torch.equal(S, again.scores(X, p)):
        raise LayerError(
            "scores differ when the file is run again: a layer draws no random numbers"
        )
    alone = _scores(layer, X[0], p, (length, length))
    if not torch.allclose(alone, S[0], rtol=ROUNDING, atol=ROUNDING):
        raise LayerError("the scores of a context depend on those beside it: [..., l, d_model]")
    y = labels(nodes, torch.from_numpy(task.graph.table).long()).float()
    _check_gradients(layer, again, cell, X, y, p)


def _start(layer: AttentionLayer, run: Run) -> dict[str, Tensor]:
    """What a layer starts from, float32, by name."""
    return {name: torch.from_numpy(value).float() for name, value in start_of(layer, run).items()}


def _check_shapes(layer: AttentionLayer) -> None:
    shapes: Any = layer.parameters()
    if not isinstance(shapes, Mapping) or not shapes:
        raise LayerError("parameters() gives no dict of names, such as {'W': ((d, D), scale)}")
    for name, value in shapes.items():
        try:
            shape, scale = value
            sizes = [*shape]
        except (TypeError, ValueError):
            raise LayerError(f"parameter {name}: not of the form ((8, 4), 0.1)") from None
        _check_name(name)
        if not all(type(size) is int and size > 0 for size in sizes):
            raise LayerError(f"parameter {name}: shape {tuple(sizes)} is not of positive int")
        if not isinstance(scale, float | int) or not 0 <= scale < math.inf:
            raise LayerError(f"parameter {name}: scale {scale} is not a number from 0")
    for name in getattr(layer, "drawn", ()):
        _check_name(name)
    cached = getattr(layer, "cached", None)
    if cached is not None and not (type(cached()) is int and 0 <= cached() < 2**63):
        raise LayerError(f"cached() is {cached()!r}, not how many numbers each token has")


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or name in TAKEN:
        raise LayerError(f"parameter {name!r}: not a name of its own; taken: {', '.join(TAKEN)}")


def _scores(
    layer: AttentionLayer, X: Tensor, p: Mapping[str, Tensor], wanted: tuple[int, ...]
) -> Tensor:
    """Scores of contexts, after checking their type, shape and dtype, and that they are finite."""
    S: Any = layer.scores(X, p)
    if not isinstance(S, Tensor):
        raise LayerError(f"scores are of type {type(S).__name__}, not a tensor")
    if S.shape != wanted:
        raise LayerError(
            f"scores have shape {tuple(S.shape)} of embeddings {tuple(X.shape)}; "
            f"{tuple(wanted)} is wanted"
        )
    if S.dtype != X.dtype:
        raise LayerError(f"scores are {S.dtype} of embeddings {X.dtype}")
    if not torch.isfinite(S).all():
        raise LayerError("scores are not finite at the first weights")
    return S


def _check_gradients(
    layer: AttentionLayer,
    again: AttentionLayer,
    cell: Cell,
    X: Tensor,
    y: Tensor,
    p: Mapping[str, Tensor],
) -> None:
    """Check that the loss gives every parameter a gradient, by autograd and as the lanes do it.

    Args:
        again: the layer from another run of its file.
    """
    loss = loss_of(layer, cell.training.sharpness, cell.graph.balanced)
    tau = torch.zeros(())
    leaves = {name: value.clone().requires_grad_() for name, value in p.items()}
    value: Any = loss(layer.scores(X[0], leaves), y[0], tau)
    if not isinstance(value, Tensor) or value.shape != ():
        raise LayerError("the loss of a context is not a single number")
    anew = loss_of(again, cell.training.sharpness, cell.graph.balanced)
    for told, own in (("from call to call", loss), ("when the file is run again", anew)):
        if not torch.equal(value, own(layer.scores(X[0], leaves), y[0], tau)):
            raise LayerError(f"the loss differs {told}: a layer draws no random numbers")
    trained = [*layer.parameters()]
    found: Mapping[str, Tensor | None] = dict.fromkeys(trained)
    if value.requires_grad:
        inputs = [leaves[name] for name in trained]
        gradients = torch.autograd.grad(value, inputs, allow_unused=True)
        found = dict(zip(trained, gradients, strict=True))
    for name, gradient in found.items():
        if gradient is None:
            raise LayerError(f"parameter {name} gets no gradient from the loss")
        if not torch.isfinite(gradient).all():
            raise LayerError(f"the gradient of {name} is not finite at the first weights")
    if not any(gradient.any() for gradient in found.values() if gradient is not None):
        raise LayerError("every gradient is zero at the first weights")

    def loss_of_context(p: dict[str, Tensor], X: Tensor, y: Tensor) -> Tensor:
        return loss(layer.scores(X, p), y, tau)

    lanes = {name: torch.stack([value] * len(X)) for name, value in p.items()}
    together = vmap(grad(loss_of_context))(lanes, X, y)
    for name, gradient in found.items():
        one = together[name][0]
        if gradient is not None and not torch.allclose(one, gradient, rtol=1e-2, atol=ROUNDING):
            raise LayerError(f"the gradient of {name} is another under torch.func")
