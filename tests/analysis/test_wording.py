"""Words that no approved page has: of values, times, certificates, names, and studies at odds."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgr_dist.analysis.laws.conclusions import headline
from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.report.sections import summary
from rgr_dist.analysis.rows import names_of
from rgr_dist.analysis.thresholds import section as cells
from rgr_dist.analysis.thresholds.certificates import certificate_words
from rgr_dist.analysis.wording import (
    clock,
    duration,
    in_words,
    plural,
    real_range,
    rough_time,
    three_digits,
    with_limits,
    with_range,
)
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import parse_study
from tests.analysis import made_up
from tests.analysis.page_numbers.reading import paragraphs

NAN = float("nan")


@pytest.mark.parametrize(
    ("words", "values", "expected"),
    [
        (with_range, (20, 18, 24), "20 [18–24]"),
        (with_range, (20, None, 24), "20 [?–24]"),
        (with_range, (20, None, None), "20"),
        (with_range, (None, 18, None), "≥ 18"),
        (with_limits, (1.4, 1.314, None), "1.40 [1.31–?]"),
        (with_limits, (2.0, None, 3.0, "{:.2f}".format), "2.00 [?–3.00]"),
        (with_limits, (1.4, None, None), "1.40"),
        (with_range, (None, 18, 24), "[18–24]"),
        (with_range, (pd.NA, NAN, None), "–"),
        (real_range, (0.8464, 0.831, 0.861), "0.846 [0.831 to 0.861]"),
        (real_range, (-0.084, -0.1, 0.0, True), "−0.084 [−0.100 to +0.000]"),
        (real_range, (0.5, None, None), "0.500"),
        (real_range, (0.5, NAN, NAN), "0.500"),
        (real_range, (None, None, None), "–"),
        (real_range, (NAN, None, None), "–"),
        (duration, (0.04,), "0 seconds"),
        (duration, (12.34,), "12.3 seconds"),
        (duration, (59.96,), "1 minute"),
        (duration, (60,), "1 minute"),
        (duration, (200,), "3 minutes and 20 seconds"),
        (duration, (3599.7,), "1 hour"),
        (duration, (11_220,), "3 hours and 7 minutes"),
        (duration, (86_400,), "1 day"),
        (rough_time, (0.4,), "10 seconds"),
        (rough_time, (26,), "30 seconds"),
        (rough_time, (89.9,), "1 minute"),
        (rough_time, (90,), "2 minutes"),
        (rough_time, (4800,), "1 hour and 20 minutes"),
        (rough_time, (3_600_000,), "1 month, 10 days and 16 hours"),
        (clock, (89.9,), "90 s"),
        (clock, (90,), "1.5 min"),
        (clock, (600,), "10 min"),
        (clock, (5399,), "90 min"),
        (clock, (5400,), "1.5 h"),
        (clock, (3_600_000,), "1,000.0 h"),
        (three_digits, (1.4,), "1.40"),
        (three_digits, (-6.505,), "−6.50"),
        (three_digits, (288.0,), "288"),
        (three_digits, (None,), "–"),
        (plural, (0, "step"), "0 steps"),
        (plural, (1, "step"), "1 step"),
        (plural, (20_000, "step"), "20,000 steps"),
    ],
)
def test_a_value_in_words(
    words: Callable[..., str], values: tuple[Any, ...], expected: str
) -> None:
    assert words(*values) == expected


@given(st.floats(0, 28 * 86_400) | st.integers(0, 7300).map(float))
def test_a_time_that_is_an_estimate_keeps_to_its_units_and_is_near(seconds: float) -> None:
    sizes = {"second": (1, 60), "minute": (60, 60), "hour": (3600, 24), "day": (86_400, 29)}
    parts = re.findall(r"(\d+) (second|minute|hour|day)s?\b", rough_time(seconds))
    assert parts
    assert all(0 < int(number) < sizes[unit][1] for number, unit in parts), rough_time(seconds)
    told = sum(int(number) * sizes[unit][0] for number, unit in parts)
    assert abs(told - seconds) <= (31 if told >= 60 else 10)


PASS = {"d_k": 6, "d_vo": 2, "mean_score": 0.9961, "n_seeds": 10}
PASSES = "passes at 6 (10 seeds, mean 0.9961)"
RELATIONS = made_up.study_of([(64, 16)])
ERRORS = parse_study({"name": "made-up", "model": "value", "cells": [{"m": 64, "d_model": 16}]})
FACTS = parse_study(
    {
        "name": "facts",
        "model": "facts",
        "database": {"family": "function", "keys": 16, "queries": 4, "values": 16},
        "cells": [{"d_model": 16}],
        "search": {"axis": "d_vo"},
    }
)


@pytest.mark.parametrize(
    ("passed", "fail", "study", "words"),
    [
        (PASS, (5, 0.912, 2), RELATIONS, f"{PASSES}, fails at 5 (mean ≤ 0.9824 after 2 seeds)"),
        (PASS, (5, 0.912, 1), RELATIONS, f"{PASSES}, fails at 5 (mean ≤ 0.9912 after 1 seed)"),
        (PASS, (5, 0.9824, 10), RELATIONS, f"{PASSES}, fails at 5 (10 seeds, mean 0.9824)"),
        (PASS, (9, 0.9, 10), RELATIONS, f"{PASSES} yet fails at 9 (10 seeds, mean 0.9000)"),
        (PASS, None, RELATIONS, f"{PASSES}, no failing probe below"),
        (PASS | {"d_k": 1}, None, RELATIONS,
         "passes at 1 (10 seeds, mean 0.9961), nothing is narrower"),
        (PASS, (1, 0.912, 1), FACTS,
         "passes at 2 (10 seeds, mean 0.9961), fails at 1 (mean ≤ 0.9912 after 1 seed)"),
        (None, (5, 0.9, 10), RELATIONS, "fails at 5 (10 seeds, mean 0.9000)"),
        # a mean that fails is told from the target
        (None, (5, 0.98998, 10), RELATIONS, "fails at 5 (10 seeds, mean 0.98998)"),
        # of errors the seeds that are missing could have had none
        (None, (5, 0.7, 8), ERRORS, "fails at 5 (mean ≥ 0.5600 after 8 seeds)"),
        (None, (5, None, 2), ERRORS, "fails at 5 (2 seeds)"),
    ],
)  # fmt: skip
def test_a_certificate_in_words(
    passed: dict[str, Any] | None, fail: tuple[Any, ...] | None, study: Study, words: str
) -> None:
    """A failing probe by its width, its mean and its seeds. Widths are d_k, of facts d_vo."""
    value = study.search.sizes.value
    failed = fail and dict(zip((value, "mean_score", "n_seeds"), fail, strict=True))
    assert certificate_words(json.dumps({"pass": passed, "fail": failed}), study) == words


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, "", "null", "{}"])
def test_no_certificate_is_a_dash(missing: object) -> None:
    assert certificate_words(missing, RELATIONS) == "–"


def names(**keys: Any) -> list[tuple[str, str, str]]:
    study = parse_study({"name": "made-up", **keys})
    found = names_of(made_up.results_of(study, [], [])).values()
    return [(own["anchor"], own["short"], own["full"]) for own in found]


def test_every_cell_has_a_name_of_its_own() -> None:
    cell = {"m": 64, "d_model": 16}
    faster, shorter = {"training": {"learning_rate": 0.01}}, {"training": {"max_steps": 500}}
    assert names(cells=[cell, cell | faster, cell | {"m": 128}]) == [
        ("m64-d16", "(64, 16, learning rate 0.001)",
         "(m, d_model) = (64, 16), learning rate 0.001"),
        ("m64-d16-2", "(64, 16, learning rate 0.01)",
         "(m, d_model) = (64, 16), learning rate 0.01"),
        ("m128-d16", "(128, 16)", "(m, d_model) = (128, 16)"),
    ]  # fmt: skip
    regular = {"family": "regular", "degree": 4}
    assert names(graph=regular, cells=[cell, cell | shorter, cell | shorter | {"m": 65}]) == [
        ("m64-d16-r4", "(64, 16, r = 4, 20,000 steps)",
         "(m, d_model) = (64, 16), r = 4, 20,000 steps"),
        ("m64-d16-r4-2", "(64, 16, r = 4, 500 steps)",
         "(m, d_model) = (64, 16), r = 4, 500 steps"),
        ("m65-d16-r4", "(65, 16, r = 4)", "(m, d_model) = (65, 16), r = 4"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("", ""),
        ("keys=50,family=partial,share=0.5", "partial, 50 keys, share 0.5"),
        ("max_steps=20000,patience=5", "20,000 steps, patience 5"),
        ("model=grouped(groups=2, keys=3),learning_rate=0.01",
         "grouped(groups=2, keys=3), learning rate 0.01"),
    ],
)  # fmt: skip
def test_what_tells_cells_apart_is_said_in_words(keys: str, words: str) -> None:
    assert in_words(keys) == words


FIRST = "At (m, d_model) = (64, 16), D_K* = 20 [{}–20] at h* = 2"


@pytest.mark.parametrize(
    ("widths", "status", "words"),
    [
        ([10, 44, None], "open", "2 of 3 cells need D_K* = 20 to 88 at h* = 2 so far."),
        ([10, None], "open", "1 of 2 cells needs D_K* = 20 [?–20] at h* = 2 so far."),
        ([10, 44], "found", "2 cells need D_K* = 20 to 88 at h* = 2."),
        ([10], "open", f"{FIRST.format('?')} so far."),
        ([10], "found", f"{FIRST.format(20)}."),
        ([None, None], "censored",
         "No threshold in 2 cells: no head count passes at any width allowed."),
        ([None], "open", "No threshold yet: the search of 1 cell is not finished."),
    ],
)  # fmt: skip
def test_the_headline_where_there_is_no_law(
    widths: list[int | None], status: str, words: str
) -> None:
    study = made_up.study_of([(64 << i, 16) for i in range(len(widths))], heads=[2])
    rows = [
        made_up.threshold_row(cell, 2, d_k, status=status)
        for cell, d_k in zip(study.cells, widths, strict=True)
    ]
    results = made_up.results_of(study, [], rows)
    assert " ".join(headline(results)) == words


def test_head_counts_that_pass_nowhere_are_named() -> None:
    study = made_up.study_of([(64, 16), (128, 16)], heads=[1, 2, 4])
    rows = [
        made_up.threshold_row(cell, h, d_k, status="found" if d_k else "censored")
        for cell in study.cells
        for h, d_k in ((1, None), (2, None if cell.m == 64 else 9), (4, 5))
    ]
    never = "at h = 1 no width allowed passes; at h = 2 none does in 1 of 2 cells"
    assert headline(made_up.results_of(study, [], rows)) == [
        f"2 cells need D_K* = 18 to 20 at h* = 2 to 4; {never}."
    ]
    (told,) = headline(made_up.results_of(study, [], rows[1:]))  # one cell's h = 1 is not known
    assert told == (
        "2 cells need D_K* = 18 to 20 at h* = 2 to 4 so far; at h = 2 no width allowed passes in "
        "1 of 2 cells."
    )


def test_the_range_of_head_counts_is_said_to_be_of_those_tried() -> None:
    """Three heads were not tried, and two need too much, yet both lie between the ends."""
    study = made_up.study_of([(64, 16)], heads=[1, 2, 4])
    rows = [made_up.threshold_row(study.cells[0], h, d_k) for h, d_k in ((1, 12), (2, 20), (4, 3))]
    results = made_up.results_of(study, [], rows)
    assert headline(results) == ["At (m, d_model) = (64, 16), D_K* = 12 [12–12] at h* = 1."]
    (table,) = cells.section(results).shown
    assert table.rows[0]["arm_words"] == "1 [1–4]"
    assert "from the fewest to the most heads tried that pass within 10 % of D_K*" in table.caption
    assert table.caption.count("no interval of h*") == 1


def test_cells_that_need_the_same_width_are_given_all_that_their_intervals_span() -> None:
    study = made_up.study_of([(64, 16), (128, 16)], heads=[2])
    rows = [
        made_up.threshold_row(cell, 2, 10, D_K_low=low, D_K_high=low + 4)
        for cell, low in zip(study.cells, (16, 20), strict=True)
    ]
    (said,) = headline(made_up.results_of(study, [], rows))
    assert said == "2 cells need D_K* = 20 [16–24 over the cells] at h* = 2."


def summary_of(results: StudyResults) -> list[str]:
    """The paragraphs at the head of a page."""
    return paragraphs(summary.section(results))


@pytest.mark.parametrize(
    ("sizes", "limits", "words"),
    [
        ([(64, 16)], 20_000, "At (m, dmodel) = (64, 16), m items in dmodel dimensions, we asked"),
        ([(64, 16)], [5000, 20_000], "For (m, dmodel) = (64, 16), m items in dmodel dimensions"),
        ([(128, 16), (64, 32), (64, 16)], [5000, 20_000],
         "For (m, dmodel) = (64, 16) to (128, 16), m items"),
    ],
)  # fmt: skip
def test_what_was_asked(sizes: list[tuple[int, int]], limits: Any, words: str) -> None:
    cells = [{"m": m, "d_model": d_model} for m, d_model in sizes]
    study = parse_study({"name": "x", "cells": cells, "training": {"max_steps": limits}})
    told = summary_of(made_up.results_of(study, [], []))
    (said,) = (line for line in told if "we asked" in line)
    assert said.startswith(words)
    assert ("at step limits from 5,000 to 20,000, we asked" in said) == (limits != 20_000)


def test_a_study_of_an_edge_list_names_its_file(tmp_path: Path) -> None:
    (tmp_path / "friends.csv").write_text("0,1\n1,2\n2,0\n0,2\n")
    graph = {"family": "edges", "file": str(tmp_path / "friends.csv")}
    study = parse_study({"name": "x", "cells": [{"m": 20, "d_model": 16, "graph": graph}]})
    told = summary_of(made_up.results_of(study, [], []))
    assert any("holds the 4 edges of friends.csv: a mean test" in line for line in told)


@pytest.mark.parametrize(
    ("widths", "words"),
    [
        ((5, 5), []),
        ((5, None), ["The study is not finished: 1 of 2 cells is open, and what"]),
        ((None, None), ["The study is not finished: 2 of 2 cells are open, and what"]),
    ],
)
def test_what_is_not_finished(widths: tuple[int | None, ...], words: list[str]) -> None:
    study = made_up.study_of([(64, 16), (64, 32)], heads=[1])
    rows = [
        made_up.threshold_row(cell, 1, d_k) for cell, d_k in zip(study.cells, widths, strict=True)
    ]
    said = summary_of(made_up.results_of(study, [], rows))
    told = [line.partition(" this page")[0] for line in said if line.startswith("The study is")]
    assert told == words
