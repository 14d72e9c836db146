"""Talking heads: Shazeer et al. 2020, arXiv:2003.02436: logits are mixed over heads, before
softmax and after it.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class TalkingHeads:
    """A = sum over heads of M_2 softmax(M_1 logits); both M begin near the identity."""

    d_model: int
    h: int
    d_k: int

    def parameters(self) -> dict[str, tuple[tuple[int, ...], float]]:
        shape, deviation = (self.d_model, self.h * self.d_k), self.d_model**-0.5
        mixing, small = (self.h, self.h), 0.01
        return {
            "W_Q": (shape, deviation),
            "W_K": (shape, deviation),
            "M_1": (mixing, small),
            "M_2": (mixing, small),
        }

    def scores(self, X: Tensor, p: dict[str, Tensor]) -> Tensor:
        Q, K = (
            (X @ p[name]).unflatten(-1, (self.h, -1)).transpose(-2, -3) for name in ("W_Q", "W_K")
        )
        logits, one = Q @ K.transpose(-1, -2) * self.d_k**-0.5, torch.eye(self.h).to(X)
        A = torch.einsum("gh,...hpq->...gpq", p["M_1"] + one, logits).softmax(-1)
        return torch.einsum("gh,...hpq->...gpq", p["M_2"] + one, A).sum(-3)

    def cached(self) -> int:
        return self.h * self.d_k
