"""Grouped queries: Ainslie et al. 2023, arXiv:2305.13245: h query heads share g key heads."""

from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor


@dataclass(frozen=True)
class Grouped:
    """S(p, q) = max over heads of <q_p, k_q>, k of the head's group; g of them, at most h."""

    d_model: int
    h: int
    d_k: int
    groups: int = 2

    def parameters(self) -> dict[str, tuple[tuple[int, ...], float]]:
        g, deviation = min(self.groups, self.h), self.d_model**-0.5
        if self.h % g:
            raise ValueError(f"groups = {g} does not divide h = {self.h}")
        W_Q, W_K = ((self.d_model, heads * self.d_k) for heads in (self.h, g))
        return {"W_Q": (W_Q, deviation), "W_K": (W_K, deviation)}

    def scores(self, X: Tensor, p: dict[str, Tensor]) -> Tensor:
        g = min(self.groups, self.h)
        Q = (X @ p["W_Q"]).unflatten(-1, (g, -1, self.d_k)).movedim(-4, -2)
        K = (X @ p["W_K"]).unflatten(-1, (g, 1, self.d_k)).movedim(-4, -2)
        return reduce(larger, (Q @ K.transpose(-1, -2)).flatten(-4, -3).unbind(-3))

    def cached(self) -> int:
        return min(self.groups, self.h) * self.d_k


def larger(S: Tensor, other: Tensor) -> Tensor:
    """The larger of two scores; of equal ones the first, which alone gets the gradient."""
    return torch.where(other > S, other, S)
