"""Multi-query attention: Shazeer 2019, arXiv:1911.02150: all heads share the keys of one."""

from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor


@dataclass(frozen=True)
class MultiQuery:
    """S(p, q) = max over heads of <q_p, k_q>, with one k for all."""

    d_model: int
    h: int
    d_k: int

    def parameters(self) -> dict[str, tuple[tuple[int, ...], float]]:
        W_Q, W_K = ((self.d_model, heads * self.d_k) for heads in (self.h, 1))
        return {"W_Q": (W_Q, self.d_model**-0.5), "W_K": (W_K, self.d_model**-0.5)}

    def scores(self, X: Tensor, p: dict[str, Tensor]) -> Tensor:
        Q = (X @ p["W_Q"]).unflatten(-1, (self.h, -1)).transpose(-2, -3)
        K = (X @ p["W_K"]).unsqueeze(-3)
        return reduce(larger, (Q @ K.transpose(-1, -2)).unbind(-3))

    def cached(self) -> int:
        return self.d_k


def larger(S: Tensor, other: Tensor) -> Tensor:
    """The larger of two scores; of equal ones the first, which alone gets the gradient."""
    return torch.where(other > S, other, S)
