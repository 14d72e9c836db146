"""The t-interval against a table of the t distribution."""

from __future__ import annotations

import math

import pytest

from rgr_dist.search.confidence_interval import t_interval

T_975 = {1: 12.706204736, 2: 4.302652730, 4: 2.776445105}
"""The 97.5 % points of Student's distribution, by degrees of freedom, as printed in tables."""


@pytest.mark.parametrize(
    ("scores", "mean", "error"),
    [
        ([0.0, 2.0], 1.0, 1.0),  # s = √2, s / √2 = 1
        ([3.0, 1.0, 2.0], 2.0, 1 / math.sqrt(3)),  # s = 1
        ([1.0, 2.0, 3.0, 4.0, 5.0], 3.0, math.sqrt(0.5)),  # s² = 2.5
        ([1.0, 1.0, 4.0], 2.0, 1.0),  # s² = 3
    ],
)
def test_the_interval_is_the_tables(scores: list[float], mean: float, error: float) -> None:
    half = T_975[len(scores) - 1] * error
    assert t_interval(scores) == pytest.approx((mean - half, mean + half), rel=1e-8)


@pytest.mark.parametrize("scores", [[], [0.5], [math.inf]])
def test_fewer_than_two_scores_have_none(scores: list[float]) -> None:
    assert t_interval(scores) is None


def test_equal_scores_have_an_interval_of_zero_width() -> None:
    assert t_interval([0.1, 0.1, 0.1]) == (0.1, 0.1)


@pytest.mark.parametrize("infinite", [math.inf, -math.inf])
def test_an_infinite_score_makes_both_ends_infinite(infinite: float) -> None:
    assert t_interval([0.5, infinite, 1.0]) == (infinite, infinite)
