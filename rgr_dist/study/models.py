"""What each model takes of a study: the paper's values of its own, and keys it has no use for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rgr_dist.study.study import Cell

TRANSFORMER: dict[str, Any] = {"max_steps": 100_000, "batch_size": 128, "weight_decay": 0.01}
"""Training of Sec. 7.3. The paper does not give the size of its batches: 128 is our choice."""

PAPERS_TRAINING: dict[str, dict[str, Any]] = {
    "softmax": {"max_steps": 80_000},  # Sec. 7.1
    "transformer": TRANSFORMER,
}
"""Training values that the paper gives a model, where they are not those of App. A.1."""

OWN_TARGET = {"value": 0.5}
"""Targets of models whose score is no F1. Of an error, 1 where nothing is retrieved, half is to go;
the paper has no threshold there."""

OF_A_TRANSFORMER = ("training.batch_size", "training.weight_decay")
EDGES = (*OF_A_TRANSFORMER, "training.tolerance")

UNUSED = {
    "max": EDGES,
    "softmax": EDGES,
    "value": (*OF_A_TRANSFORMER, "training.sharpness", "training.stop_score"),
    "transformer": (
        "context.positive_rate",
        "training.sharpness",
        "training.patience",
        "training.stop_score",
        "training.tolerance",
    ),
}
"""Keys that a model does not use, which must then have their default."""

ONE_TARGET = ("value", "transformer")
"""Models of a task that has one answer, and so take permutations alone."""


def misfit(cell: Cell) -> str | None:
    """What of a cell its model cannot take, starting with the key; None if it is all right."""
    for key in UNUSED[cell.model]:
        part, name = key.split(".")
        spec = getattr(cell, part)
        if getattr(spec, name) != type(spec).model_fields[name].default:
            return f"{key}: model {cell.model} does not use it; leave it out"
    if cell.model in ONE_TARGET and cell.graph.family != "permutation":
        return (
            f"graph.family: model {cell.model} has one target to each item; "
            "give permutation, or leave it out"
        )
    if cell.model == "transformer":
        for name in ("batch_size", "weight_decay"):
            if getattr(cell.training, name) is None:
                return f"training.{name}: missing; model transformer needs a number"
        if 2 * cell.context.length + 1 > cell.m:
            return (
                f"context.length: {cell.context.length} pairs and the query of cell {cell.name} "
                f"take {2 * cell.context.length + 1} distinct items of m = {cell.m}; "
                f"valid are 2 to {(cell.m - 1) // 2}"
            )
    return None


def split_fault(cell: Cell, heads: Sequence[int] | str) -> str | None:
    """Which head count a cell's model cannot have; None if it can have every one."""
    if cell.model != "transformer":
        return None
    why = "a head's values have width d_model / h, so list divisors of d_model"
    if isinstance(heads, str):
        return f"heads: {heads} is not for model transformer; {why}"
    bad = next((h for h in heads if cell.d_model % h), None)
    if bad is None:
        return None
    return f"heads: {bad} does not divide d_model = {cell.d_model} of cell {cell.name}; {why}"
