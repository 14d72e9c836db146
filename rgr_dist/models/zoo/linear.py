"""Linear attention: Katharopoulos et al. 2020, arXiv:2006.16236, whose map is elu + 1; or relu, as
Kasai et al. 2021, arXiv:2103.13076, without their added matrix.
"""

from dataclasses import dataclass

from torch import Tensor
from torch.nn.functional import elu, relu


@dataclass(frozen=True)
class Linear:
    """A(p, q) = sum over heads of <f(q_p), f(k_q)>, each over its sum over q."""

    d_model: int
    h: int
    d_k: int
    map: str = "elu"

    def parameters(self) -> dict[str, tuple[tuple[int, ...], float]]:
        if self.map not in ("elu", "relu"):
            raise ValueError(f"map = {self.map}; valid: elu, relu")
        shape, deviation = (self.d_model, self.h * self.d_k), self.d_model**-0.5
        return {"W_Q": (shape, deviation), "W_K": (shape, deviation)}

    def scores(self, X: Tensor, p: dict[str, Tensor]) -> Tensor:
        heads = ((X @ p[W]).unflatten(-1, (self.h, -1)).transpose(-2, -3) for W in ("W_Q", "W_K"))
        Q, K = (elu(P) + 1 if self.map == "elu" else relu(P) + 1e-6 for P in heads)
        S = Q @ K.transpose(-1, -2)
        return (S / S.sum(-1, keepdim=True)).sum(-3)

    def cached(self) -> int:
        return self.h * self.d_k
