"""Latent keys: DeepSeek-V2 2024, arXiv:2405.04434, Sec. 2.1.2, without its rotary part: one latent
is cached for each token, and each head expands it into its keys. Theirs is four heads wide, of 128.
"""

from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor


@dataclass(frozen=True)
class Latent:
    """S(p, q) = max over heads of <q_p, k_q>, k expanded from a latent as wide as some heads."""

    d_model: int
    h: int
    d_k: int
    width: int = 2

    def parameters(self) -> dict[str, tuple[tuple[int, ...], float]]:
        d, D_K, r = self.d_model, self.h * self.d_k, self.cached()
        shapes = {"W_Q": (d, D_K), "W_down": (d, r), "W_up": (r, D_K)}
        return {name: (shape, shape[0] ** -0.5) for name, shape in shapes.items()}

    def scores(self, X: Tensor, p: dict[str, Tensor]) -> Tensor:
        Q, K = X @ p["W_Q"], X @ p["W_down"] @ p["W_up"]
        Q, K = (P.unflatten(-1, (self.h, -1)).transpose(-2, -3) for P in (Q, K))
        return reduce(larger, (Q @ K.transpose(-1, -2)).unbind(-3))

    def cached(self) -> int:
        return min(self.width, self.h) * self.d_k


def larger(S: Tensor, other: Tensor) -> Tensor:
    """The larger of two scores; of equal ones the first, which alone gets the gradient."""
    return torch.where(other > S, other, S)
