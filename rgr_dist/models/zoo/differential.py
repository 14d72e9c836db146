"""Differential attention: Ye et al. 2024, arXiv:2410.05258: a head is the difference of two
softmaxes, without their norm. Each of the two has keys of width d_k.
"""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Differential:
    """A = sum over heads of softmax(Q_1 K_1') - lambda softmax(Q_2 K_2'); lambda is learned."""

    d_model: int
    h: int
    d_k: int
    start: float = 0.8

    def parameters(self) -> dict[str, tuple[tuple[int, ...], float]]:
        shape, deviation = (self.d_model, 2 * self.h * self.d_k), self.d_model**-0.5
        return {
            "W_Q": (shape, deviation),
            "W_K": (shape, deviation),
            "lambda": ((self.h, 1, 1), 0.0),
        }

    def scores(self, X: Tensor, p: dict[str, Tensor]) -> Tensor:
        Q, K = (
            (X @ p[name]).unflatten(-1, (2 * self.h, -1)).transpose(-2, -3)
            for name in ("W_Q", "W_K")
        )
        A = (Q @ K.transpose(-1, -2) * self.d_k**-0.5).softmax(-1)
        first, second = A.unflatten(-3, (2, self.h)).unbind(-4)
        return (first - (self.start + p["lambda"]) * second).sum(-3)

    def cached(self) -> int:
        return 2 * self.h * self.d_k
