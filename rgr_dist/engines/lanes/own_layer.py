"""The training state of lanes of a layer of its own file: differentiated and compiled by torch.

The gradient is that of torch.func, over the lanes, and torch.compile makes a program of it for each
width, for any number of lanes. At a d_k of 1 torch 2.13's crashes at some sizes: there, and where
there is no C++ compiler, torch takes each operation by itself, some three times as slow. A torch
module is never compiled.

A layer sees its contexts as they are, without padding. A kernel of torch's may then take the
numbers of a lane in its vectorised body or in its scalar tail, by the lane's place. A compiled one
has no such tail; without, one lane is taken after another where contexts are no whole registers. On
a GPU the step is not captured.

Shapes in names: L lanes, l items of a context, d = d_model, n contexts, m items.
"""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import FunctionType
from typing import NamedTuple

import torch
from torch import Tensor
from torch.func import grad, vmap

from rgr_dist.engines.api import Weights
from rgr_dist.engines.lanes.adamw import AdamW
from rgr_dist.engines.lanes.batches import BLOCK, REGISTER, Batches, padded
from rgr_dist.engines.layer_start import start_of
from rgr_dist.engines.schedule import learning_rates
from rgr_dist.models.module_layer import ModuleLayer
from rgr_dist.models.own_layer import (
    AttentionLayer,
    Parameters,
    class_of,
    loss_of,
    make_layer,
)
from rgr_dist.problem.edge_task import Task
from rgr_dist.study.cell import Cell, Run
from rgr_dist.study.layer import Layer

FIRST_LANES = 10
"""Lanes for which a step is compiled first."""

Theta = dict[str, Tensor]
"""Parameters of every lane by name, tau last, or their gradients."""
Gradients = Callable[[Theta, Tensor, Tensor], Theta]
"""Of every lane's parameters from embeddings [L, l, d] and edges as 0 and 1, [L, l, l]."""


class Sizes(NamedTuple):
    """Of a context and of a layer, for which a step is compiled."""

    length: int
    d_model: int
    h: int
    d_k: int


class Layout(NamedTuple):
    """Where each parameter stands in a lane's row of numbers, from a whole register on.

    So the optimiser takes every lane's numbers alike, whichever row they are in.

    Attributes:
        places: by name where it begins, and its shape.
        size: numbers of a row.
    """

    places: Mapping[str, tuple[int, tuple[int, ...]]]
    size: int

    @classmethod
    def of(cls, shapes: Mapping[str, tuple[int, ...]]) -> Layout:
        """That of a layer's parameters, and tau."""
        places, size = dict[str, tuple[int, tuple[int, ...]]](), 0
        for name, shape in {**shapes, "tau": ()}.items():
            places[name] = size, shape
            size += padded(math.prod(shape), REGISTER)
        return cls(places, size)

    def views(self, rows: Tensor) -> Theta:
        """The parameters of lanes [L, size], by name."""
        return {
            name: rows[:, first : first + math.prod(shape)].unflatten(1, shape)
            if shape
            else rows[:, first]
            for name, (first, shape) in self.places.items()
        }


class OwnLane(NamedTuple):
    """One lane, to be scored."""

    X_md: Tensor
    layer: AttentionLayer
    p: Parameters
    tau: Tensor
    h: int

    def scores(self, nodes_nl: Tensor) -> Tensor:
        """Scores of the pairs of contexts, [n, l, l]."""
        with torch.no_grad():
            return self.layer.scores(self.X_md[nodes_nl], self.p)


class OwnLanes:
    """Training state of several runs that advance together.

    Attributes:
        indices: which of the runs each lane trains.
        theta, gradients: parameters of all lanes, tau last, as ``layout`` has them.
        p, gradient: the same by name.

    Raises:
        ValueError: the runs differ in more than their seed.
    """

    def __init__(
        self,
        runs: Sequence[Run],
        device: torch.device,
        dtype: torch.dtype,
        compiled: bool | None = None,
    ) -> None:
        self.cell, self.h, self.d_k = runs[0].cell, runs[0].h, runs[0].d_k
        if any((run.cell, run.h, run.d_k) != (self.cell, self.h, self.d_k) for run in runs):
            raise ValueError("lanes of one program must share the cell, h and d_k")
        self.indices, self.device, self.steps = list(range(len(runs))), device, 0
        by_seed = {run.seed: Task.of(run.cell, run.seed) for run in runs}
        self.tasks = [by_seed[run.seed] for run in runs]
        self.batches = Batches(self.tasks, device, dtype)
        self.own_layer = make_layer(self.cell, self.h, self.d_k)
        shapes = self.own_layer.parameters()
        self.layout = Layout.of({name: shape for name, (shape, _) in shapes.items()})
        self.theta = torch.zeros(len(runs), self.layout.size, dtype=dtype)
        for lane, run in enumerate(runs):
            for name, start in start_of(self.own_layer, run).items():
                self.layout.views(self.theta)[name][lane] = torch.from_numpy(start)
        self.theta = self.theta.to(device)
        self.adamw = AdamW([self.theta], self.cell.training)
        compiled = (has_compiler() if compiled is None else compiled) and self.d_k > 1
        compiled &= not isinstance(self.own_layer, ModuleLayer)  # a module is run as it is
        self.gradients_of = gradients_of(self.cell, self.h, self.d_k, compiled)
        self.together = compiled or self.cell.context.length % REGISTER == 0
        self._view()

    def _view(self) -> None:
        """Name the numbers of every lane, and of its gradient, once for all steps."""
        self.gradients = torch.zeros_like(self.theta)
        self.p, self.gradient = map(self.layout.views, (self.theta, self.gradients))

    def __len__(self) -> int:
        return len(self.indices)

    def advance(self, steps: int) -> None:
        """Take so many training steps in every lane."""
        for done in range(0, steps, BLOCK):
            count = min(BLOCK, steps - done)
            self.batches.load(self.steps, count)
            for rate in learning_rates(self.cell.training, self.steps, count):
                self.adamw.take_rate(rate)
                self._step()
            self.steps += count

    def _step(self) -> None:
        self.batches.advance()
        length, d = self.cell.context.length, self.cell.d_model
        X_Lld = self.batches.X_Lld[:, :length, :d].contiguous()
        y_Lll = self.batches.y_Lll[:, :length, :length].contiguous()
        if self.together and len(self) > 1:
            found = self.gradients_of(self.p, X_Lld, y_Lll)
            for name, gradient in self.gradient.items():
                gradient.copy_(found[name])
        else:
            for lane in range(len(self)):
                self._differentiate(lane, X_Lld[lane], y_Lll[lane])
        self.adamw.step([self.theta], [self.gradients])

    def _differentiate(self, lane: int, X_ld: Tensor, y_ll: Tensor) -> None:
        """Fill in the gradient of one lane, as of two: one would have a program of its own.

        That would round in its own way.
        """
        twice = (torch.stack([one, one]) for one in (self.theta[lane], X_ld, y_ll))
        theta, X_Lld, y_Lll = twice
        found = self.gradients_of(self.layout.views(theta), X_Lld, y_Lll)
        for name, gradient in self.gradient.items():
            gradient[lane].copy_(found[name][0])

    def keep(self, lanes: Sequence[int]) -> None:
        """Drop every lane that is not listed."""
        index = torch.tensor(lanes, device=self.device)
        self.batches.keep(lanes)
        self.indices = [self.indices[lane] for lane in lanes]
        self.tasks = self.batches.tasks
        self.theta = self.theta.index_select(0, index)
        self.adamw.keep(index)
        self._view()

    def is_finite(self) -> list[bool]:
        """Whether every parameter of each lane is a number."""
        return [bool(value) for value in torch.isfinite(self.theta).all(1).tolist()]

    def tau(self, lane: int) -> float:
        """The learned threshold of a lane."""
        return float(self.p["tau"][lane])

    def weights(self, lane: int) -> Weights:
        """The parameters of a lane, by name."""
        return {name: p[lane].cpu().numpy().copy() for name, p in self.p.items()}

    def layer(self, lane: int) -> OwnLane:
        """A lane, to be scored."""
        p = {name: value[lane].clone() for name, value in self.p.items()}
        X_md = self.batches.X_Lmd[lane, :, : self.cell.d_model].contiguous()
        return OwnLane(X_md, self.own_layer, p, p.pop("tau"), self.h)


@cache
def has_compiler() -> bool:
    """Whether this machine has a compiler of C++, which torch.compile needs on a CPU."""
    return shutil.which(os.environ.get("CXX", "g++")) is not None


def gradients_of(cell: Cell, h: int, d_k: int, compiled: bool) -> Gradients:
    """The gradient of a cell's layer in every lane, with respect to its parameters and tau."""
    assert cell.layer is not None
    sizes = Sizes(cell.context.length, cell.d_model, h, d_k)
    make = _compiled if compiled else _gradients
    return make(cell.layer, cell.training.sharpness, cell.graph.balanced, sizes)


def _gradients(spec: Layer, sharpness: float, balanced: bool, sizes: Sizes) -> Gradients:
    """The gradient as torch.func has it."""
    layer = class_of(spec)(d_model=sizes.d_model, h=sizes.h, d_k=sizes.d_k)
    loss = loss_of(layer, sharpness, balanced)

    def loss_of_lane(theta: Theta, X: Tensor, y: Tensor) -> Tensor:
        p = {name: value for name, value in theta.items() if name != "tau"}
        return loss(layer.scores(X, p), y, theta["tau"])

    def gradients(theta: Theta, X_Lld: Tensor, y_Lll: Tensor) -> Theta:
        found: Theta = vmap(grad(loss_of_lane))(theta, X_Lld, y_Lll)
        return found

    return gradients


@cache
def _compiled(spec: Layer, sharpness: float, balanced: bool, sizes: Sizes) -> Gradients:
    """The same as one program for any number of lanes.

    It may depend on the number that comes first, so that is always the same. A layer that torch
    cannot compile is left as it is.
    """
    gradients = _gradients(spec, sharpness, balanced, sizes)
    assert isinstance(gradients, FunctionType)
    code = gradients.__code__.replace()  # programs are kept by it, so many for each
    own = FunctionType(code, gradients.__globals__, None, None, gradients.__closure__)
    compiled: Gradients = torch.compile(own)
    shapes = class_of(spec)(d_model=sizes.d_model, h=sizes.h, d_k=sizes.d_k).parameters()
    layout = Layout.of({name: shape for name, (shape, _) in shapes.items()})
    theta = layout.views(torch.zeros(FIRST_LANES, layout.size))
    X = torch.ones(FIRST_LANES, sizes.length, sizes.d_model)
    y = torch.zeros(FIRST_LANES, sizes.length, sizes.length)
    for one in (X, y, *theta.values()):
        torch._dynamo.maybe_mark_dynamic(one, 0)
    try:
        compiled(theta, X, y)
    except Exception:
        return gradients
    return compiled
