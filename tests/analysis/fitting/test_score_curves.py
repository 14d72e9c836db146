"""Curves of scores against scipy's least squares from many starts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize
from scipy.special import expit

from analysis.transitions import score_curves

WIDTHS = np.log2([8.0, 10, 12, 14, 16, 20, 24, 32])


def drawn(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores of a few runs at the first n widths."""
    rng = np.random.default_rng(seed)
    x = np.repeat(WIDTHS[:n], rng.integers(1, 6, n))
    middle, width, top = rng.uniform(2.5, 4), rng.uniform(0.03, 0.8), rng.uniform(0.7, 1.05)
    return x, np.clip(top * expit((x - middle) / width) + rng.normal(0, 0.02, len(x)), 0, 1)


def packed(data: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean scores at each width, and of how many runs; padded by weights of 0."""
    x, y, weight = np.zeros((3, len(data), len(WIDTHS)))
    for i, (at, score) in enumerate(data):
        widths, column = np.unique(at, return_inverse=True)
        count = np.bincount(column)
        x[i, : len(widths)], weight[i, : len(widths)] = widths, count
        y[i, : len(widths)] = np.bincount(column, score) / count
    return x, y, weight


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


def test_no_sum_of_squares_is_above_scipys() -> None:
    data = [drawn(seed, 4 + seed % 5) for seed in range(12)]
    curves = score_curves.fit(*packed(data))
    for i, (x, y) in enumerate(data):
        own = squares(x, y, curves.top[i], curves.middle[i], curves.width[i])
        assert own <= scipys(x, y) * (1 + 1e-6) + 1e-12
        assert 0 <= curves.top[i] <= 1
        assert 0.01 - 1e-12 <= curves.width[i] <= 6 + 1e-12


def test_a_curve_without_noise_is_found_again() -> None:
    y = 0.95 * expit((WIDTHS - 3.4) / 0.15)
    found = score_curves.fit(WIDTHS[None], y[None], np.ones((1, len(WIDTHS))))
    assert (found.top[0], found.middle[0], found.width[0]) == pytest.approx((0.95, 3.4, 0.15))


def test_a_curve_is_the_same_among_others() -> None:
    data = [drawn(seed, 6) for seed in range(4)]
    x, y, weight = packed(data)
    together = score_curves.fit(x, y, weight)
    alone = score_curves.fit(x[2:3], y[2:3], weight[2:3])
    assert together.middle[2] == pytest.approx(alone.middle[0], abs=1e-8)
    assert together.width[2] == pytest.approx(alone.width[0], rel=1e-7)
