"""Top-k attention: Gupta et al. 2021, arXiv:2106.06899: each query attends to its k best keys."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class TopK:
    """A(p, q) = sum over heads of softmax over the k largest of <q_p, k_q> / sqrt(d_k); else 0."""

    d_model: int
    h: int
    d_k: int
    k: int = 4

    def parameters(self) -> dict[str, tuple[tuple[int, ...], float]]:
        shape, deviation = (self.d_model, self.h * self.d_k), self.d_model**-0.5
        return {"W_Q": (shape, deviation), "W_K": (shape, deviation)}

    def scores(self, X: Tensor, p: dict[str, Tensor]) -> Tensor:
        Q, K = (
            (X @ p[name]).unflatten(-1, (self.h, -1)).transpose(-2, -3) for name in ("W_Q", "W_K")
        )
        logits = Q @ K.transpose(-1, -2) * self.d_k**-0.5
        k = min(self.k, X.shape[-2])
        least = logits.topk(k, -1).values[..., -1:]
        return logits.masked_fill(logits < least, -torch.inf).softmax(-1).sum(-3)

    def cached(self) -> int:
        return self.h * self.d_k
