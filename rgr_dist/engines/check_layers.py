"""Tries the layers that a study takes from files before any training.

Each takes two real training steps at the study's narrowest and widest sizes, twice, and at every
head count of the search.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import torch

from rgr_dist.engines.reference import AutogradLane
from rgr_dist.engines.tasks import Edges
from rgr_dist.faults import UserError
from rgr_dist.study.cell import Cell
from rgr_dist.study.run import Run
from rgr_dist.study.study import Study

WIDEST = 512
"""The largest total width of the widest heads tried, which are no wider than d_model."""
ROUNDING = 1e-4
"""How much the scores of a context may differ when it is scored together with others."""
CPU = torch.device("cpu")
LONGEST = 120
"""Characters shown of an error that a file raises."""


class LayerError(UserError, ValueError):
    """A layer's file cannot be trained; the message says at which sizes, and why."""


def check_layers(study: Study) -> None:
    """Try every layer of a study that comes from a file.

    Raises:
        LayerError: in one line, it names the layer, the sizes and what is wrong.
    """
    cells: dict[object, list[Cell]] = {}
    for cell in study.cells:
        if cell.layer is not None:
            cells.setdefault((cell.layer, cell.context.length), []).append(cell)
    heads = study.search.heads
    for own in cells.values():
        narrow, wide = (by(own, key=lambda cell: cell.d_model) for by in (min, max))
        for h in heads:
            _try(narrow, h, _widths(study, h, narrow.d_model)[0], study.search.mode != "grid")
        _try(wide, heads[-1], _widths(study, heads[-1], wide.d_model)[1])


def _widths(study: Study, h: int, d_model: int) -> tuple[int, int]:
    """The narrowest and the widest d_k that a study may try at h heads."""
    listed = study.search.D_K or (h, h * max(1, min(d_model, WIDEST // h)))
    widths = [D_K // h for D_K in listed if D_K % h == 0]
    return min(widths), max(widths)


def _try(cell: Cell, h: int, d_k: int, takes_every_width: bool = False) -> None:
    """Try a layer at one size; a search tries odd widths too, unlike a grid of even ones."""
    place = f"{cell.model_name} at d_model = {cell.d_model}, h = {h}, d_k = "
    own = cell.training.model_copy(update={"embeddings": "frozen", "relations": 1})
    alone = cell.model_copy(update={"training": own})
    try:
        with _within(f"{place}{d_k}"):
            _check(Run(cell=alone, h=h, d_k=d_k, seed=0))
    except LayerError as error:
        if d_k > 1 or not takes_every_width:
            raise
        with suppress(LayerError):
            _try(cell, h, 2)
            told = f"{error}; d_k = 2 works: give mode: grid and a D_K of the widths that it takes"
            raise UserError(told) from None
        raise


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
    start, lane, again = (AutogradLane(run, CPU, torch.float32, anew=True) for _ in range(3))
    assert isinstance(lane.task, Edges)
    if "tau" in lane.task.layer.parameters():
        raise LayerError("parameter tau: that is the threshold's name; give another")
    _check_scores(run.cell.context.length, lane)
    lane.advance(2)
    again.advance(2)
    before, after, anew = start.weights(), lane.weights(), again.weights()
    if not all(np.isfinite(value).all() for value in after.values()):
        raise LayerError("its parameters are not finite after two steps")
    if not all(np.array_equal(value, anew[name]) for name, value in after.items()):
        raise LayerError("training differs when it is repeated: a layer draws no random numbers")
    if all(np.array_equal(after[name], before[name]) for name in after if name != "tau"):
        raise LayerError("no parameter gets a gradient from the scores")


def _check_scores(length: int, lane: AutogradLane) -> None:
    """Check the scores of contexts: type, shape, and that each is scored by itself."""
    task = lane.task
    assert isinstance(task, Edges)
    scores, nodes = task.scores(lane.theta), torch.from_numpy(task.task.validation[:3]).long()
    with torch.no_grad():
        S = scores(nodes)
        _check_shape(S, nodes)
        if not torch.isfinite(S).all():
            raise LayerError("scores are not finite at the first weights")
        if not torch.allclose(scores(nodes[:1])[0], S[0], rtol=ROUNDING, atol=ROUNDING):
            raise LayerError("the scores of a context depend on those beside it")
        if length == lane.run.cell.d_model:  # an output has the same shape as scores
            _check_shape(scores(nodes[:, :-1]), nodes[:, :-1])


def _check_shape(S: Any, nodes: torch.Tensor) -> None:
    """Check that there is one score for every pair of items of each context."""
    if not isinstance(S, torch.Tensor):
        raise LayerError(f"scores are {type(S).__name__}, not a tensor; return the scores alone")
    length = nodes.shape[-1]
    if S.shape != (*nodes.shape, length):
        raise LayerError(
            f"scores have shape {tuple(S.shape)}, but contexts have {length} items: return one "
            "score of every pair over all heads, [..., l, l], not the layer's output"
        )
