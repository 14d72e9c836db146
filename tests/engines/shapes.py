"""Shapes at which engines are compared, runs of them, and their weights in a row."""

from __future__ import annotations

from typing import Any

import numpy as np

from rgr_dist.engines.api import Weights
from rgr_dist.study.cell import Cell
from rgr_dist.study.run import Run

BENCHMARK_SHAPES: list[tuple[int, ...]] = [
    # m, d_model, h, d_k and, if not 16, l
    (256, 32, 8, 8),
    (64, 16, 4, 5),
    (512, 16, 64, 7),
    (1024, 128, 8, 12),
    (4096, 512, 8, 14),
]
ODD_SHAPES: list[tuple[int, ...]] = [
    (40, 17, 3, 1, 5),
    (40, 16, 1, 7, 16),
    (32, 20, 1, 1, 2),
    (16, 9, 2, 3, 16),
    (23, 33, 5, 4, 23),
    (70, 12, 2, 9, 70),
]


def make_run(
    m: int,
    d_model: int,
    h: int,
    d_k: int,
    length: int = 16,
    *,
    seed: int = 0,
    positive_rate: float = 0.5,
    model: str = "max",
    **training: Any,
) -> Run:
    context = {"length": length, "positive_rate": positive_rate}
    cell = Cell(model=model, m=m, d_model=d_model, context=context, training=training)
    return Run(cell=cell, h=h, d_k=d_k, seed=seed)


def flat(weights: Weights) -> np.ndarray[Any, np.dtype[np.floating[Any]]]:
    return np.concatenate([weights[name].ravel() for name in ("W_Q", "W_K", "tau")])


def assert_close(one: Weights, other: Weights, relative: float) -> None:
    """Make sure that weights are equal, within a share of the largest of each parameter."""
    assert one.keys() == other.keys()
    for name, value in one.items():
        assert value.shape == other[name].shape
        assert np.abs(value - other[name]).max() <= relative * np.abs(other[name]).max()
