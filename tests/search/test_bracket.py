"""One bracket against monotone oracles, every one of them up to a size."""

from __future__ import annotations

import re
from math import ceil, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgr_dist.search.bracket import Bracket

EIGHT, HUNDRED = range(1, 9), range(1, 101)


def close(bracket: Bracket, threshold: int) -> tuple[Bracket, list[int]]:
    """Bisect to the end; the values probed on the way."""
    probed: list[int] = []
    while not bracket.is_closed:
        value = bracket.middle()
        probed.append(value)
        bracket = bracket.tell(value, "pass" if value >= threshold else "fail")
    return bracket, probed


@given(st.data())
def test_closing_takes_about_log2_of_the_width_in_probes(data: st.DataObject) -> None:
    first = data.draw(st.integers(1, 9) | st.integers(2, 100_000), "first pass")
    threshold = data.draw(st.integers(1, first), "threshold")
    low = data.draw(st.integers(0, threshold - 1), "known fail")
    bracket = Bracket(range(1, first + 1))
    if low:
        bracket = bracket.tell(low, "fail")
    closed, probed = close(bracket.tell(first, "pass"), threshold)
    assert (closed.low, closed.high) == (threshold - 1, threshold)
    assert len(set(probed)) == len(probed)
    assert len(probed) <= ceil(log2(first)) + 4


INSIDE = Bracket(range(1, 21)).tell(3, "fail").tell(7, "pass")


@pytest.mark.parametrize("verdict", ["pass", "fail"])
@pytest.mark.parametrize(
    ("bracket", "value", "inside"),
    [
        *((INSIDE, value, (3, 7)) for value in (-1, 0, 2, 3, 7, 8, 20, 21)),
        (Bracket(range(1, 21)), 21, (0, 20)),
        (Bracket((4, 8, 16)), 5, (0, 16)),  # between two of the axis
    ],
)
def test_a_value_outside_is_refused(
    bracket: Bracket, value: int, inside: tuple[int, int], verdict: str
) -> None:
    told = re.escape(f"{value} is not inside {inside} on the axis")
    with pytest.raises(ValueError, match=f"^{told}$"):
        bracket.tell(value, verdict)


@pytest.mark.parametrize(
    ("probes", "closed", "exhausted"),
    [
        ({19: "fail"}, False, False),
        ({19: "fail", 20: "fail"}, False, True),
        ({19: "fail", 20: "pass"}, True, False),
        ({1: "pass"}, True, False),  # nothing is left to fail below
    ],
)
def test_a_bracket_is_closed_or_exhausted(probes: dict, closed: bool, exhausted: bool) -> None:
    bracket = Bracket(range(1, 21))
    for value, verdict in probes.items():
        bracket = bracket.tell(value, verdict)
    assert (bracket.is_closed, bracket.is_exhausted) == (closed, exhausted)


@pytest.mark.parametrize(
    "bracket", [Bracket(EIGHT), Bracket(EIGHT, 3), Bracket(EIGHT, 3, 3), Bracket(EIGHT, 0, 0)]
)
def test_there_is_nothing_to_bisect_without_a_pass_or_when_closed(bracket: Bracket) -> None:
    with pytest.raises(ValueError, match=f"^nothing to bisect in {re.escape(str(bracket))}$"):
        bracket.middle()


def test_passes_in_a_row_are_counted_until_the_next_fail() -> None:
    bracket = Bracket(EIGHT).tell(8, "pass").tell(6, "pass")
    assert bracket == Bracket(EIGHT, below=0, above=5, passes=2)
    assert bracket.tell(2, "fail") == Bracket(EIGHT, below=2, above=5, passes=0)


def test_low_and_high_are_values_of_the_axis() -> None:
    axis = (4, 8, 16)
    assert (Bracket(axis).low, Bracket(axis).high) == (0, None)
    assert (Bracket(axis, 1, 2).low, Bracket(axis, 1, 2).high) == (4, 16)
    assert (Bracket(axis, 0, 0).low, Bracket(axis, 0, 0).high) == (0, 4)


@pytest.mark.parametrize(
    ("value", "at_most", "nearest"),
    [(0.1, 0, 4), (3.9, 0, 4), (4, 4, 4), (6, 4, 4), (6.1, 4, 8), (12, 8, 8), (99, 16, 16)],
)
def test_a_value_is_rounded_to_the_axis(value: float, at_most: int, nearest: int) -> None:
    bracket = Bracket((4, 8, 16))
    assert (bracket.at_most(value), bracket.nearest(value)) == (at_most, nearest)


@pytest.mark.parametrize(
    ("axis", "below", "above", "passes", "middle"),
    [
        (HUNDRED, 0, 63, 0, 42),  # 64 / 1.5
        (HUNDRED, 0, 63, 1, 42),
        (HUNDRED, 0, 63, 2, 32),
        (HUNDRED, 0, 63, 3, 16),
        (HUNDRED, 0, 63, 9, 16),
        (HUNDRED, 0, 1, 3, 1),
        (HUNDRED, 10, 63, 1, 25),  # √640
        (HUNDRED, 31, 63, 1, 44),  # √1984
        (HUNDRED, 32, 63, 1, 48),  # half way
        (HUNDRED, 32, 64, 1, 45),  # √2080
        (HUNDRED, 33, 63, 0, 48),
        (HUNDRED, 1, 2, 0, 2),  # √3, but above the fail
        ((60, 64), 0, 1, 1, 60),  # 64 / 1.5 lies below the axis
        ((1, 2, 4, 8, 100), 1, 4, 1, 8),  # √100 lies between the last two
        ((1, 9, 10, 11, 100), 1, 4, 1, 10),
        ((5, 6, 7, 8, 9), 1, 4, 1, 7),  # of 6, 7 and 8
        ((5, 6, 7, 8), 1, 3, 1, 6),  # of 6 and 7
    ],
)
def test_where_to_probe_next(
    axis: tuple[int, ...], below: int, above: int, passes: int, middle: int
) -> None:
    assert Bracket(axis, below, above, passes).middle() == middle


@pytest.mark.parametrize(
    ("below", "above", "value"),
    [
        (0, None, 6),  # 1 to 10, or none: 11 answers, of which 1 to 6 are below
        (4, None, 8),
        (4, 8, 7),  # 5 to 9, which passes
        (7, 8, 8),
    ],
)
def test_halving_leaves_half_of_the_answers_below(
    below: int, above: int | None, value: int
) -> None:
    assert Bracket(range(1, 11), below, above).halve() == value
