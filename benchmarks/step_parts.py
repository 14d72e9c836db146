"""Where a training step of the compiled engine spends its time, part by part.

    python benchmarks/step_parts.py [--rounds 15] [--format table|json|csv]

Each part is timed in a loop of its own over the same lane, in rounds that alternate with whole
steps; ``us`` is its median time, ``share`` the median of its share of the step's time. A part
alone has its data in cache, so the shares add up only roughly to 1. ``adamw`` is a part of
``update``: moments, a square root and a division for each weight, with the gradient given. Without
it, ``update`` is a matrix product, as ``projection`` is.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Annotated, Any

import numba
import numpy as np
import typer

from rgr_dist.cli.listing import Format, print_listing
from rgr_dist.cli.options import How
from rgr_dist.engines.fused.adamw import update
from rgr_dist.engines.fused.heads import heads_backward, heads_forward
from rgr_dist.engines.fused.lane import Lane
from rgr_dist.engines.fused.losses import label_pairs, loss_backward
from rgr_dist.engines.fused.simd_memory import zeros
from rgr_dist.engines.fused.step import project_context, update_W
from rgr_dist.engines.schedule import adamw_factors
from rgr_dist.study.cell import Cell
from rgr_dist.study.run import Run

SHAPES = [(64, 16, 4, 20), (256, 32, 8, 64), (1024, 128, 8, 96)]
MODELS = ("max", "softmax", "value")
STEPS = 200
"""Steps, or repeats of a part, between two looks at the clock."""
SHARPNESS = 10.0


@numba.njit
def projection(lane: Any, contexts: Any) -> None:
    """Queries and keys of each context."""
    for index in range(contexts.shape[0]):
        project_context(lane, contexts[index])


@numba.njit
def heads(lane: Any, contexts: Any) -> None:
    """Scores of all pairs, and their gradient."""
    for _ in range(contexts.shape[0]):
        heads_forward(lane.workspace.P, lane.sizes, lane.workspace.attention, lane.workspace)
        heads_backward(lane.workspace.P, lane.sizes, lane.workspace.attention, lane.workspace)


@numba.njit
def loss(lane: Any, contexts: Any) -> None:
    """Labels of all pairs, the loss and its gradient."""
    for index in range(contexts.shape[0]):
        nodes, graph = contexts[index], lane.graph
        label_pairs(nodes, graph.starts, graph.targets, lane.sizes, lane.workspace)
        loss_backward(lane.theta, lane.workspace, lane.sizes, nodes, lane.messages, SHARPNESS)


@numba.njit
def updates(lane: Any, contexts: Any) -> None:
    """Gradient of the weights and a step of AdamW, at a rate that moves nothing."""
    for _ in range(contexts.shape[0]):
        update_W(lane.theta, lane.workspace, lane.sizes, np.float32(0), np.float32(1))


@numba.njit
def adamw(theta: Any, gradient: Any, times: int) -> None:
    """Moments and steps of all weights, at a rate that moves nothing."""
    for _ in range(times):
        update(
            theta.W, theta.first, theta.second, gradient, 0, theta.W.size,
            np.float32(0), np.float32(1), 1.0,
        )  # fmt: skip


def parts_of(lane: Lane) -> dict[str, Callable[[], object]]:
    """What each part does for ``STEPS`` steps."""
    contexts = lane.task.training_contexts(0, STEPS)
    gradient = zeros(lane.theta.W.size)
    gradient[:] = 1e-3
    arrays, training = lane.arrays, lane.run.cell.training
    return {
        "step": lambda: lane.advance(STEPS),
        "contexts": lambda: (
            lane.task.training_contexts(0, STEPS),
            adamw_factors(training, 0, STEPS),
        ),
        "projection": lambda: projection(arrays, contexts),
        "heads": lambda: heads(arrays, contexts),
        "loss": lambda: loss(arrays, contexts),
        "update": lambda: updates(arrays, contexts),
        "adamw": lambda: adamw(lane.theta, gradient, STEPS),
    }


def measured(model: str, shape: tuple[int, int, int, int], rounds: int) -> list[dict[str, Any]]:
    """A row for each part."""
    m, d_model, h, D_K = shape
    cell = Cell.model_validate({"model": model, "m": m, "d_model": d_model})
    lane = Lane(Run(cell=cell, h=h, d_k=D_K // h, seed=0))
    times: dict[str, list[float]] = {}
    for count in range(rounds + 1):
        for name, part in parts_of(lane).items():
            began = time.perf_counter()
            part()
            if count:  # the first compiles
                times.setdefault(name, []).append((time.perf_counter() - began) / STEPS)
    return [
        {
            "model": model,
            "m": m,
            "d_model": d_model,
            "h": h,
            "D_K": D_K,
            "part": name,
            "us": 1e6 * statistics.median(own),
            "share": statistics.median(a / b for a, b in zip(own, times["step"], strict=True)),
        }
        for name, own in times.items()
    ]


def main(
    how: How = Format.TABLE,
    rounds: Annotated[int, typer.Option(min=1, help="rounds that alternate")] = 15,
) -> None:
    """Time the parts of a step."""
    rows = [row for model in MODELS for shape in SHAPES for row in measured(model, shape, rounds)]
    print_listing({"rows": rows}, how)


if __name__ == "__main__":
    typer.run(main)
