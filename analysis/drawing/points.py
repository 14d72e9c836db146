"""Points made from rows, and the legend of their colours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from rgr_dist.analysis.drawing.panel import Key, Place, Point
from rgr_dist.analysis.drawing.scales import Axis

Curve = Callable[[float], float]

PUBLISHED = Key(text="the paper, inferred from its Table 1", look="paper", hollow=True)
"""The legend entry of cells as published."""


def interval_point(
    row: Mapping[str, Any], x: float, of: str, low: str, high: str, **more: Any
) -> Point:
    """The value of a row with its interval, or an arrow from its lower end if that alone is known.

    Args:
        row: with ``text``, and its ``anchor`` if any; hollow if its ``status`` is open.
        of, low, high: the keys of the value and of its ends.
        more: further attributes of the point.
    """
    found = row[of] is not None
    about = {"text": row["text"], "cell": row.get("anchor"), "hollow": row.get("status") == "open"}
    ends = {"low": row[low], "high": row[high]} if found else {"arrow": True}
    return Point(x=x, y=row[of] if found else row[low], **{**about, **ends, **more})


MOST_KEYS = 12
"""Head counts that a legend lists before it keeps only powers of two."""


def head_keys(heads: Iterable[int], name: str = "h") -> tuple[Key, ...]:
    """The legend of some head counts, or of other arms that take their colours.

    A long legend lists powers of two only, since the other colours are mixtures of theirs.
    """
    listed = sorted(set(heads))
    if len(listed) > MOST_KEYS:
        listed = [h for h in listed if h.bit_count() == 1] or listed
    return tuple(Key(text=f"{name} = {h}", h=h) for h in listed)


def guide_key(rows: Iterable[Mapping[str, Any]], total: str) -> tuple[Key, ...]:
    """The legend of the dotted line at D_K* or D_V*, if any row has it."""
    return (Key(text=f"{total}*", line="guide"),) if any(row[total] for row in rows) else ()


def dodges(names: Iterable[Any], apart: float = 9.0) -> dict[Any, float]:
    """Pixels to the side for each of several marks, so that they stand side by side.

    Args:
        names: of the marks at one place, from left to right.
    """
    marks = list(names)
    return {name: apart * (i - (len(marks) - 1) / 2) for i, name in enumerate(marks)}


def along(curve: Curve, across: Axis, n: int = 60) -> tuple[Place, ...]:
    """Points of a curve across the width of a panel, where it is positive."""
    at = [(float(x), curve(float(x))) for x in np.geomspace(across.low, across.high, n)]
    return tuple(place for place in at if place[1] > 0)
