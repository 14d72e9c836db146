"""Lower bounds by counting (Sec. 9), and how many bits a parameter holds."""

from __future__ import annotations

import math
from typing import Literal

Graphs = Literal["all", "permutations"]

BITS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""Bits per parameter for which bounds are listed."""


def graph_bits(m: int, edges: int, graphs: Graphs) -> float:
    """Bits that single out a graph of the family.

    Of permutations log₂ m!, fixed points included. Of all graphs log₂ C(m(m-1), m'): those of m'
    edges without loops; of more edges, which only self-loops allow, log₂ C(m², m').

    The proofs of the paper use the natural logarithm and its figures log₂; bits are log₂.
    """
    if graphs == "permutations":
        return math.lgamma(m + 1) / math.log(2)
    pairs = m * (m - 1) if edges <= m * (m - 1) else m * m
    return (
        math.lgamma(pairs + 1) - math.lgamma(edges + 1) - math.lgamma(pairs - edges + 1)
    ) / math.log(2)


def counting_bound(bits: float, d_model: int, bits_per_parameter: float) -> float:
    """The D_K that a family of 2^bits graphs takes at b bits a parameter (Sec. 9, warm-up).

    b (2 d_model D_K + 1) ≥ bits, where the 1 is tau. It is a line for each b, never *the* bound:
    a real parameter has no given b, and trained layers hold less than one bit in each.
    """
    return max(0.0, (bits / bits_per_parameter - 1) / (2 * d_model))


def margin_bits(margin: float) -> float:
    """b of ``counting_bound`` at a margin γ instead of a precision: log₂(1 + 3/γ) (Theorem 9.2).

    The margin is of weights with ‖U‖, ‖V‖ and |tau| at most 1 (26). Layers that recover different
    graphs lie 2γ apart in ‖U - U'‖ + ‖V - V'‖ + |tau - tau'| (Lemma 9.3), so 2γ/3 in the largest of
    the three. Balls of radius γ/3 about them are disjoint and within 1 + γ/3 of zero: by volume
    there are at most (1 + 3/γ)^(2 d_model D_K + 1). The paper's net at γ/4 has (C/γ)^… for an
    unnamed C, which is the same with a larger b.
    """
    return math.log2(1 + 3 / margin)


def margin_of(bits: float) -> float | None:
    """The margin γ whose ``margin_bits`` are b; None where it is not below 1."""
    return 3 / (2**bits - 1) if bits > 2 else None


def bits_per_parameter(bits: float, d_model: int, D_K: int) -> float:
    """Bits of the graph that each of the 2 d_model D_K + 1 parameters would have to hold."""
    return bits / (2 * d_model * D_K + 1)


def softmax_floor(length: int) -> float:
    """d_k that Lemma 8.2 takes to lift a target above 1/2 in a context of so many items.

    With Step 1's scores of 3/4 d_k and 1/4 d_k, (ℓ - 1) exp(-√d_k / 2) < 1 takes
    d_k > 4 ln²(ℓ - 1): Proposition 8.4's (ln ℓ)² floor with its constant. It bounds designs of the
    template alone, not softmax attention: larger weights reach the same at a smaller d_k.
    """
    return 4 * math.log(length - 1) ** 2
