"""Embedding families: the frozen vector of each item, and of NULL where a model has it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rgr_dist.problem.streams import Stream
from rgr_dist.study import assets
from rgr_dist.study.cell import Cell
from rgr_dist.study.families import Binary, OneHot, Vectors


def sample_embedding(cell: Cell, seed: int) -> npt.NDArray[np.float64]:
    """The embedding of a cell and seed, rows x_i, shape [m, d_model].

    Gaussian rows have |x_i| = 1 (Sec. 4). Binary entries are 0 or 1 and are not normalised
    (Corollary B.7); an item may have no ones. One-hot rows are the same at every seed, and so
    are those of a file, unless they are shuffled; they are as the study made them.

    Raises:
        AssetError: the file's vectors have not been loaded in this process.
    """
    if isinstance(cell.embedding, Vectors):
        rows = assets.get(cell.embedding.digest)[: cell.m].astype(np.float64)
        if cell.embedding.shuffle:
            rows = rows[Stream.of(cell.problem_json, "shuffle", seed).permutation(cell.m)]
        return rows
    if isinstance(cell.embedding, OneHot):
        return np.eye(cell.m)
    stream = Stream.of(cell.problem_json, "embedding", seed)
    if isinstance(cell.embedding, Binary):
        below = cell.embedding.rate(cell.m, cell.d_model) * 2**32
        ones = stream.words(cell.m * cell.d_model) < below
        return ones.reshape(cell.m, cell.d_model).astype(np.float64)
    return _unit_rows(stream.normals(cell.m, cell.d_model))


def sample_with_null(cell: Cell, seed: int) -> npt.NDArray[Any]:
    """The embedding of a cell and seed with NULL's vector as its last row, [m + 1, d_model].

    Vectors of a file have a row for NULL, and stay in single precision without a copy unless they
    are shuffled; in other families NULL is a random unit vector.

    Raises:
        AssetError: the file's vectors have not been loaded in this process.
    """
    if isinstance(cell.embedding, Vectors):
        table = assets.get(cell.embedding.digest)
        if cell.embedding.shuffle:
            return np.concatenate([sample_embedding(cell, seed), table[cell.m :]])
        return table
    null = Stream.of(cell.problem_json, "null", seed).normals(cell.d_model)
    return np.concatenate([sample_embedding(cell, seed), _unit_rows(null[np.newaxis])])


def _unit_rows(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    unit: npt.NDArray[np.float64] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit
