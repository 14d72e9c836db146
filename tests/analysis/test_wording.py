"""How numbers are written: one form for each kind, everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from rgr_dist.analysis import wording
from tests.golden import golden

GIVEN: list[tuple[Callable[..., str], tuple[Any, ...]]] = [
    (wording.plural, (1, "head")),
    (wording.plural, (20_000, "step")),
    (wording.duration, (12.34,)),
    (wording.duration, (245,)),
    (wording.duration, (3600,)),
    (wording.duration, (3 * 3600 + 430,)),
    (wording.rough_time, (3,)),
    (wording.rough_time, (21,)),
    (wording.rough_time, (57,)),
    (wording.rough_time, (4801,)),
    (wording.clock, (12,)),
    (wording.clock, (90,)),
    (wording.clock, (600,)),
    (wording.clock, (5400,)),
    (wording.span, ([1024, 64],)),
    (wording.span, ([8, 8],)),
    (wording.span, ([2, 4], "–")),
    (wording.number, (-0.214, ".2f")),
    (wording.three_digits, (1.4,)),
    (wording.three_digits, (-123.4,)),
    (wording.three_digits, (None,)),
    (wording.with_range, (20, 18, 24)),
    (wording.with_range, (20, None, 24)),
    (wording.with_range, (20, 18, None)),
    (wording.with_range, (20, None, pd.NA)),
    (wording.with_range, (None, 18, 24)),
    (wording.with_range, (None, 18, None)),
    (wording.with_range, (None, None, None)),
    (wording.with_limits, (1.4, 1.31, None)),
    (wording.with_limits, (1.4, None, 1.5)),
    (wording.with_limits, (1.4, None, None)),
    (wording.with_limits, (3, 2, 4, str)),
    (wording.real_range, (0.846, 0.831, 0.861)),
    (wording.real_range, (0.084, -0.071, 0.097, True)),
    (wording.real_range, (0.846, None, None)),
    (wording.real_range, (None, 0.1, 0.2)),
]


def written() -> list[str]:
    return [f"{write.__name__}{given}: {write(*given)}" for write, given in GIVEN]


def test_numbers_are_written_as_somebody_has_read_them() -> None:
    assert written() == golden("numbers")
