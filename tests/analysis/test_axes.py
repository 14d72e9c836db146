"""Ticks that read well, whatever the range."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.figures.axes import integer_ticks, ranks


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


@pytest.mark.parametrize("n", [0, 1, 2, 7, 12])
def test_every_rank_has_a_colour_of_its_own(n: int) -> None:
    looks = ranks(range(n))
    assert len({colour for colour, _ in looks.values()}) == n
