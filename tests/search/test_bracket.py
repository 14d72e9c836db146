"""One bracket against monotone oracles, every one of them up to a size."""

from __future__ import annotations

from math import ceil, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.bracket import Bracket

EIGHT = range(1, 9)


def close(bracket: Bracket, threshold: int) -> tuple[Bracket, list[int]]:
    """Bisect to the end; the values probed on the way."""
    probed: list[int] = []
    while not bracket.is_closed:
        value = bracket.middle()
        probed.append(value)
        bracket = bracket.tell(value, "pass" if value >= threshold else "fail")
    return bracket, probed


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 7, 8, 9, 16, 33, 64])
def test_bisection_finds_every_threshold_from_every_first_pass(limit: int) -> None:
    for first in range(1, limit + 1):
        for threshold in range(1, first + 1):
            closed, probed = close(Bracket(range(1, limit + 1)).tell(first, "pass"), threshold)
            assert (closed.low, closed.high) == (threshold - 1, threshold)
            assert len(set(probed)) == len(probed)
            assert not closed.is_exhausted


@given(st.data())
def test_closing_takes_about_log2_of_the_width_in_probes(data: st.DataObject) -> None:
    first = data.draw(st.integers(2, 100_000), "first pass")
    threshold = data.draw(st.integers(1, first), "threshold")
    low = data.draw(st.integers(0, threshold - 1), "known fail")
    bracket = Bracket(range(1, first + 1))
    if low:
        bracket = bracket.tell(low, "fail")
    closed, probed = close(bracket.tell(first, "pass"), threshold)
    assert closed.high == threshold
    assert len(probed) <= ceil(log2(first)) + 4


@given(st.integers(2, 500), st.data())
def test_middle_lies_strictly_inside(high: int, data: st.DataObject) -> None:
    low = data.draw(st.integers(0, high - 2))
    passes = data.draw(st.integers(1, 9))
    assert low < Bracket(range(1, high + 1), low, high - 1, passes).middle() < high


@pytest.mark.parametrize("verdict", ["pass", "fail"])
@pytest.mark.parametrize("value", [-1, 0, 2, 3, 7, 8, 20, 21])
def test_a_value_outside_is_refused(value: int, verdict: str) -> None:
    bracket = Bracket(range(1, 21)).tell(3, "fail").tell(7, "pass")
    with pytest.raises(ValueError, match=rf"{value} is not inside \(3, 7\)"):
        bracket.tell(value, verdict)


def test_a_value_beyond_the_limit_is_refused() -> None:
    with pytest.raises(ValueError, match=r"21 is not inside \(0, 20\)"):
        Bracket(range(1, 21)).tell(21, "pass")


def test_the_limit_failing_exhausts_the_bracket() -> None:
    bracket = Bracket(range(1, 21)).tell(19, "fail")
    assert not bracket.is_exhausted
    bracket = bracket.tell(20, "fail")
    assert bracket.is_exhausted
    assert not bracket.is_closed


def test_the_limit_passing_does_not() -> None:
    bracket = Bracket(range(1, 21)).tell(19, "fail").tell(20, "pass")
    assert bracket.is_closed
    assert not bracket.is_exhausted


def test_a_pass_at_one_needs_no_fail_below() -> None:
    assert Bracket(range(1, 21)).tell(1, "pass").is_closed


@pytest.mark.parametrize(
    "bracket", [Bracket(EIGHT), Bracket(EIGHT, 3), Bracket(EIGHT, 3, 3), Bracket(EIGHT, 0, 0)]
)
def test_there_is_nothing_to_bisect_without_a_pass_or_when_closed(bracket: Bracket) -> None:
    with pytest.raises(ValueError, match="nothing to bisect"):
        bracket.middle()
