"""Squared ReLU in place of softmax: Hua et al. 2022 (FLASH), arXiv:2202.10447."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class SquaredRelu:
    """S(p, q) = sum over heads of relu(<q_p, k_q> / sqrt(d_k))²."""

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
        return (Q @ K.transpose(-1, -2) * self.d_k**-0.5).relu().square().sum(-3)

    def cached(self) -> int:
        return self.h * self.d_k
