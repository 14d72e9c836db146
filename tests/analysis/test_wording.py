"""The sentences, word for word."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from analysis.report.findings import certificate_words
from analysis.wording import (
    cell_name,
    duration,
    plural,
    real_range,
    short_name,
    three_digits,
    with_range,
)

PASS = {"d_k": 6, "D_K": 6, "mean_score": 0.9961, "n_seeds": 10}


@pytest.mark.parametrize(
    ("fail", "words"),
    [
        (
            {"d_k": 5, "D_K": 5, "mean_score": 0.912, "n_seeds": 2},
            "passes at 6 (10 seeds, mean 0.9961), fails at 5 (mean ≤ 0.9824 after 2 seeds)",
        ),
        (
            {"d_k": 5, "D_K": 5, "mean_score": 0.9824, "n_seeds": 10},
            "passes at 6 (10 seeds, mean 0.9961), fails at 5 (10 seeds, mean 0.9824)",
        ),
        (
            {"d_k": 9, "D_K": 9, "mean_score": 0.9, "n_seeds": 10},
            "passes at 6 (10 seeds, mean 0.9961) yet fails at 9 (10 seeds, mean 0.9000)",
        ),
        (None, "passes at 6 (10 seeds, mean 0.9961), no failing probe below"),
    ],
)
def test_a_certificate_in_words(fail: dict | None, words: str) -> None:
    assert certificate_words(json.dumps({"pass": PASS, "fail": fail}), 10) == words


def test_a_mean_that_fails_is_told_from_the_target() -> None:
    fail = {"d_k": 5, "D_K": 5, "mean_score": 0.98998, "n_seeds": 10}
    words = certificate_words(json.dumps({"fail": fail}), 10, target=0.99)
    assert words == "fails at 5 (10 seeds, mean 0.98998)"


def test_a_threshold_of_one_has_nothing_below() -> None:
    text = json.dumps({"pass": {**PASS, "d_k": 1}, "fail": None})
    assert certificate_words(text, 10).endswith(", nothing is narrower")


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, "", "null", "{}"])
def test_no_certificate_is_a_dash(missing: object) -> None:
    assert certificate_words(missing, 10) == "–"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ((20, 18, 24), "20 [18–24]"),
        ((20, None, 24), "20 [?–24]"),
        ((20, None, None), "20"),
        ((None, 18, None), "≥ 18"),
        ((None, 18, 24), "[18–24]"),
        ((None, None, None), "–"),
        ((pd.NA, float("nan"), None), "–"),
    ],
)
def test_a_value_with_its_range(values: tuple, words: str) -> None:
    assert with_range(*values) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.04, "0 seconds"),
        (12.34, "12.3 seconds"),
        (59.96, "1 minute"),
        (60, "1 minute"),
        (200, "3 minutes and 20 seconds"),
        (3599.7, "1 hour"),
        (11_220, "3 hours and 7 minutes"),
        (86_400, "1 day"),
    ],
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_three_digits_keep_their_zeros() -> None:
    assert [three_digits(v) for v in (1.4, 0.9661, -6.505, 288.0, None)] == [
        "1.40",
        "0.966",
        "−6.50",
        "288",
        "–",
    ]


@pytest.mark.parametrize(
    ("row", "words", "short"),
    [
        ({}, "m = 64, d_model = 16", "(64, 16)"),
        ({"degree": 1}, "m = 64, d_model = 16", "(64, 16)"),
        ({"degree": 2}, "m = 64, d_model = 16, r = 2", "(64, 16, r = 2)"),
        (
            {"graph": "edges", "n_edges": 300, "degree": 9},
            "m = 64, d_model = 16, m' = 300",
            "(64, 16, r = 9)",
        ),
    ],
)
def test_a_cell_is_named_by_its_sizes(row: dict, words: str, short: str) -> None:
    sizes = {"m": 64, "d_model": 16}
    assert cell_name(sizes | row) == words
    assert short_name(sizes | row) == short


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ((0.8464, 0.831, 0.861), "0.846 [0.831 to 0.861]"),
        ((0.084, 0.071, 0.097, True), "+0.084 [+0.071 to +0.097]"),
        ((-0.084, -0.1, 0.0, True), "−0.084 [−0.100 to +0.000]"),
        ((0.5, None, None), "0.500"),
        ((0.5, float("nan"), float("nan")), "0.500"),
        ((None, None, None), "–"),
        ((float("nan"), None, None), "–"),
    ],
)
def test_a_real_value_with_its_range(values: tuple, words: str) -> None:
    assert real_range(*values) == words


def test_numbers_of_things() -> None:
    assert [plural(n, "step") for n in (0, 1, 2, 20_000)] == [
        "0 steps",
        "1 step",
        "2 steps",
        "20,000 steps",
    ]
