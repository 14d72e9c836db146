"""What a colour and a shape mean: a head count has the same ones in every study and figure.

Colours go from blue through red to yellow with log₂ h, and from darker to lighter, so that their
order can be seen without hue; shapes repeat what colours say. Both sets stand out from their page
(a contrast of at least 3).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

HEADS = {
    "light": (
        "#003982", "#5e1ea0", "#93117b", "#b4144e", "#c33501", "#b0660d", "#a48209", "#8f9a00",
    ),
    "dark": (
        "#5169e8", "#b46ae6", "#e562ba", "#fe738f", "#fe9477", "#feae64", "#fec81f", "#e7e824",
    ),
}  # fmt: skip
"""Colours of 1, 2, 4, … 128 heads on a light and on a dark page; more heads have the last one."""

INKS = {
    "light": {
        "ink": "#1c1d20",
        "soft": "#5c6067",
        "line": "#d8dade",
        "page": "#ffffff",
        "shade": "#f0f2f4",
        "link": "#00696b",
    },
    "dark": {
        "ink": "#e9eaec",
        "soft": "#a6abb3",
        "line": "#3b3e44",
        "page": "#141518",
        "shade": "#202329",
        "link": "#55cfc9",
    },
}
"""Ink of text and fits, softer ink, rules, page, shaded parts, and what can be clicked."""

SHAPES = {
    "circle": "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0z",
    "square": "M-4-4h8v8h-8z",
    "hexagon": "M-5 0L-2.5-4.4h5L5 0L2.5 4.4h-5z",
    "diamond": "M0-5.6L5.6 0L0 5.6L-5.6 0z",
    "plus": "M-1.8-5h3.6v3.2h3.2v3.6h-3.2v3.2h-3.6v-3.2h-3.2v-3.6h3.2z",
    "star": "M0-6L1.6-1.9L5.9-1.8L2.5 .8L3.6 5L0 2.5L-3.6 5L-2.5 .8L-5.9-1.8L-1.6-1.9z",
    "bar": "M-6-2.4h12v4.8h-12z",
    "column": "M-2.4-6h4.8v12h-4.8z",
}
"""Outlines around the origin, in pixels, in the order of 1, 2, 4, … 128 heads: none that
could be taken for an arrow."""


PHASES = {
    "light": {"easy": "#3f9a8b", "slow": "#0b544c", "hard": "#b97700", "impossible": "#8a1538"},
    "dark": {"easy": "#3f9a8b", "slow": "#a5efe2", "hard": "#f0b040", "impossible": "#ff7d97"},
}
"""Colours of the phases: training finds weights that pass, finds them late, or does not find those
that exist; or such weights are proved not to exist."""

TILES = {
    "easy": "M-13-13h26v26h-26z",
    "slow": "M-13-13h26v26h-26zM-4.5-4.5v9h9v-9z",
    "hard": "M0-13L13 0L0 13L-13 0z",
    "impossible": "M-13-9L-9-13L0-4L9-13L13-9L4 0L13 9L9 13L0 4L-9 13L-13 9L-4 0z",
}
"""Outlines that tell the phases apart without colour."""


def head_colour(h: int, theme: str) -> str:
    """The colour of a head count as ``#rrggbb``; between powers of two a mixture of both."""
    colours = HEADS[theme]
    place = min(math.log2(h), len(colours) - 1)
    below = int(place)
    above = min(below + 1, len(colours) - 1)
    share = place - below
    mixed = (
        round(a + (b - a) * share)
        for a, b in zip(*(bytes.fromhex(colours[i][1:]) for i in (below, above)), strict=True)
    )
    return f"#{bytes(mixed).hex()}"


def head_shape(h: int) -> str:
    """The name of a head count's outline: that of the largest power of two in it."""
    return tuple(SHAPES)[min(int(math.log2(h)), len(SHAPES) - 1)]


def variables(heads: Iterable[int], theme: str) -> dict[str, str]:
    """Every colour of a page by its name in CSS: ``ink``, …, ``h1``, ``h2``, …"""
    of_heads = {f"h{h}": head_colour(h, theme) for h in sorted(set(heads))}
    return INKS[theme] | PHASES[theme] | of_heads
