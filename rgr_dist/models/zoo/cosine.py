"""Cosine scores with a learned temperature: Henry et al. 2020, arXiv:2010.04245."""

from dataclasses import dataclass

from torch import Tensor
from torch.nn.functional import normalize


@dataclass(frozen=True)
class Cosine:
    """A(p, q) = sum over heads of softmax over q of g cos(q_p, k_q), g = exp of a parameter."""

    d_model: int
    h: int
    d_k: int
    start: float = 10.0

    def parameters(self) -> dict[str, tuple[tuple[int, ...], float]]:
        shape, deviation = (self.d_model, self.h * self.d_k), self.d_model**-0.5
        return {"W_Q": (shape, deviation), "W_K": (shape, deviation), "g": ((self.h, 1, 1), 0.0)}

    def scores(self, X: Tensor, p: dict[str, Tensor]) -> Tensor:
        Q, K = (
            normalize((X @ p[name]).unflatten(-1, (self.h, -1)), dim=-1).transpose(-2, -3)
            for name in ("W_Q", "W_K")
        )
        temperature = self.start * p["g"].exp()
        return (temperature * (Q @ K.transpose(-1, -2))).softmax(-1).sum(-3)

    def cached(self) -> int:
        return self.h * self.d_k
