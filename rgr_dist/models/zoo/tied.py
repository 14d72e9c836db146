"""Queries that are keys: Kitaev et al. 2020 (Reformer), arXiv:2001.04451, Sec. 2.
Scores are then symmetric.
"""

from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor


@dataclass(frozen=True)
class Tied:
    """S(p, q) = max over heads of <k_p, k_q>."""

    d_model: int
    h: int
    d_k: int

    def parameters(self) -> dict[str, tuple[tuple[int, ...], float]]:
        return {"W_K": ((self.d_model, self.h * self.d_k), self.d_model**-0.5)}

    def scores(self, X: Tensor, p: dict[str, Tensor]) -> Tensor:
        K = (X @ p["W_K"]).unflatten(-1, (self.h, -1)).transpose(-2, -3)
        return reduce(larger, (K @ K.transpose(-1, -2)).unbind(-3))

    def cached(self) -> int:
        return self.h * self.d_k


def larger(S: Tensor, other: Tensor) -> Tensor:
    """The larger of two scores; of equal ones the first, which alone gets the gradient."""
    return torch.where(other > S, other, S)
