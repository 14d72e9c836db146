"""Malformed inputs are refused, and what is read is right: ``python -m tests.malformed``, short."""

from __future__ import annotations

from tests.malformed.check import check_all


def test_every_input_is_read_as_other_readers_do_or_refused_in_one_line() -> None:
    tally, faults = check_all(count=70, seed=1, processes=0)
    assert faults == []
    assert min(map(sum, tally.values())) >= 10
