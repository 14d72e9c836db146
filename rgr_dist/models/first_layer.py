"""An attention layer of your own, for `model: NAME.py` in a study. It runs as it is.

rgr tries it before it trains anything, and says in one line what it cannot use. Its runs belong to
its code and its keys, not to comments, docstrings or layout: change the code, and it is another
layer.
"""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class FirstLayer:
    """Softmax over the context of query-key products, summed over heads."""

    # Its sizes. For each number of heads h, a study searches for the smallest d_k that passes.
    d_model: int
    h: int
    d_k: int
    # Its own keys, which a study sets: model: {file: NAME.py, temperature: 0.5}
    temperature: float = 1.0

    def parameters(self) -> dict[str, tuple[tuple[int, ...], float]]:
        """By name: the shape, and the standard deviation of the normal entries at the start."""
        shape, deviation = (self.d_model, self.h * self.d_k), self.d_model**-0.5
        return {"W_Q": (shape, deviation), "W_K": (shape, deviation)}

    def scores(self, X: Tensor, p: dict[str, Tensor]) -> Tensor:
        """Embeddings [..., l, d_model] to scores [..., l, l]: row p, column q for p -> q.

        A pair counts as a relation if its score is above tau, a number that rgr trains too.
        """
        Q = (X @ p["W_Q"]).unflatten(-1, (self.h, -1)).transpose(-2, -3)  # [..., h, l, d_k]
        K = (X @ p["W_K"]).unflatten(-1, (self.h, -1)).transpose(-2, -3)
        logits = Q @ K.transpose(-1, -2) / (self.temperature * self.d_k**0.5)
        return logits.softmax(-1).sum(-3)

    def cached(self) -> int:
        """How many numbers a decoder keeps for each token. Leave this out if you do not know."""
        return self.h * self.d_k

    # The loss is the paper's unless you define your own, for one context whose edges are 0 or 1:
    # def loss(self, scores: Tensor, edges: Tensor, tau: Tensor) -> Tensor:
