"""Axes place values in order and have ticks that read well, whatever the range."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgr_dist.analysis.drawing.scales import (
    integer_ticks,
    log2_axis,
    ratio_axis,
    round_ticks,
    score_axis,
    share_axis,
)


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (5, 300, [8, 16, 32, 64, 128, 256]),
        (41.7, 92, [48, 56, 64, 80]),
        (0.87, 1.15, [1]),
        (3.5, 7, [4, 5, 6, 7]),
    ],
)
def test_ticks_are_powers_of_two_or_lie_between_them(
    low: float, high: float, ticks: list[int]
) -> None:
    assert integer_ticks(low, high) == ticks


@given(st.floats(0.5, 5_000), st.floats(1.3, 5_000))
def test_ticks_are_few_and_inside(low: float, ratio: float) -> None:
    ticks = integer_ticks(low, low * ratio)
    assert len(ticks) <= 9
    assert ticks == sorted(set(ticks))
    assert all(low <= tick <= low * ratio for tick in ticks)


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.05, 3, [0.05, 0.1, 0.2, 0.5, 1, 2]),
        (0.004, 0.9, [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5]),
        (1e-4, 0.5, [1e-4, 1e-3, 1e-2, 1e-1]),
        (0.31, 0.62, [0.4, 0.5, 0.6]),
        (0.4, 0.46, [0.4, 0.42, 0.44, 0.46]),
        (0.84, 1.3, [0.9, 1, 1.1, 1.2, 1.3]),
    ],
)
def test_ticks_of_real_values_are_round(low: float, high: float, ticks: list[float]) -> None:
    assert round_ticks(low, high) == ticks


@given(st.floats(1e-9, 1e9), st.floats(1.1, 1e9))
def test_ticks_of_real_values_are_few_and_inside(low: float, ratio: float) -> None:
    ticks = round_ticks(low, low * ratio)
    assert 1 <= len(ticks) <= 9
    assert ticks == sorted(set(ticks))
    assert all(low <= tick <= low * ratio for tick in ticks)


@given(st.lists(st.integers(1, 10_000), min_size=1, max_size=9), st.floats(1.1, 3))
def test_a_logarithmic_axis_is_linear_in_the_logarithm(values: list[int], pad: float) -> None:
    axis = log2_axis("x", values, pad=pad)
    assert axis.at(axis.low) == 0
    assert axis.at(axis.high) == 1
    assert axis.at(math.sqrt(axis.low * axis.high)) == pytest.approx(0.5)
    assert all(0 < axis.at(value) < 1 for value in values)
    assert all(-1e-9 <= axis.at(tick.value) <= 1 + 1e-9 for tick in axis.ticks)


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([16 / 64, 24 / 64], [0.2, 0.3, 0.4]),
        ([0.5, 0.19], [0.2, 0.3, 0.5]),
        ([0.5, 1.0], [0.5, 0.7, 1]),
        ([1.4], [1.2, 1.4, 1.6, 1.8]),
        ([0.25, 4.0], [1, 2, 4]),
        ([1.0], [1]),
    ],
)
def test_a_logarithmic_axis_of_small_ratios_has_ticks(
    values: list[float], ticks: list[float]
) -> None:
    shown = log2_axis("m′ / d_model", values, pad=1.3).ticks
    assert [tick.value for tick in shown] == ticks
    assert [float(tick.text) for tick in shown] == ticks


def test_a_reader_who_zooms_in_has_more_ticks() -> None:
    plain, finer = log2_axis("x", [4, 300]), log2_axis("x", [4, 300], finer=True)
    assert [tick for tick in finer.ticks if tick.level == 0] == list(plain.ticks)
    assert len(plain.ticks) < len(finer.ticks) <= 45


def test_the_score_axis_widens_towards_one() -> None:
    axis = score_axis("score")
    at = [axis.at(tick.value) for tick in axis.ticks]
    assert at == sorted(at)
    assert (at[0], at[-1]) == (0, 1)
    assert axis.at(1) - axis.at(0.99) > axis.at(0.99) - axis.at(0.95)


def test_an_axis_of_errors_leaves_out_what_is_infinite() -> None:
    axis = ratio_axis("error", [0.2, math.inf, 0.0, 0.8])
    assert (axis.low, axis.high) == pytest.approx((0.2 / 1.15, 0.8 * 1.15))
    assert axis.at(math.inf) == math.inf
    assert ratio_axis("error", []).at(1.0) == pytest.approx(0.5)
    assert share_axis("share").at(0.25) == 0.25
