"""What the paper prints: the predictors of its laws, its fits, its tables.

Source: M. Adler, "A Capacity-Based Rationale for Multi-Head Attention", ICML 2026,
arXiv:2509.22840v3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

TITLE = "A Capacity-Based Rationale for Multi-Head Attention"
AUTHOR = "Micah Adler"
VENUE = "ICML 2026"
ARXIV = "arXiv:2509.22840"
URL = "https://arxiv.org/abs/2509.22840"


def capacity_scale(m: int, d_model: int, n_edges: int | None = None) -> float:
    """Predictor of D_K*: m′ log₂ m / d_model with m′ edges, by default m (App. A.3, Eq. 31)."""
    return (m if n_edges is None else n_edges) * math.log2(m) / d_model


def compression(m: int, d_model: int, n_edges: int | None = None) -> float:
    """Predictor of h*: m′ / d_model, which is the compression m / d_model where m′ = m."""
    return (m if n_edges is None else n_edges) / d_model


@dataclass(frozen=True)
class PublishedLaw:
    """A fitted line as the paper prints it.

    Attributes:
        r2: as printed; None where the paper gives none.
        source: section, equation and figure.
        cells: which of the paper's cells it was fitted to.
        n: how many of those are in the base grid, a minimum; None where the text does not say.
    """

    slope: float
    intercept: float
    r2: float | None
    source: str
    cells: str = "all cells"
    n: int | None = None


LAWS = {
    "D_K": PublishedLaw(1.19, 0.0, 0.944, "Sec. 6.1, Fig. 3", n=12),
    "D_K_wide": PublishedLaw(0.966, 0.0, 0.992, "Sec. 6.1", "all but d_model = 16, m > 64", 9),
    "h": PublishedLaw(1.65, -6.64, 0.824, "Sec. 6.1, Fig. 10", n=12),
}
"""Laws of permutation graphs: D_K* on ``capacity_scale``, h* on ``compression``."""

DENSE_LAW = PublishedLaw(0.46, 0.0, None, "App. A.3, Eq. 32, Fig. 12", "degrees up to 16")
"""D_K* of r-regular graphs of ``DENSE_SIZE``, on ``capacity_scale``."""

DENSE_SIZE = (128, 32)
"""m and d_model of ``DENSE_LAW``."""

LARGEST_DEGREE = 16
"""The largest degree in ``DENSE_LAW``."""


def is_narrow(m: int, d_model: int) -> bool:
    """Whether the paper leaves the cell out of its second fit: d_model = 16 and m > 64."""
    return d_model == 16 and m > 64


TABLE_1_D_K_OF_A_HEAD = {
    (64, 16): 5, (64, 32): 6, (64, 64): 5,
    (128, 16): 11, (128, 32): 21, (128, 64): 7,
    (256, 16): 6, (256, 32): 16, (256, 64): 24,
    (512, 16): 7, (512, 32): 9, (512, 64): 14,
}  # fmt: skip
"""Table 1: d_k at D_K*, by (m, d_model)."""

IMPLIED = {
    (64, 16): (20, 4), (64, 32): (6, 1), (64, 64): (5, 1),
    (128, 16): (88, 8), (128, 32): (21, 1), (128, 64): (7, 1),
    (256, 16): (192, 32), (256, 32): (64, 4), (256, 64): (24, 1),
    (512, 16): (448, 64), (512, 32): (144, 16), (512, 64): (56, 4),
}  # fmt: skip
"""(D_K*, h*) by (m, d_model): inferred, not published.

Fig. 8's values are not available as text. These are Table 1's d_k times the power-of-two head
count that the scaling law makes most likely.
"""

SEEDS = {"softmax": 3, "value": 3}
"""Seeds per threshold, by model (Figs. 5 and 6); any other model has 10 (Sec. 6.1)."""

TABLE_2_MAX_STEPS = {
    (64, 16): 20_000, (64, 32): 20_000, (64, 64): 20_000,
    (128, 16): 20_000, (128, 32): 20_000, (128, 64): 20_000,
    (256, 16): 30_000, (256, 32): 20_000, (256, 64): 20_000,
    (512, 16): 80_000, (512, 32): 20_000, (512, 64): 20_000,
    (1024, 128): 80_000, (2048, 256): 80_000, (4096, 512): 200_000,
}  # fmt: skip
"""Table 2: training step cutoff, in contexts, by (m, d_model)."""
