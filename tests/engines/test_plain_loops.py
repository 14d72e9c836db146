"""D_K* of the product is that of a plain loop, at sizes that no study has."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from rgr_dist.store.store import Store
from rgr_dist.study.study_file import parse_study
from tests.oracles import plain_loop
from tests.oracles.plain_loop import Draw, gaussian, permutation, regular
from tests.run_here import thresholds_here

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

GLOVE = Path(__file__).parents[2] / "rgr_dist" / "studies" / "data" / "glove.parquet"


def assert_same_width(
    folder: Path,
    cell: dict[str, Any],
    h: int,
    steps: int,
    rows: Draw,
    edges: Draw,
    seeds: int = 3,
) -> None:
    """The smallest passing d_k at h heads differs by one step of d_k at most."""
    scored = {"validation_contexts": 200, "test_contexts": 500}
    training = {"max_steps": steps, **scored, **cell.pop("training", {})}
    search = {"heads": [h], "seeds": seeds, "confirm_seeds": 0, "keep_within": None, "max_D_K": 256}
    document = {"name": "x", "cells": [cell], "training": training, "search": search}
    (found,) = thresholds_here(parse_study(document, homes=[folder]), Store(folder))
    generators = [np.random.default_rng(seed) for seed in range(seeds)]
    given = np.array([rows(one) for one in generators])
    relations = training.get("relations", 1)
    graphs = [[edges(one) for _ in range(relations)] for one in generators]
    trained, balanced = training.get("embeddings") == "trained", "graph" in cell

    def passes(d_k: int) -> bool:
        means = plain_loop.scores(given, graphs, h, d_k, steps, trained, balanced, 0)
        return fmean(means) >= 0.99

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        expected = plain_loop.smallest(passes, 256)
    finally:
        torch.set_num_threads(threads)
    print(f"product {found['d_k']}, plain loop {expected}")
    assert abs(found["d_k"] - expected) <= 1


@pytest.mark.parametrize(("m", "d_model", "relations"), [(48, 12, 1), (32, 16, 16)])
def test_trained_embeddings(m: int, d_model: int, relations: int, tmp_path: Path) -> None:
    training = {"embeddings": "trained", "relations": relations}
    cell = {"m": m, "d_model": d_model, "training": training}
    rows, edges = partial(gaussian, m, d_model), partial(permutation, m)
    assert_same_width(tmp_path, cell, 1, 4_000, rows, edges)


@pytest.mark.parametrize(("m", "degree", "h", "steps"), [(32, 4, 2, 6_000), (64, 2, 8, 20_000)])
def test_equal_edges(m: int, degree: int, h: int, steps: int, tmp_path: Path) -> None:
    cell = {"m": m, "d_model": 16, "graph": {"family": "regular", "degree": degree}}
    rows, edges = partial(gaussian, m, 16), partial(regular, m, degree)
    assert_same_width(tmp_path, cell, h, steps, rows, edges)


@pytest.mark.skipif(not GLOVE.exists(), reason="the table is not here")
@pytest.mark.parametrize(
    ("whitened", "steps", "seeds"), [(False, 20_000, 3), (False, 6_000, 10), (True, 20_000, 3)]
)
def test_rows_of_words(whitened: bool, steps: int, seeds: int, tmp_path: Path) -> None:
    X = pd.read_parquet(GLOVE).select_dtypes("number").to_numpy(float)[:64]
    np.save(tmp_path / "rows.npy", X)
    made = {"whiten": whitened, "normalise": True}
    cell = {"m": 64, "d_model": 50, "embedding": {"family": "vectors", "file": "rows.npy", **made}}
    if whitened:
        U, _, Vt = np.linalg.svd(X, full_matrices=False)
        X = U @ Vt
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    edges = partial(permutation, 64)
    assert_same_width(tmp_path, cell, 1, steps, lambda _: X, edges, seeds)
