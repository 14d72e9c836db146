"""Random signatures: the row by which each item is recognised (Sec. 4, App. B)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from rgr_dist.problem.streams import Stream

Kind = Literal["rademacher", "bernoulli"]


def orthogonal(
    matchings: Sequence[npt.NDArray[np.int64]], m: int, d_k: int
) -> npt.NDArray[np.float64]:
    """Signatures that are unit vectors within each head, [m, d_k]: no noise of signatures is left.

    At a d_k of the largest block the scores are those of the limit d_k → ∞, whose signatures have
    w_s · w_t / d_k = 0 for s ≠ t, and tau is 1/2. A smaller d_k gives several targets of a head
    one signature.

    Args:
        matchings: the edges (source, target) of each head; a target is in one of them alone.
    """
    w = np.zeros((m, d_k))
    for matching in matchings:
        w[matching[:, 1], np.arange(len(matching)) % d_k] = 1
    return w


@dataclass(frozen=True)
class Signatures:
    """A law of independent entries.

    Attributes:
        kind: ``rademacher``, ±1 with equal chance, or ``bernoulli``, 1 with chance p and else 0.
        p: the chance of a 1 in a Bernoulli entry.
    """

    kind: Kind
    p: float = 0.25

    def draw(self, stream: Stream, m: int, d_k: int) -> npt.NDArray[np.float64]:
        """Rows w_j, [m, d_k].

        Columns come from the stream in order, so that wider signatures begin with the narrower
        ones and all widths of a draw are paired.
        """
        words = stream.words(m * d_k).reshape(d_k, m).T
        if self.kind == "bernoulli":
            return (words < self.p * 2**32).astype(np.float64)
        return np.where(words < 2**31, 1.0, -1.0)

    def printed_tau(self, d_k: int) -> float:
        """The paper's threshold: d_k / 2 (Sec. 4), or (p + p²) d_k / 2 (Algorithms 3 and 4)."""
        return d_k / 2 if self.kind == "rademacher" else (self.p + self.p**2) / 2 * d_k

    @property
    def union_bound_constant(self) -> float:
        """C of d_k = C ln m at which the union bound fails with a chance below m⁻³, one-hot.

        Bernoulli: Theorem B.1's exponents c_1 and c_2, but C = max(4 / c_1, 5 / c_2). The paper's
        max(3 / c_1, 2 / c_2) gives m · m⁻³ = m⁻² for the first term and m⁰ for the second.
        Rademacher: Hoeffding's exp(-d_k / 8) for each of m² pairs, so C = 8 · 5. The proofs use
        the natural logarithm; the figures of the paper use log₂.
        """
        if self.kind == "rademacher":
            return 40.0
        p = self.p
        c_1, c_2 = p * (1 - p) ** 2 / 8, p * (1 - p) ** 2 / (2 * (1 + 3 * p))
        return max(4 / c_1, 5 / c_2)
