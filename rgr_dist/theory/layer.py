"""The weights of one attention layer, trained or constructed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rgr_dist.faults import UserError

FloatArray = npt.NDArray[np.floating]


class ConstructionError(UserError, ValueError):
    """A construction cannot be made as asked; the message says what would be valid."""


@dataclass(frozen=True)
class Layer:
    """Weights of h heads side by side, and the threshold of their scores.

    Attributes:
        W_Q, W_K: [d_model, h * d_k]; head k has the d_k columns from k * d_k on.
        tau: a pair is an edge if its score, the maximum over heads, exceeds tau (Sec. 3).
    """

    W_Q: FloatArray
    W_K: FloatArray
    h: int
    tau: float

    @property
    def d_k(self) -> int:
        """Key width of a head."""
        return int(self.W_Q.shape[1]) // self.h


@dataclass(frozen=True)
class Built:
    """A constructed layer, and how many iterations of projections it took; 0 for a closed form.

    Attributes:
        settled: False if one head was neither found right on every pair nor proved unable to be.
    """

    layer: Layer
    iterations: int = 0
    settled: bool = True
