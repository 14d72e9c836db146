"""Runs on which engines are compared, and how their weights are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rgr_dist.engines.api import Weights
from rgr_dist.study import assets
from rgr_dist.study.cell import Cell
from rgr_dist.study.layer_file import load_layer
from rgr_dist.study.run import Run
from tests.marks import SLOW_IN_CI

SHAPES: dict[str, tuple[Any, ...]] = {  # m, d_model, length, h, d_k, and the graph if it is other
    "one narrow head": (16, 8, 5, 1, 1),
    "many heads of width one": (20, 17, 7, 5, 1),
    "odd everything": (23, 17, 5, 3, 7),
    "context holds the whole graph": (9, 16, 9, 2, 3),
    "pairs": (12, 3, 2, 2, 2),
    "the paper's context": (64, 16, 16, 4, 5),
    "many heads": (128, 16, 16, 32, 3),
    "wide": (300, 70, 16, 2, 12),
    "three targets": (20, 17, 7, 5, 1, "3-regular"),
    "longer than a register": (90, 12, 40, 2, 9, "8-regular"),
    "any degrees": (21, 7, 11, 2, 3, "uneven"),
    "contexts without an edge": (40, 5, 3, 2, 2, "one edge"),
    "contexts of edges alone": (12, 5, 2, 2, 2, "cliques"),
}


def graph_of(kind: str, m: int) -> dict[str, Any]:
    """The keys of an r-regular graph, or of a list of edges.

    uneven: p -> q where q divides p + 1; cliques: all pairs of each half, self-loops too.
    """
    if kind.endswith("-regular"):
        return {"family": "regular", "degree": int(kind.removesuffix("-regular"))}
    all_pairs = [(p, q) for p in range(m) for q in range(m)]
    lists = {
        "uneven": [(p, q) for p, q in all_pairs if q and (p + 1) % q == 0 and p % 3],
        "cliques": [(p, q) for p, q in all_pairs if p * 2 // m == q * 2 // m],
        "one edge": [(0, 1)],
    }
    pairs = np.array(lists[kind], dtype=np.int32)
    degree = int(np.bincount(pairs[:, 0]).max())
    keys = {"edges": len(pairs), "degree": degree, "items": int(pairs.max()) + 1}
    return {"family": "edges", "digest": assets.add(pairs), **keys}


def by_shape(*row: Any) -> Any:
    """A row of a table whose last column is the name of a shape: slow if its graph is no
    permutation, since a model's kernels for others take ten seconds more to compile."""
    return pytest.param(*row, marks=SLOW_IN_CI if SHAPES[row[-1]][5:] else ())


def runs_of(
    shape: tuple[Any, ...], seeds: tuple[int, ...], model: str = "max", **training: Any
) -> list[Run]:
    """Runs of a model, or of a layer of the zoo: ``zoo grouped``."""
    m, d_model, length, h, d_k, *kind = shape
    graph = graph_of(kind[0], m) if kind else {}
    keys: dict[str, Any] = {"m": m, "d_model": d_model, "graph": graph, "training": training}
    if model.startswith("zoo "):
        keys["layer"], _ = load_layer({"zoo": model.removeprefix("zoo ")}, Path())
        model = "file"
    cell = Cell(model=model, context={"length": length}, **keys)
    return [Run(cell=cell, h=h, d_k=d_k, seed=seed) for seed in seeds]


def assert_close(one: Weights, other: Weights, relative: float) -> None:
    """Make sure that weights are equal, within a share of the largest of each parameter."""
    shared = one.keys() & other.keys()
    assert shared >= one.keys() - {"tau"}
    for name in shared:
        assert one[name].shape == other[name].shape
        largest = np.abs(other[name]).max()
        assert np.abs(one[name] - other[name]).max() <= relative * largest + 1e-12, name


def same(one: Weights, other: Weights) -> bool:
    """Whether weights are equal to the bit."""
    return all(np.array_equal(value, other[name]) for name, value in one.items())
