"""What a colour means: head counts stand out from both pages, and from each other."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from rgr_dist.analysis.drawing.colours import HEADS, INKS, head_colour, head_shape, variables

POWERS = [1, 2, 4, 8, 16, 32, 64, 128]
# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB
SEEN = {
    "all": np.eye(3),
    "no red": np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]),
    "no green": np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]),
    "no blue": np.array([[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]]),
}


def linear(colour: str) -> np.ndarray:
    """Linear RGB of ``#rrggbb`` (sRGB, IEC 61966-2-1)."""
    parts = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """The contrast of two colours as WCAG 2 defines it."""
    low, high = sorted(float(linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (one, other))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_marks_and_words_stand_out_from_the_page(theme: str) -> None:
    inks = INKS[theme]
    for h in POWERS:
        assert contrast(head_colour(h, theme), inks["page"]) >= 3
    for word in ("ink", "soft", "link"):
        for ground in ("page", "shade"):
            assert contrast(inks[word], inks[ground]) >= 4.5


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("eye", SEEN)
def test_more_heads_are_lighter_to_every_eye(theme: str, eye: str) -> None:
    light = [
        float((SEEN[eye] @ linear(head_colour(h, theme))) @ [0.2126, 0.7152, 0.0722])
        for h in POWERS
    ]
    slack = 0 if eye == "all" else 0.015  # the shapes tell two and four heads apart
    assert all(more > fewer - slack for fewer, more in itertools.pairwise(light))


def test_head_counts_differ_in_colour_and_shape() -> None:
    for one, other in itertools.combinations(POWERS, 2):
        assert head_shape(one) != head_shape(other)
        assert head_colour(one, "light") != head_colour(other, "light")


def test_a_head_count_has_one_colour_in_every_study() -> None:
    few, many = variables([1, 8], "light"), variables([1, 2, 3, 8, 512], "light")
    assert few["h8"] == many["h8"] == HEADS["light"][3]
    assert many["h512"] == HEADS["light"][-1]
    assert many["h3"] not in HEADS["light"]
    assert head_shape(3) == head_shape(2)
