"""Malformed inputs are refused: a short form of ``python -m tests.malformed``."""

from __future__ import annotations

from tests.malformed.check import check_all


def test_malformed_inputs_are_refused_in_one_line() -> None:
    tally, faults = check_all(count=30, seed=1, processes=0)
    assert faults == []
    assert set(tally.values()) == {(5, 5)}
