"""Embedding families: the frozen vector of each item, and of NULL where a model has it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rgr_dist.problem import assets
from rgr_dist.problem.stand_in import stand_in_table
from rgr_dist.problem.streams import Stream
from rgr_dist.study import Cell


def sample_embedding(cell: Cell, seed: int) -> npt.NDArray[np.float64]:
    """The embedding of a cell and seed, rows x_i, shape [m, d_model].

    Gaussian rows have |x_i| = 1 (Sec. 4). Those of a table, or of its stand-in, are as they
    come, and the same at every seed.

    Raises:
        AssetError: the table has not been loaded in this process.
    """
    if cell.embedding.family == "table":
        assert cell.embedding.digest is not None
        return assets.get(cell.embedding.digest)[: cell.m].astype(np.float64)
    if cell.embedding.family == "stand-in":
        return stand_in_table(cell.m, cell.d_model)[: cell.m]
    stream = Stream.of(cell.problem_json, "embedding", seed)
    return _unit_rows(stream.normals(cell.m * cell.d_model).reshape(cell.m, cell.d_model))


def sample_with_null(cell: Cell, seed: int) -> npt.NDArray[Any]:
    """The embedding of a cell and seed with NULL's vector as its last row, [m + 1, d_model].

    A table is not copied, and stays in single precision.

    Raises:
        AssetError: the table has not been loaded in this process.
    """
    if cell.embedding.family == "table":
        assert cell.embedding.digest is not None
        return assets.get(cell.embedding.digest)
    if cell.embedding.family == "stand-in":
        return stand_in_table(cell.m, cell.d_model)
    null = Stream.of(cell.problem_json, "null", seed).normals(cell.d_model)
    return np.concatenate([sample_embedding(cell, seed), _unit_rows(null[np.newaxis])])


def _unit_rows(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    unit: npt.NDArray[np.float64] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit
