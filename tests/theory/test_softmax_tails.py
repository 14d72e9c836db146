"""Lemma 8.3 with a constant of its own, in exact expectations; and what it is used for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import binom


def psi_1(values: np.ndarray, chances: np.ndarray) -> float:
    """‖Z‖ of ψ₁: the K at which the mean of exp(|Z| / K) is 2."""
    logs, sizes = np.log(chances), np.abs(values)

    def excess(log_K: float) -> float:
        return float(np.logaddexp.reduce(logs + sizes * math.exp(-log_K))) - math.log(2)

    ends = math.log(sizes.max() / 1e3), math.log(2 * sizes.max())
    return math.exp(brentq(excess, *ends))


def softmax_share(low: float, high: float, chance: float, length: int) -> tuple[np.ndarray, ...]:
    """The values of p = Z_1 / (Z_1 + … + Z_l), and their chances, of Z at one of two values."""
    others = np.arange(length)
    rest = (length - 1 - others) * low + others * high
    weights = binom.pmf(others, length - 1, chance)
    values = np.concatenate([z / (z + rest) for z in (low, high)])
    chances = np.concatenate([(1 - chance) * weights, chance * weights])
    return values[chances > 0], chances[chances > 0]


@given(st.floats(1e-3, 1), st.floats(1, 1e3), st.floats(1e-6, 0.999), st.integers(2, 400))
def test_a_share_of_a_noisy_softmax_has_tails_of_scale_one_over_its_length(
    low: float, high: float, chance: float, length: int
) -> None:
    """K_1 = 2 K + 16 K² + 1 / ln 2, where K is ‖Z‖ over its mean.

    Below half its mean the sum of l positive Z lies with a chance of exp(-l / 16 K²) at most, and
    the norm of that event is 16 K² / l; elsewhere p is at most 2 Z_1 / (l mean).
    """
    assume(high > low)
    mean = (1 - chance) * low + chance * high
    K = psi_1(np.array([low, high]), np.array([1 - chance, chance])) / mean
    values, chances = softmax_share(low, high, chance, length)
    assert chances @ values == pytest.approx(1 / length)
    bound = 2 * K + 16 * K * K + 1 / math.log(2)
    assert psi_1(values - 1 / length, chances) * length <= bound * (1 + 1e-9)


def exp_of_signs(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Z = exp(L), L the sum of n signs over √n, which is sub-Gaussian alike at every n."""
    heads = np.arange(n + 1)
    return np.exp((2 * heads - n) / math.sqrt(n)), binom.pmf(heads, n, 0.5)


def test_exp_of_sub_gaussian_logits_has_no_bounded_norm() -> None:
    """So Lemma 8.3, which Theorem 8.1's proof uses for them, has no constant there."""
    norms = []
    for n in (4, 16, 64, 256):
        values, chances = exp_of_signs(n)
        norms.append(psi_1(values, chances) / float(chances @ values))
        assert norms[-1] >= math.exp(math.sqrt(n) - 0.5) / ((n + 1) * math.log(2))  # one term
    assert norms == sorted(norms)
    assert norms[-1] > 1000 * norms[0]
