"""Numbers and names as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import humanize
import pandas as pd

MISSING = "–"


def plural(number: int, thing: str) -> str:
    """``1 head``, ``4 heads``, ``20,000 steps``."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """``12.3 seconds``, ``4 minutes and 5 seconds``, ``3 hours and 7 minutes``."""
    unit = "seconds" if seconds < 3600 else "minutes"
    form = "%.1f" if seconds < 60 else "%.0f"
    return str(humanize.precisedelta(seconds, minimum_unit=unit, format=form))


def rough_time(seconds: float) -> str:
    """``20 seconds``, ``4 minutes``, ``1 hour and 20 minutes``: no finer than an estimate is."""
    tens = max(10, 10 * round(seconds / 10))
    if tens < 60:
        return f"{tens} seconds"
    return str(humanize.precisedelta(seconds, minimum_unit="minutes", format="%.0f"))


def clock(seconds: float) -> str:
    """``12 s``, ``1.5 min``, ``14 min``, ``3.1 h``: one number, where there is no room for more."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 600:
        return f"{seconds / 60:.1f} min"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:,.1f} h"


def span(values: Sequence[int], to: str = " to ") -> str:
    """The range of some whole numbers, ``64 to 1,024``; a single number if they are equal."""
    return to.join(f"{end:,}" for end in dict.fromkeys([min(values), max(values)]))


def number(value: float, form: str) -> str:
    """A number as ``format`` writes it, but with a true minus sign: ``−0.21``."""
    return format(value, form).replace("-", "−")


def three_digits(value: float | None) -> str:
    """Three significant digits with trailing zeros, ``1.40``; a dash for None."""
    return MISSING if value is None else number(value, "#.3g").rstrip(".")


def with_range(value: Any, low: Any, high: Any) -> str:
    """``20 [18–24]``; ``[18–24]`` or ``≥ 18`` without a value; ``?`` for an unknown end."""
    middle, bottom, top = (None if pd.isna(end) else int(end) for end in (value, low, high))
    ends = f"{'?' if bottom is None else bottom}–{'?' if top is None else top}"
    if middle is None and top is None:
        return MISSING if bottom is None else f"≥ {bottom}"
    if middle is None:
        return f"[{ends}]"
    return f"{middle}" if bottom is None and top is None else f"{middle} [{ends}]"


def with_limits(
    value: float,
    low: float | None,
    high: float | None,
    shown: Callable[[float], str] = three_digits,
) -> str:
    """``1.40 [1.31–?]``: a number with its limits, if any is known; ``?`` for one that is not."""
    if low is None and high is None:
        return shown(value)
    ends = ("?" if end is None else shown(end) for end in (low, high))
    return f"{shown(value)} [{'–'.join(ends)}]"


def real_range(value: Any, low: Any, high: Any, signed: bool = False) -> str:
    """``0.846 [0.831 to 0.861]``; with ``signed``, ``+0.084 [+0.071 to +0.097]``."""
    form = "+.3f" if signed else ".3f"
    if pd.isna(value):
        return MISSING
    if pd.isna(low):
        return number(value, form)
    return f"{number(value, form)} [{number(low, form)} to {number(high, form)}]"
