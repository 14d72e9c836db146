"""Lower bounds by counting (Sec. 9)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from scipy.special import betaln

if TYPE_CHECKING:
    import pandas as pd

Graphs = Literal["all", "permutations"]

BITS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""Bits per parameter for which bounds are listed."""


def graph_bits(m: int, edges: int, graphs: Graphs) -> float:
    """Bits that single out one graph of a family.

    For permutations log₂ m!, fixed points included. For all graphs log₂ C(m(m-1), m'), those with
    m' edges and no loops; with more than m(m-1) edges, which takes self-loops, log₂ C(m², m').

    The proofs of the paper use the natural logarithm and its figures log₂; bits use log₂.

    >>> round(graph_bits(4, 4, "permutations"), 4)  # log₂ 24
    4.585
    """
    if graphs == "permutations":
        return math.lgamma(m + 1) / math.log(2)
    pairs = m * (m - 1) if edges <= m * (m - 1) else m * m
    if edges in (0, pairs):
        return 0.0
    return -(math.log(pairs + 1) + float(betaln(pairs - edges + 1, edges + 1))) / math.log(2)


def counting_bound(
    bits: float, d_model: int, bits_per_parameter: float, embedding: float = 0.0
) -> float:
    """The least D_K for a family of 2^bits graphs at b bits per parameter (Sec. 9, warm-up).

    By b (2 d_model D_K + 1) ≥ bits, where the 1 is tau. Each b gives a line, but none is *the*
    bound: a real parameter has no given b, and trained layers hold less than one bit in each.

    With an embedding that is trained and shared by R relations, m d_model more numbers help to hold
    the graphs of all: b (R (2 d_model D_K + 1) + m d_model) ≥ R bits. So D_K is less by m / 2R.

    Theorem 9.2 goes the same way without a given b. Its premises: all R graphs, any of the family
    each, are recovered with a margin γ that does not depend on m, on contexts of any length, by
    weights |U|_F, |V|_F, |tau| ≤ 1 of each relation and rows |x_i| ≤ 1, now of one X for each
    choice of the graphs and not of one X for all of them. A score moves by at most |x_u - x~_u| +
    |x_v - x~_v| with the rows, by the Cauchy-Schwarz inequality as in Lemma 9.3, so that rows and
    weights within γ / 16 of those of a net keep every sign. The net has at most
    (C / γ)^(R (2 d_model D_K + 1) + m d_model) points, and must tell apart 2^(R bits) choices:

        D_K ≥ c(γ) bits / d_model - m / 2R - 1 / (2 d_model),    c(γ) = 1 / (2 log₂(C / γ)).

    For permutations bits is m log₂ m, to first order. At R = 1 this is empty as soon as d_model
    exceeds 2 c log₂ m, and it is the paper's bound as R grows. Unit rows are normalised as the
    premise asks; that weights keep to a constant norm is a premise, not a finding: the head of
    ``trained_embeddings`` has |W_Q|_F = √((R + 1) d_k).

    Args:
        embedding: numbers of the embedding for each relation, m d_model / R; 0 if it is frozen.

    >>> counting_bound(bits=321, d_model=16, bits_per_parameter=1)
    10.0
    >>> counting_bound(bits=321, d_model=16, bits_per_parameter=1, embedding=64 * 16 / 8)
    6.0
    """
    return max(0.0, (bits / bits_per_parameter - 1 - embedding) / (2 * d_model))


def counting_table(m: int, d_model: int, edges: int | None = None) -> pd.DataFrame:
    """The D_K that counting requires, for each of ``BITS``.

    Args:
        edges: m', the number of relations; m if left out. If it is m, permutations are listed too.

    Returns:
        ``graphs, bits_per_parameter, D_K``.

    >>> table = counting_table(m=64, d_model=16).set_index(["graphs", "bits_per_parameter"])
    >>> print(f"{table.loc[('permutations', 1.0), 'D_K']:.2f}")
    9.22
    """
    import pandas as pd

    relations = m if edges is None else edges
    kinds: list[Graphs] = ["all", "permutations"] if relations == m else ["all"]
    return pd.DataFrame(
        [
            {
                "graphs": kind,
                "bits_per_parameter": b,
                "D_K": counting_bound(graph_bits(m, relations, kind), d_model, b),
            }
            for kind in kinds
            for b in BITS
        ]
    )
