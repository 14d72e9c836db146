"""What tests read from lanes: their numbers in a row, with or without padding."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from rgr_dist.engines.lanes.state import Lanes


def numbers(lanes: Lanes, lane: int) -> Tensor:
    """Parameters and moments of a lane, padding and all."""
    kept = (*lanes.parameters, *lanes.adamw.first, *lanes.adamw.second)
    return torch.cat([tensor[lane].flatten() for tensor in kept])


def unpadded(lanes: Lanes, tensors: Sequence[Tensor], lane: int) -> tuple[Tensor, Tensor]:
    """[W_Q | W_K] of a lane, [d, 2D], and tau, from its parameters, gradients or moments."""
    halves = [
        W[lane].unflatten(0, (lanes.h, -1))[:, : lanes.d_k, : lanes.cell.d_model].flatten(0, 1).T
        for W in tensors[:2]
    ]
    return torch.cat(halves, 1), tensors[2][lane, 0]
