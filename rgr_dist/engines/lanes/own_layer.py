"""The training state of lanes of a layer of its own file: differentiated and compiled by torch.

The gradient is that of torch.func, over the lanes, and torch.compile makes one program of it for
any number of lanes, contexts and widths. A d_k of 1 would have a program of its own, and torch
2.13's crashes at some sizes: there, and where there is no C++ compiler, torch takes each operation
by itself, some three times as slow.

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
from functools import cache, partial
from types import FunctionType
from typing import NamedTuple

import torch
from torch import Tensor
from torch.func import grad, vmap

from rgr_dist.engines.api import Weights
from rgr_dist.engines.lanes.adamw import AdamW
from rgr_dist.engines.lanes.batches import BLOCK, REGISTER, Batches, padded
from rgr_dist.engines.schedule import learning_rates
from rgr_dist.models.own_layer import AttentionLayer, Parameters, class_of, loss_of, make_layer
from rgr_dist.problem.edge_task import Task, initial_parameters
from rgr_dist.study.cell import Cell, Run
from rgr_dist.study.layer import Layer

FIRST_SIZES = 10, 16, 32, 8, 6
"""L, l, d, h and d_k for which a step is compiled first: all distinct, so that none count as one.
"""

Theta = dict[str, Tensor]
"""Parameters of every lane by name, tau last, or their gradients."""
Gradients = Callable[[Theta, Tensor, Tensor], Theta]
"""Of every lane's parameters from embeddings [L, l, d] and edges as 0 and 1, [L, l, l]."""
Step = Callable[[int, int, Theta, Tensor, Tensor], Theta]
"""The same from h and d_k too."""


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
            for name, start in initial_parameters(run, shapes).items():
                self.layout.views(self.theta)[name][lane] = torch.from_numpy(start)
        self.theta = self.theta.to(device)
        self.gradients = torch.zeros_like(self.theta)
        self.adamw = AdamW([self.theta], self.cell.training)
        compiled = (has_compiler() if compiled is None else compiled) and self.d_k > 1
        self.gradients_of = gradients_of(self.cell, self.h, self.d_k, compiled)
        self.together = compiled or self.cell.context.length % REGISTER == 0

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
        every = [slice(None)] if self.together else [slice(i, i + 1) for i in range(len(self))]
        for lanes in every:
            self._differentiate(lanes, X_Lld[lanes], y_Lll[lanes])
        self.adamw.step([self.theta], [self.gradients])

    def _differentiate(self, lanes: slice, X_Lld: Tensor, y_Lll: Tensor) -> None:
        """Fill in the gradients of some lanes."""
        theta, alone = self.theta[lanes], len(X_Lld) == 1
        if alone:  # one lane would have a program of its own, which rounds in its own way
            theta, X_Lld, y_Lll = (torch.cat([one, one]) for one in (theta, X_Lld, y_Lll))
        found = self.gradients_of(self.layout.views(theta), X_Lld, y_Lll)
        for name, gradient in self.layout.views(self.gradients[lanes]).items():
            gradient.copy_(found[name][:1] if alone else found[name])

    def keep(self, lanes: Sequence[int]) -> None:
        """Drop every lane that is not listed."""
        index = torch.tensor(lanes, device=self.device)
        self.batches.keep(lanes)
        self.indices = [self.indices[lane] for lane in lanes]
        self.tasks = self.batches.tasks
        self.theta = self.theta.index_select(0, index)
        self.gradients = torch.zeros_like(self.theta)
        self.adamw.keep(index)

    def is_finite(self) -> list[bool]:
        """Whether every parameter of each lane is a number."""
        return [bool(value) for value in torch.isfinite(self.theta).all(1).tolist()]

    def tau(self, lane: int) -> float:
        """The learned threshold of a lane."""
        return float(self.layout.views(self.theta)["tau"][lane])

    def weights(self, lane: int) -> Weights:
        """The parameters of a lane, by name."""
        views = self.layout.views(self.theta)
        return {name: p[lane].cpu().numpy().copy() for name, p in views.items()}

    def layer(self, lane: int) -> OwnLane:
        """A lane, to be scored."""
        p = {name: value[lane].clone() for name, value in self.layout.views(self.theta).items()}
        X_md = self.batches.X_Lmd[lane, :, : self.cell.d_model].contiguous()
        return OwnLane(X_md, self.own_layer, p, p.pop("tau"), self.h)


@cache
def has_compiler() -> bool:
    """Whether this machine has a compiler of C++, which torch.compile needs on a CPU."""
    return shutil.which(os.environ.get("CXX", "g++")) is not None


def gradients_of(cell: Cell, h: int, d_k: int, compiled: bool) -> Gradients:
    """The gradient of a cell's layer in every lane, with respect to its parameters and tau."""
    assert cell.layer is not None
    of_layer = cell.layer, cell.training.sharpness, cell.graph.balanced
    step = _compiled(*of_layer, h == 1) if compiled else _step(*of_layer)
    return partial(step, h, d_k)


def _step(spec: Layer, sharpness: float, balanced: bool) -> Step:
    """The gradient as torch.func has it, which takes h and d_k too."""
    make = class_of(spec)

    def step(h: int, d_k: int, theta: Theta, X_Lld: Tensor, y_Lll: Tensor) -> Theta:
        layer = make(d_model=X_Lld.shape[-1], h=h, d_k=d_k)
        loss = loss_of(layer, sharpness, balanced)

        def loss_of_lane(theta: Theta, X: Tensor, y: Tensor) -> Tensor:
            p = {name: value for name, value in theta.items() if name != "tau"}
            return loss(layer.scores(X, p), y, theta["tau"])

        gradients: Theta = vmap(grad(loss_of_lane))(theta, X_Lld, y_Lll)
        return gradients

    return step


@cache
def _compiled(spec: Layer, sharpness: float, balanced: bool, one_head: bool) -> Step:
    """The same as one program for all sizes; one head has a program of its own.

    What is compiled depends a little on the sizes that come first, so these are always the same.
    A layer that torch cannot compile is left as it is.
    """
    step = _step(spec, sharpness, balanced)
    code = step.__code__.replace()  # programs are kept by it, so many for each
    own = FunctionType(code, step.__globals__, None, None, step.__closure__)
    compiled: Step = torch.compile(own, dynamic=True)
    L, length, d, h, d_k = FIRST_SIZES
    h = 1 if one_head else h
    try:
        shapes = class_of(spec)(d_model=d, h=h, d_k=d_k).parameters()
        layout = Layout.of({name: shape for name, (shape, _) in shapes.items()})
        X, y = torch.ones(L, length, d), torch.zeros(L, length, length)
        compiled(h, d_k, layout.views(torch.zeros(L, layout.size)), X, y)
    except Exception:
        return step
    return compiled
