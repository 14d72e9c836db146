"""The maximum over heads of the scores of queries and keys: arXiv:2509.22840, Sec. 4."""

from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor


@dataclass(frozen=True)
class Max:
    """S(p, q) = max over heads of <q_p, k_q>."""

    d_model: int
    h: int
    d_k: int

    def parameters(self) -> dict[str, tuple[tuple[int, ...], float]]:
        shape, deviation = (self.d_model, self.h * self.d_k), self.d_model**-0.5
        return {"W_Q": (shape, deviation), "W_K": (shape, deviation)}

    def scores(self, X: Tensor, p: dict[str, Tensor]) -> Tensor:
        Q, K = (
            (X @ p[name]).unflatten(-1, (self.h, -1)).transpose(-2, -3) for name in ("W_Q", "W_K")
        )
        return reduce(larger, (Q @ K.transpose(-1, -2)).unbind(-3))

    def cached(self) -> int:
        return self.h * self.d_k


def larger(S: Tensor, other: Tensor) -> Tensor:
    """The larger of two scores; of equal ones the first, which alone gets the gradient."""
    return torch.where(other > S, other, S)
