"""Graph families: which item each item relates to."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rgr_dist.problem.streams import Stream
from rgr_dist.study import Cell


def sample_targets(cell: Cell, seed: int) -> npt.NDArray[np.int32]:
    """Out-neighbour of each item under a uniformly random permutation (App. A.1), shape [m].

    Fixed points are allowed, as a uniformly random permutation has them.
    """
    return Stream.of(cell.problem_json, "graph", seed).permutation(cell.m)
