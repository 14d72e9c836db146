"""The sentences, word for word."""

from __future__ import annotations

import json
import re
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgr_dist.analysis.cell_names import cell_names
from rgr_dist.analysis.thresholds.certificates import certificate_words
from rgr_dist.analysis.wording import (
    cell_name,
    clock,
    duration,
    fixed,
    plural,
    real_range,
    rough_time,
    three_digits,
    with_range,
)
from rgr_dist.study.axis import CAPACITY, SizeAxis
from rgr_dist.study.from_yaml import parse_study

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
        (
            {"d_k": 7, "D_K": 4, "mean_score": 0.9, "n_seeds": 10},
            "passes at 6 (10 seeds, mean 0.9961) yet fails at 7 (10 seeds, mean 0.9000)",
        ),
        (
            {"d_vo": 1, "d_k": 9, "mean_score": 0.9, "n_seeds": 1},
            "passes at 2 (10 seeds, mean 0.9961), fails at 1 (mean ≤ 0.9900 after 1 seed)",
        ),
        (None, "passes at 6 (10 seeds, mean 0.9961), no failing probe below"),
    ],
)
def test_a_certificate_in_words(fail: dict | None, words: str) -> None:
    """Widths are d_k; of facts, whose probes have a d_vo, that."""
    of_facts = fail is not None and "d_vo" in fail
    passed = PASS | ({"d_vo": 2} if of_facts else {})
    axis = SizeAxis(arm="d_k", value="d_vo", fixed=(("h", 1),)) if of_facts else CAPACITY
    text = json.dumps({"pass": passed, "fail": fail})
    assert certificate_words(text, 10, axis=axis) == words


def test_of_errors_the_seeds_that_are_missing_could_have_had_none() -> None:
    fail = {"d_k": 5, "mean_score": 0.03, "n_seeds": 2}
    words = certificate_words(json.dumps({"fail": fail}), 10, minimised=True)
    assert words == "fails at 5 (mean ≥ 0.0060 after 2 seeds)"


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


@pytest.mark.parametrize(
    ("seconds", "rough", "short"),
    [
        (0.4, "10 seconds", "0 s"),
        (26, "30 seconds", "26 s"),
        (60, "1 minute", "60 s"),
        (89.9, "1 minute", "90 s"),
        (90, "2 minutes", "2 min"),
        (200, "3 minutes", "3 min"),
        (4800, "1 hour and 20 minutes", "80 min"),
        (5400, "1 hour and 30 minutes", "1.5 h"),
        (3_600_000, "1 month, 10 days and 16 hours", "1,000.0 h"),
    ],
)
def test_times_that_are_estimates(seconds: float, rough: str, short: str) -> None:
    assert (rough_time(seconds), clock(seconds)) == (rough, short)


@given(st.floats(0, 28 * 86_400) | st.integers(0, 7300).map(float))
def test_a_time_that_is_an_estimate_keeps_to_its_units_and_is_near(seconds: float) -> None:
    sizes = {"second": (1, 60), "minute": (60, 60), "hour": (3600, 24), "day": (86_400, 29)}
    parts = re.findall(r"(\d+) (second|minute|hour|day)s?\b", rough_time(seconds))
    assert parts
    assert all(0 < int(number) < sizes[unit][1] for number, unit in parts), rough_time(seconds)
    told = sum(int(number) * sizes[unit][0] for number, unit in parts)
    assert abs(told - seconds) <= (31 if told >= 60 else 10)


def test_so_many_digits_and_no_sign_of_zero() -> None:
    values = {-0.214: "−0.21", -0.004: "0.00", 0.006: "0.01", 1.0: "1.00", -3.456: "−3.46"}
    assert [fixed(value, 2) for value in values] == list(values.values())
    assert fixed(-12.6, 0) == "−13"


def test_three_digits_keep_their_zeros() -> None:
    assert [three_digits(v) for v in (1.4, 0.9661, -6.505, 288.0, None)] == [
        "1.40",
        "0.966",
        "−6.50",
        "288",
        "–",
    ]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({}, "m = 64, d_model = 16"),
        ({"degree": 1}, "m = 64, d_model = 16"),
        ({"degree": 2}, "m = 64, d_model = 16, r = 2"),
        (
            {"graph": "edges", "n_edges": 300, "degree": 9},
            "m = 64, d_model = 16, m' = 300",
        ),
    ],
)
def test_a_cell_is_named_by_its_sizes(row: dict, words: str) -> None:
    sizes = {"m": 64, "d_model": 16}
    assert cell_name(sizes | row) == words


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


def names_of(**keys: Any) -> list[tuple[str, str, str]]:
    study = parse_study({"name": "made-up", **keys})
    names = [cell_names(study)[cell.cell_id] for cell in study.cells]
    return [(name.anchor, name.short, name.full) for name in names]


def test_every_cell_has_a_name_of_its_own() -> None:
    cell = {"m": 64, "d_model": 16}
    faster, shorter = {"training": {"learning_rate": 0.01}}, {"training": {"max_steps": 500}}
    assert names_of(cells=[cell, cell | faster, cell | {"m": 128}]) == [
        ("m64-d16", "(64, 16, learning_rate=0.001)",
         "(m, d_model) = (64, 16) with learning_rate=0.001"),
        ("m64-d16-2", "(64, 16, learning_rate=0.01)",
         "(m, d_model) = (64, 16) with learning_rate=0.01"),
        ("m128-d16", "(128, 16)", "(m, d_model) = (128, 16)"),
    ]  # fmt: skip
    regular = {"family": "regular", "degree": 4}
    assert names_of(graph=regular, cells=[cell, cell | shorter, cell | shorter | {"m": 65}]) == [
        ("m64-d16-r4", "(64, 16, r = 4, max_steps=20000)",
         "(m, d_model, r) = (64, 16, 4) with max_steps=20000"),
        ("m64-d16-r4-2", "(64, 16, r = 4, max_steps=500)",
         "(m, d_model, r) = (64, 16, 4) with max_steps=500"),
        ("m65-d16-r4", "(65, 16, r = 4)", "(m, d_model, r) = (65, 16, 4)"),
    ]  # fmt: skip
