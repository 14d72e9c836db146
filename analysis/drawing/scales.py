"""Axes: where a value lies between the ends, and ticks that read well."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

NEAR_ONE = 1e-3
"""Distance from 1 at which the score axis stops widening."""

SCORE_TICKS = (0.0, 0.5, 0.8, 0.9, 0.95, 0.99, 1.0)


@dataclass(frozen=True)
class Tick:
    """A mark on an axis; a tick of a higher level shows once a reader has zoomed in that far."""

    value: float
    text: str
    level: int = 0


@dataclass(frozen=True)
class Axis:
    """One axis of a panel.

    Attributes:
        low, high: the values at its ends.
        scale: ``log``, ``linear``, or ``score``, which widens towards 1.
    """

    label: str
    low: float
    high: float
    ticks: tuple[Tick, ...]
    scale: Literal["linear", "log", "score"] = "log"

    def at(self, value: float) -> float:
        """Where a value lies: 0 at the low end, 1 at the high end, outside [0, 1] beyond them."""
        low, high = self._stretched(self.low), self._stretched(self.high)
        return (self._stretched(value) - low) / (high - low)

    def _stretched(self, value: float) -> float:
        if self.scale == "log":
            return math.log(value) if value > 0 else -math.inf
        if self.scale == "score":
            return -math.log10(max(0.0, 1 - value) + NEAR_ONE)
        return value


def log2_axis(
    label: str,
    values: Sequence[float],
    pad: float = 1.15,
    above: float | None = None,
    finer: bool = False,
) -> Axis:
    """A logarithmic axis around the positive ``values``, labelled with plain integers.

    If some values are not whole and fewer than two integer ticks fit, it is labelled like
    ``ratio_axis``.

    Args:
        pad: factor by which the axis extends beyond the values at both ends.
        above: this factor at the high end, if it differs.
        finer: whether there are more ticks for a reader who zooms in.
    """
    low, high = min(values) / pad, max(values) * (above or pad)
    coarse = integer_ticks(low, high)
    if len(coarse) < 2 and any(value % 1 for value in values):
        return Axis(label, low, high, _round(low, high))
    ticks = [Tick(tick, f"{tick:,}") for tick in coarse]
    between = integer_ticks(low, high, most=36) if finer else ()
    ticks += [Tick(tick, f"{tick:,}", level=1) for tick in between if tick not in coarse]
    return Axis(label, low, high, tuple(ticks))


def ratio_axis(label: str, values: Sequence[float], pad: float = 1.15) -> Axis:
    """A logarithmic axis around positive real values, labelled 0.1, 0.2, 0.5, 1, …"""
    shown = [value for value in values if 0 < value < math.inf] or [1.0]
    low, high = min(shown) / pad, max(shown) * pad
    return Axis(label, low, high, _round(low, high))


def score_axis(label: str) -> Axis:
    """A score axis from 0 to 1 that widens towards 1, to separate 0.98 from 0.99."""
    return Axis(label, 0.0, 1.0, tuple(Tick(t, f"{t:g}") for t in SCORE_TICKS), "score")


def share_axis(label: str) -> Axis:
    """A linear axis from 0 to 1."""
    return Axis(label, 0, 1, tuple(Tick(t / 5, f"{t / 5:g}") for t in range(6)), "linear")


def integer_ticks(low: float, high: float, most: int = 9) -> list[int]:
    """At most ``most`` integers in [low, high]: powers of two, and integers between if few fit."""
    for per_octave in (1, 2, 4, 8):
        steps = {i * 2**k for k in range(40) for i in range(1, 2 * per_octave)}
        ticks = sorted(tick for tick in steps if low <= tick <= high)
        if len(ticks) >= (3 if most < 10 else most // 3):
            break
    return ticks[:: max(1, (len(ticks) + most - 1) // most)]


def _round(low: float, high: float) -> tuple[Tick, ...]:
    return tuple(Tick(tick, f"{tick:g}") for tick in round_ticks(low, high))


def round_ticks(low: float, high: float) -> list[float]:
    """At most nine round numbers in [low, high]: such as 1, 2, 5 of each decade, or even steps."""
    for steps in ((1,), (1, 2, 5), (1, 2, 3, 5, 7), range(1, 10)):
        decades = range(-30, 31)
        ticks = sorted({float(f"{step}e{k}") for k in decades for step in steps})
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) >= 3:
            return ticks[:: max(1, (len(ticks) + 8) // 9)]
    for k in range(math.floor(math.log10(high)), -31, -1):  # a narrow range
        for step in (5, 2, 1):
            unit = step * 10.0**k
            counts = range(math.ceil(low / unit - 1e-9), math.floor(high / unit + 1e-9) + 1)
            ticks = [float(f"{step * n}e{k}") for n in counts]
            ticks = [tick for tick in ticks if low <= tick <= high]
            if len(ticks) >= 3:
                return ticks
    return ticks
