"""The law behind the first probes, against scipy's prediction interval and numpy's fit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from rgr_dist.planning.first_guesses import (
    LARGEST_SPREAD,
    LEAST_RANGE,
    LEAST_SPREAD,
    fit_power,
    fit_ratio,
)

POSITIVE = st.floats(0.5, 5000)


@given(st.lists(st.tuples(POSITIVE, POSITIVE), min_size=2, max_size=20))
@example([(1.0, 1.0), (1.0, 1.1), (2.0, 2.4)])  # whose spread is between its bounds
def test_the_ratio_is_the_geometric_mean_and_its_spread_the_prediction_interval(
    points: list[tuple[float, float]],
) -> None:
    ratio, spread = fit_ratio([x for x, _ in points], [y for _, y in points])
    ratios = np.array([y / x for x, y in points])
    assert ratio == pytest.approx(stats.gmean(ratios))
    n = len(points)
    scale = np.log(ratios).std(ddof=1) * math.sqrt(1 + 1 / n)
    upper = math.exp(min(stats.t.interval(0.95, n - 1, 0, scale)[1], 50)) if scale else 1.0
    assert spread == pytest.approx(min(max(upper, LEAST_SPREAD), LARGEST_SPREAD))


def test_two_thresholds_suffice_and_the_spread_keeps_its_bounds() -> None:
    assert fit_ratio([1.0, 2.0], [3.0, 6.0]) == (pytest.approx(3.0), 1.15)
    assert fit_ratio([1.0, 1.0], [1e-30, 1e30]) == (pytest.approx(1.0), 2.0)


def test_each_scale_needs_its_threshold() -> None:
    with pytest.raises(ValueError, match="shorter"):
        fit_ratio([1.0, 2.0, 3.0], [2.0, 4.0])


@given(st.lists(POSITIVE, min_size=3, max_size=9, unique=True), st.floats(-2, 2), st.floats(0.1, 9))
def test_a_power_law_is_found_again(x: list[float], exponent: float, factor: float) -> None:
    if max(x) < LEAST_RANGE * min(x):
        return
    fit = fit_power(x, [factor * v**exponent for v in x])
    assert fit == (pytest.approx(exponent, abs=1e-6), pytest.approx(math.log(factor), abs=1e-4))


@pytest.mark.parametrize("x", [[1.0, 2.0], [3.0, 3.0, 3.0], [3.0, 3.1, 3.2]])
def test_too_few_points_or_too_close_ones_leave_the_exponent_open(x: list[float]) -> None:
    assert fit_power(x, x) is None
