"""How numbers are written: one form for each kind, everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from rgr_dist.analysis import wording

WRITTEN: list[tuple[Callable[..., str], tuple[Any, ...], str]] = [
    (wording.plural, (1, "head"), "1 head"),
    (wording.plural, (20_000, "step"), "20,000 steps"),
    (wording.duration, (12.34,), "12.3 seconds"),
    (wording.duration, (245,), "4 minutes and 5 seconds"),
    (wording.duration, (3600,), "1 hour"),
    (wording.duration, (3 * 3600 + 430,), "3 hours and 7 minutes"),
    (wording.rough_time, (3,), "10 seconds"),
    (wording.rough_time, (21,), "20 seconds"),
    (wording.rough_time, (57,), "1 minute"),
    (wording.rough_time, (4801,), "1 hour and 20 minutes"),
    (wording.clock, (12,), "12 s"),
    (wording.clock, (90,), "1.5 min"),
    (wording.clock, (600,), "10 min"),
    (wording.clock, (5400,), "1.5 h"),
    (wording.span, ([1024, 64],), "64 to 1,024"),
    (wording.span, ([8, 8],), "8"),
    (wording.span, ([2, 4], "–"), "2–4"),
    (wording.in_words, ("keys=1050,family=partial",), "partial, 1,050 keys"),
    (wording.in_words, ("max_steps=80000,model=max",), "max, 80,000 steps"),
    (wording.in_words, ("learning_rate=0.003,file=a.csv",), "a.csv, learning rate 0.003"),
    (wording.in_words, ("",), ""),
    (wording.number, (-0.214, ".2f"), "−0.21"),
    (wording.three_digits, (1.4,), "1.40"),
    (wording.three_digits, (-123.4,), "−123"),
    (wording.three_digits, (None,), "–"),
    (wording.with_range, (20, 18, 24), "20 [18–24]"),
    (wording.with_range, (20, None, 24), "20 [?–24]"),
    (wording.with_range, (20, 18, None), "20 [18–?]"),
    (wording.with_range, (20, None, pd.NA), "20"),
    (wording.with_range, (None, 18, 24), "[18–24]"),
    (wording.with_range, (None, 18, None), "≥ 18"),
    (wording.with_range, (None, None, None), "–"),
    (wording.with_limits, (1.4, 1.31, None), "1.40 [1.31–?]"),
    (wording.with_limits, (1.4, None, 1.5), "1.40 [?–1.50]"),
    (wording.with_limits, (1.4, None, None), "1.40"),
    (wording.with_limits, (3, 2, 4, str), "3 [2–4]"),
    (wording.real_range, (0.846, 0.831, 0.861), "0.846 [0.831 to 0.861]"),
    (wording.real_range, (0.084, -0.071, 0.097, True), "+0.084 [−0.071 to +0.097]"),
    (wording.real_range, (0.846, None, None), "0.846"),
    (wording.real_range, (None, 0.1, 0.2), "–"),
]


@pytest.mark.parametrize(("write", "given", "text"), WRITTEN)
def test_a_number_is_written_so(write: Callable[..., str], given: Any, text: str) -> None:
    assert write(*given) == text
