"""Latent keys: DeepSeek-V2 2024, arXiv:2405.04434, Sec. 2.1.2, without its rotary part: a latent of
a few numbers is cached for each token, and each head expands it into its keys.
"""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Latent:
    """S(p, q) = max over heads of <q_p, k_q>, k = expanded from a latent of width rank."""

    d_model: int
    h: int
    d_k: int
    rank: int = 8

    def parameters(self) -> dict[str, tuple[tuple[int, ...], float]]:
        d, D_K, r = self.d_model, self.h * self.d_k, self.rank
        shapes = {"W_Q": (d, D_K), "W_down": (d, r), "W_up": (r, D_K)}
        return {name: (shape, shape[0] ** -0.5) for name, shape in shapes.items()}

    def scores(self, X: Tensor, p: dict[str, Tensor]) -> Tensor:
        Q, K = X @ p["W_Q"], X @ p["W_down"] @ p["W_up"]
        Q, K = (P.unflatten(-1, (self.h, -1)).transpose(-2, -3) for P in (Q, K))
        return (Q @ K.transpose(-1, -2)).amax(-3)

    def cached(self) -> int:
        return self.rank
