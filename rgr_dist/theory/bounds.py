"""Lower bounds by counting (Sec. 9), and how many bits a parameter holds."""

from __future__ import annotations

import math
from typing import Literal

from scipy.special import betaln

Graphs = Literal["all", "permutations"]

BITS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""Bits per parameter for which bounds are listed."""


def graph_bits(m: int, edges: int, graphs: Graphs) -> float:
    """Bits that single out one graph of a family.

    For permutations log₂ m!, fixed points included. For all graphs log₂ C(m(m-1), m'), those with
    m' edges and no loops; with more than m(m-1) edges, which takes self-loops, log₂ C(m², m').

    The proofs of the paper use the natural logarithm and its figures log₂; bits use log₂.
    """
    if graphs == "permutations":
        return math.lgamma(m + 1) / math.log(2)
    pairs = m * (m - 1) if edges <= m * (m - 1) else m * m
    if edges in (0, pairs):
        return 0.0
    return -(math.log(pairs + 1) + float(betaln(pairs - edges + 1, edges + 1))) / math.log(2)


def counting_bound(bits: float, d_model: int, bits_per_parameter: float) -> float:
    """The least D_K for a family of 2^bits graphs at b bits per parameter (Sec. 9, warm-up).

    By b (2 d_model D_K + 1) ≥ bits, where the 1 is tau. Each b gives a line, but none is *the*
    bound: a real parameter has no given b, and trained layers hold less than one bit in each.
    """
    return max(0.0, (bits / bits_per_parameter - 1) / (2 * d_model))


def margin_bits(margin: float) -> float:
    """The b of ``counting_bound`` for a margin γ, not a precision: log₂(1 + 3/γ) (Theorem 9.2).

    The margin is that of weights with ‖U‖, ‖V‖ and |tau| at most 1, eq. (26). Layers that recover
    different graphs are 2γ or more apart in ‖U - U'‖ + ‖V - V'‖ + |tau - tau'| (Lemma 9.3), so at
    least 2γ/3 in the largest of the three. Balls of radius γ/3 about them are disjoint and within
    1 + γ/3 of zero: by volume there are at most (1 + 3/γ)^(2 d_model D_K + 1). The paper's net at
    γ/4 has (C/γ)^… for an unnamed C, which is the same with a larger b.
    """
    return math.log2(1 + 3 / margin)


def margin_of(bits: float) -> float | None:
    """The margin γ whose ``margin_bits`` are ``bits``; None if it is not below 1."""
    return 3 / (2**bits - 1) if bits > 2 else None


def bits_per_parameter(bits: float, d_model: int, D_K: int) -> float:
    """Bits of the graph that each of the 2 d_model D_K + 1 parameters would have to hold."""
    return bits / (2 * d_model * D_K + 1)


def softmax_floor(length: int) -> float:
    """The d_k that Lemma 8.2 needs to lift a target above 1/2 in a context of ℓ = ``length`` items.

    With Step 1's scores of 3/4 d_k and 1/4 d_k, (ℓ - 1) exp(-√d_k / 2) < 1 requires
    d_k > 4 ln²(ℓ - 1): Proposition 8.4's (ln ℓ)² floor with its constant. It bounds only designs of
    the template, not softmax attention: larger weights reach the same at a smaller d_k.
    """
    return 4 * math.log(length - 1) ** 2
