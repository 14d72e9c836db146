"""Curves of scores against scipy's least squares from many starts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize
from scipy.special import expit

from rgr_dist.analysis.transitions import score_curves

WIDTHS = np.log2([8.0, 10, 12, 14, 16, 20, 24, 32])


def drawn(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores of a few runs at the first n widths."""
    rng = np.random.default_rng(seed)
    x = np.repeat(WIDTHS[:n], rng.integers(1, 6, n))
    middle, width, top = rng.uniform(2.5, 4), rng.uniform(0.03, 0.8), rng.uniform(0.7, 1.05)
    return x, np.clip(top * expit((x - middle) / width) + rng.normal(0, 0.02, len(x)), 0, 1)


def fitted(x: np.ndarray, y: np.ndarray) -> score_curves.ScoreCurve:
    """The curve through the mean scores at each width."""
    widths, column = np.unique(x, return_inverse=True)
    n = np.bincount(column).astype(float)
    return score_curves.fit(widths, np.bincount(column, y) / n, n)


def squares(x: np.ndarray, y: np.ndarray, top: float, middle: float, width: float) -> float:
    return float(((top * expit((x - middle) / width) - y) ** 2).sum())


def scipys(x: np.ndarray, y: np.ndarray) -> float:
    """The least sum of squares over a grid of starts."""
    low, high = [0, x.min() - 6, 0.01], [1, x.max() + 6, 6]
    fits = [
        optimize.least_squares(
            lambda v: v[0] * expit((x - v[1]) / v[2]) - y,
            [0.9, middle, width],
            bounds=(low, high),
            xtol=1e-12,
            ftol=1e-12,
        )
        for middle in np.linspace(x.min(), x.max(), 5)
        for width in (0.05, 0.4)
    ]
    return 2 * min(float(fit.cost) for fit in fits)


def test_no_sum_of_squares_is_above_that_from_many_starts() -> None:
    for seed in range(12):
        x, y = drawn(seed, 4 + seed % 5)
        curve = fitted(x, y)
        own = squares(x, y, curve.top, curve.middle, curve.width)
        assert own <= scipys(x, y) * (1 + 1e-6) + 1e-12
        assert 0 <= curve.top <= 1
        assert 0.01 - 1e-12 <= curve.width <= 6 + 1e-12


def test_a_curve_without_noise_is_found_again() -> None:
    found = fitted(WIDTHS, 0.95 * expit((WIDTHS - 3.4) / 0.15))
    assert (found.top, found.middle, found.width) == pytest.approx((0.95, 3.4, 0.15))
