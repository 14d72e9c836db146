"""Embedding families: the frozen vector of each item."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rgr_dist.problem.streams import Stream
from rgr_dist.study import Cell


def sample_embedding(cell: Cell, seed: int) -> npt.NDArray[np.float64]:
    """Gaussian unit-norm embedding (Sec. 4), rows x_i with |x_i| = 1, shape [m, d_model]."""
    stream = Stream.of(cell.problem_json, "embedding", seed)
    rows = stream.normals(cell.m * cell.d_model).reshape(cell.m, cell.d_model)
    unit: npt.NDArray[np.float64] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit
