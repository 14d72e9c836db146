"""The step of a layer from a file: differentiated and compiled by torch.

A step of all lanes (drawing contexts, the gradient by torch.func, AdamW) is one program of
torch.compile for each width and for any number of lanes from two up. Where torch makes that number
a constant (as it does for ``layer_norm`` and ``cat``), each program takes ten lanes, some of them
repeated. Without a C++ compiler, torch runs each operation by itself, which is six times as slow or
more. A torch module is never compiled.

Shapes in names: L lanes, l items of a context, d = d_model, B steps of a block, R items of all
lanes, r = the most out-neighbours of an item.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import cache, partial
from types import FunctionType
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.func import grad, vmap

from rgr_dist.engines.api import BETA_1, BETA_2, EPSILON
from rgr_dist.engines.lanes.batches import BLOCK
from rgr_dist.models.own_layer import class_of, loss_of
from rgr_dist.study.layer import Layer

FIRST_LANES = 10
"""Lanes with which a step is compiled; the program then takes any number, or only this one."""

Theta = dict[str, Tensor]
"""Parameters of every lane by name, tau among them, or their gradients or moments: [L, …]."""
State = tuple[Theta, Theta, Theta]
"""Parameters, first and second moments."""
Update = Callable[[State, Tensor, Tensor, Tensor], State]
"""A step of AdamW from embeddings [L, l, d], edges as 0 and 1 [L, l, l], and ``adamw_factors``."""
Step = Callable[[State, "Contexts", Tensor], None]
"""The same in place, from the next contexts and the factors [B, 3] of a block."""


class Contexts(NamedTuple):
    """What a step draws its contexts from.

    Attributes:
        X_Rd, targets_Rr, items_R: embedding, out-neighbours and number of each item of each lane.
        rows_BLl: which rows of these are the contexts of each step of a block.
        cursor: the next step of the block, [1].
    """

    X_Rd: Tensor
    targets_Rr: Tensor
    items_R: Tensor
    rows_BLl: Tensor
    cursor: Tensor


class Program(NamedTuple):
    """The functions that take the steps of a layer.

    Attributes:
        step: takes a step of all lanes.
        update: takes a step of some lanes, from contexts that are drawn already; never compiled.
        compiled: whether torch has compiled ``step`` into one program.
        lanes: how many lanes ``step`` takes; None for any number.
    """

    step: Step
    update: Update
    compiled: bool
    lanes: int | None = None


class Sizes(NamedTuple):
    """What a step is compiled for: sizes of contexts, items and the layer, dtype and device."""

    length: int
    neighbours: int
    d_model: int
    h: int
    d_k: int
    dtype: torch.dtype
    device: torch.device


@cache
def has_compiler() -> bool:
    """Whether this machine has a C++ compiler, which torch.compile needs on a CPU."""
    return shutil.which(os.environ.get("CXX", "g++")) is not None


def drawn(contexts: Contexts, factors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Embeddings [L, l, d] and edges as 0 and 1 [L, l, l] of the next contexts, and factors [3]."""
    rows_Ll = contexts.rows_BLl.index_select(0, contexts.cursor)[0]
    X_Lld = contexts.X_Rd[rows_Ll]
    items_Lxlx = contexts.items_R[rows_Ll][:, None, :, None]
    y_Lll = (contexts.targets_Rr[rows_Ll][:, :, None] == items_Lxlx).any(-1)
    now = factors.index_select(0, contexts.cursor)[0]
    contexts.cursor.add_(1)
    return X_Lld, y_Lll.to(X_Lld.dtype), now


@cache
def plain_program(spec: Layer, sharpness: float, balanced: bool, sizes: Sizes) -> Program:
    """A step of a layer in every lane, run by torch operation by operation."""
    layer = class_of(spec, sizes.length)(d_model=sizes.d_model, h=sizes.h, d_k=sizes.d_k)
    loss = loss_of(layer, sharpness, balanced)

    def loss_of_lane(theta: Theta, X: Tensor, y: Tensor) -> Tensor:
        p = {name: value for name, value in theta.items() if name != "tau"}
        return loss(layer.scores(X, p), y, theta["tau"])

    def loss_of_lanes(theta: Theta, X_Lld: Tensor, y_Lll: Tensor) -> Tensor:
        each: Tensor = vmap(loss_of_lane)(theta, X_Lld, y_Lll)
        return each.sum()

    def update(state: State, X_Lld: Tensor, y_Lll: Tensor, factors: Tensor) -> State:
        theta, first, second = ({**part} for part in state)
        gradients = grad(loss_of_lanes)(theta, X_Lld, y_Lll)
        size, root, decayed = factors.unbind()
        for name, g in gradients.items():
            first[name] = first[name] + (1 - BETA_1) * (g - first[name])
            second[name] = BETA_2 * second[name] + (1 - BETA_2) * g * g
            scale = second[name].sqrt() * root + EPSILON
            theta[name] = theta[name] * decayed - size * first[name] / scale
        return theta, first, second

    def step(state: State, contexts: Contexts, factors: Tensor) -> None:
        given = drawn(contexts, factors)
        for kept, part in zip(state, update(state, *given), strict=True):
            for name, value in part.items():
                kept[name].copy_(value)

    return Program(step, update, compiled=False)


@cache
def compiled_program(spec: Layer, sharpness: float, balanced: bool, sizes: Sizes) -> Program:
    """The same, compiled into one program for any number of lanes or for ``FIRST_LANES``.

    The program may depend on the number of lanes that comes first, so that is always the same.
    Everything else it depends on is an argument here, so torch need not check that at each step. A
    layer that torch cannot compile is left uncompiled, and its rows say so.
    """
    plain = plain_program(spec, sharpness, balanced, sizes)
    step = plain.step
    assert isinstance(step, FunctionType)
    code = step.__code__.replace()  # torch keeps programs by code object: one for each
    own = FunctionType(code, step.__globals__, None, None, step.__closure__)
    unguarded = torch.compiler.skip_all_guards_unsafe
    options: Any = {"guard_filter_fn": unguarded, "size_asserts": False}
    compiled: Step = torch.compile(own, fullgraph=True, dynamic=False, options=options)
    try:
        compiled(*_zeros_given(spec, sizes, FIRST_LANES))
    except Exception:  # torch raises many kinds of error here
        return plain
    lanes = None if _takes(compiled, *_zeros_given(spec, sizes, FIRST_LANES + 2)) else FIRST_LANES
    return plain._replace(step=compiled, compiled=True, lanes=lanes)


def _takes(step: Step, state: State, contexts: Contexts, factors: Tensor) -> bool:
    """Whether a program takes this many lanes: zero factors change tau from 1 in each it moves.

    The program itself does not check sizes, which would take longer than some of its work.
    """
    tau = state[0]["tau"].fill_(1)
    try:
        step(state, contexts, factors)
    except Exception:  # a matrix product, for one, does check sizes
        return False
    return not bool((tau == 1).any())


def _zeros_given(spec: Layer, sizes: Sizes, lanes: int) -> tuple[State, Contexts, Tensor]:
    """Arguments of zeros for a step, whose sizes may vary only in lanes and rows.

    The two numbers differ here, since torch would take equal ones to be the same.
    """
    zeros = partial(torch.zeros, dtype=sizes.dtype, device=sizes.device)
    layer = class_of(spec, sizes.length)(d_model=sizes.d_model, h=sizes.h, d_k=sizes.d_k)
    theta = {name: zeros(lanes, *shape) for name, (shape, _) in layer.parameters().items()}
    theta["tau"] = zeros(lanes)
    state = theta, zeros_like(theta), zeros_like(theta)
    rows = FIRST_LANES + 1
    contexts = Contexts(
        zeros(rows, sizes.d_model),
        zeros(rows, sizes.neighbours),
        zeros(rows),
        torch.zeros(BLOCK, lanes, sizes.length, dtype=torch.int64, device=sizes.device),
        torch.zeros(1, dtype=torch.int64, device=sizes.device),
    )
    for one in (*theta.values(), *state[1].values(), *state[2].values()):
        torch._dynamo.maybe_mark_dynamic(one, 0)
    torch._dynamo.maybe_mark_dynamic(contexts.rows_BLl, 1)
    for one in contexts[:3]:
        torch._dynamo.mark_dynamic(one, 0)
    return state, contexts, zeros(BLOCK, 3)


def zeros_like(theta: Theta) -> Theta:
    """Moments before the first step."""
    return {name: torch.zeros_like(value) for name, value in theta.items()}
