"""Two studies side by side: pairs of cells, their ratios, and what differs."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from scipy import stats

from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.report.comparison.accuracy import splits
from rgr_dist.analysis.report.comparison.differences import differences
from rgr_dist.analysis.report.comparison.section import answer, summary
from rgr_dist.analysis.report.comparison.widths import cells, laws
from rgr_dist.analysis.report.publish import comparison
from rgr_dist.study.study_file import parse_study
from tests.analysis import made_up

NAMES = ("one", "other")


def found(widths: dict[tuple[int, int], int], **search: Any) -> StudyResults:
    """A study of two heads with these d_k by (m, d_model); 0 is censored."""
    study = made_up.study_of(list(widths), **({"heads": [2]} | search))
    rows = []
    for cell, d_k in zip(study.cells, widths.values(), strict=True):
        ends = {"D_K_low": 2 * d_k - 2, "D_K_high": 2 * d_k + 2} if d_k else {}
        status = {} if d_k else {"status": "censored", "D_K_low": 99, "D_K_high": None}
        rows.append(made_up.threshold_row(cell, 2, d_k or None, **ends, **status))
    return made_up.results_of(study, [], rows)


@pytest.fixture
def pair() -> tuple[StudyResults, StudyResults]:
    first = {(64, 16): 10, (64, 32): 5, (128, 16): 20, (128, 32): 8, (256, 16): 40}
    second = {(64, 16): 20, (64, 32): 15, (128, 16): 20, (128, 32): 0, (512, 16): 90}
    return found(first), found(second, seeds=5)


def test_cells_of_both_are_paired_and_the_others_named(
    pair: tuple[StudyResults, StudyResults],
) -> None:
    section = cells(pair, NAMES)
    assert section is not None
    (table,) = section.shown
    rows = {row["short"]: row for row in table.rows}
    assert list(rows) == ["(64, 16)", "(64, 32)", "(128, 16)", "(128, 32)"]
    assert section.words == [
        "1 cell of one is not in other: (256, 16).",
        "1 cell of other is not in one: (512, 16).",
    ]
    ratios = {short: row["ratio"] for short, row in rows.items()}
    assert ratios == {"(64, 16)": 2, "(64, 32)": 3, "(128, 16)": 1, "(128, 32)": None}
    ends = (rows["(64, 16)"]["ratio_low"], rows["(64, 16)"]["ratio_high"])
    assert ends == pytest.approx((38 / 22, 42 / 18))
    assert {short for short, row in rows.items() if table.apart(row)} == {"(64, 16)", "(64, 32)"}
    assert rows["(128, 32)"]["words_b"] == "≥ 99"


def test_both_intervals_of_a_cell_are_drawn(pair: tuple[StudyResults, StudyResults]) -> None:
    section = cells(pair, NAMES)
    assert section is not None
    ((panel, _),) = (figure.panels for figure in section.figures)
    upright = {(point.x, point.y): (point.low, point.high) for point in panel.points}
    assert upright == {(20, 40): (38, 42), (10, 30): (28, 32), (40, 40): (38, 42)}
    across = [line.points for line in panel.lines if line.look == "head"]
    assert sorted(across) == [((8, 30), (12, 30)), ((18, 40), (22, 40)), ((38, 40), (42, 40))]


def test_json_names_a_cell_by_its_keys_and_the_page_in_words() -> None:
    cells_ = [{"m": 64, "d_model": 16, "training": {"max_steps": [500, 20_000]}}]
    study = parse_study({"name": "x", "cells": cells_, "search": {"heads": [2]}})
    rows = [made_up.threshold_row(cell, 2, 9) for cell in study.cells]
    both = made_up.results_of(study, [], rows)
    _, table = answer((both, both), NAMES)
    assert [row["cell"] for row in table] == [
        "(64, 16, max_steps=500)",
        "(64, 16, max_steps=20000)",
    ]
    section = cells((both, both), NAMES)
    assert section is not None
    shown = [row["short"] for row in section.shown[0].rows]
    assert shown == ["(64, 16, 500 steps)", "(64, 16, 20,000 steps)"]


def test_the_mean_ratio_is_geometric_with_its_interval_over_cells(
    pair: tuple[StudyResults, StudyResults],
) -> None:
    section = summary(pair, NAMES)
    logs = np.log([2, 3, 1])
    low, high = np.exp(stats.t.interval(0.95, 2, logs.mean(), stats.sem(logs)))
    assert section.words[0] == (
        f"other needs {math.exp(logs.mean()):#.3g} times the D_K* of one (geometric mean over "
        f"3 cells; 95 % t-interval {low:#.3g} to {high:#.3g}): no difference is shown."
    )
    assert section.words[1] == (
        "They differ in search.seeds (10 in one, 5 in other). "
        "0 of 0 runs of one and 0 of 0 runs of other did not converge within 20,000 steps."
    )
    assert section.words[2].startswith("The ratio goes from 1.00 at (m, d_model) = ")
    page, _ = comparison(*pair, NAMES)
    texts = "They differ in", "total key width of", 'id="cells-', "The ratio goes", "What was asked"
    places = [page.index(text) for text in texts if text in page]
    assert places == sorted(places)
    assert section.words[3] == (
        "In one, D_K* is the smallest width, over h = 2, whose mean test F1 over 10 seeds is at "
        "least 0.99, within 20,000 steps."
    )
    assert section.words[4] == (
        "In other, D_K* is the smallest width, over h = 2, whose mean test F1 over 5 seeds is at "
        "least 0.99, within 20,000 steps."
    )
    assert not section.words[5:]


@pytest.mark.parametrize(
    ("of_one", "of_other", "words", "apart"),
    [
        ((14, 18), (20, 28), "1.50 [1.11–2.00]", True),
        ((14, None), (20, 28), "1.50 [?–2.00]", False),
        ((None, 18), (20, None), "1.50 [1.11–?]", True),
        ((14, 20), (20, None), "1.50 [1.00–?]", False),
        ((None, None), (None, None), "1.50", False),
    ],
)
def test_a_ratio_has_the_ends_that_are_known(
    of_one: tuple[int | None, int | None],
    of_other: tuple[int | None, int | None],
    words: str,
    apart: bool,
) -> None:
    study = made_up.study_of([(64, 16)], heads=[2])

    def with_ends(d_k: int, ends: tuple[int | None, int | None]) -> StudyResults:
        more = dict(zip(("D_K_low", "D_K_high"), ends, strict=True))
        return made_up.results_of(
            study, [], [made_up.threshold_row(study.cells[0], 2, d_k, **more)]
        )

    section = cells((with_ends(8, of_one), with_ends(12, of_other)), NAMES)
    assert section is not None
    (table,) = section.shown
    assert (table.rows[0]["ratio_words"], table.apart(table.rows[0])) == (words, apart)


def test_of_an_unfinished_search_no_ratio_is_told() -> None:
    study = made_up.study_of([(64, 16), (64, 32)], heads=[1, 4])
    one, other = study.cells

    def results(*more: dict[str, Any]) -> StudyResults:
        rows = [made_up.threshold_row(cell, 1, 40) for cell in study.cells]
        return made_up.results_of(study, [], [*rows, made_up.threshold_row(other, 4, 5), *more])

    pair = results(made_up.threshold_row(one, 4, 5)), results(made_up.threshold_row(one, 4, None))
    said, rows = answer(pair, NAMES)
    assert said[:2] == [
        "D_K* is the same in 1 cell.",
        "Left out: 1 cell whose search is not finished.",
    ]
    assert [(row["D_K_b"], row["ratio"]) for row in rows] == [(40, None), (20, 1)]
    section = cells(pair, NAMES)
    assert section is not None
    assert section.shown[0].rows[0]["words_b"] == "40 [40–40], so far"
    assert [len(panel.points) for panel in section.figures[0].panels] == [1, 1]


def test_a_size_with_several_limits_counts_once() -> None:
    """Interval and mean are those of the sizes' own means, however many limits each has."""
    limits = [10_000, 20_000, 40_000]

    def found_at(widths: list[int], steps: list[int]) -> StudyResults:
        cells = [{"m": m, "d_model": 16} for m in (64, 128, 256)][: len(widths)]
        content = {"name": "x", "cells": cells, "training": {"max_steps": steps}}
        study = parse_study(content | {"search": {"heads": [1]}})
        by_m = dict(zip((64, 128, 256), widths, strict=False))
        rows = [made_up.threshold_row(cell, 1, by_m[cell.m]) for cell in study.cells]
        return made_up.results_of(study, [], rows)

    def said(widths: list[int], steps: list[int]) -> str:
        first = found_at([10] * len(widths), steps)
        return answer((first, found_at(widths, steps)), NAMES)[0][0]

    once, thrice = said([20, 30, 10], limits[:1]), said([20, 30, 10], limits)
    assert "geometric mean over 3 cells; 95 % t-interval" in once
    assert thrice == once.replace("3 cells", "3 sizes with 9 cells")
    alone = "other needs 2.00 times the D_K* of one (geometric mean over 1 size with 3 cells)."
    assert said([20], limits) == alone


def test_of_studies_of_one_width_a_head_the_fewest_heads_are_told() -> None:
    pair = found({(64, 16): 16}, mode="widest"), found({(64, 16): 16}, heads="all")
    said = summary(pair, NAMES).words[2:4]
    which = "d_model times the fewest heads, over h = 2,", "the smallest width, over every h,"
    for line, name, width in zip(said, NAMES, which, strict=True):
        assert line.startswith(f"In {name}, D_K* is {width} whose mean test F1")


AT, WIDTHS = "(m, d_model) = (64, 16)", "40 [38–42] against 20 [18–22]"


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ({(64, 16): 10, (64, 32): 5}, {(64, 16): 10, (64, 32): 5}, "D_K* is the same in 2 cells."),
        (
            {(64, 16): 10},
            {(64, 16): 20},
            f"other needs 2.00 [1.73–2.33] times the D_K* of one at {AT}: {WIDTHS}.",
        ),
        ({(64, 16): 10}, {(64, 16): 0}, "No cell has a threshold in both."),
        ({(64, 16): 0}, {(64, 16): 10}, "No cell has a threshold in both."),
    ],
)
def test_without_several_ratios_no_mean_is_told(
    first: dict[tuple[int, int], int], second: dict[tuple[int, int], int], said: str
) -> None:
    pair = found(first), found(second)
    assert summary(pair, NAMES).words[0] == said
    section = cells(pair, NAMES)
    assert section is not None
    (table,) = section.shown
    assert laws(pair, NAMES) is None, "no cells of a law"
    if said.startswith("No cell"):
        assert section.figures == []
        assert {table.rows[0][name] for name in ("ratio", "ratio_low", "ratio_words")} == {None}
        assert not table.apart(table.rows[0])


def test_only_what_differs_is_told(pair: tuple[StudyResults, StudyResults]) -> None:
    (table,) = differences(pair, NAMES).shown
    assert {row["name"]: (row["a"], row["b"]) for row in table.rows} == {
        "search.seeds": ("10", "5")
    }
    same = differences((pair[0], pair[0]), NAMES)
    assert same.words == [
        "Nothing: no setting, no origin.",
        "In the names of files, a is one and b is other.",
    ]


def test_its_last_column_is_as_narrow_as_its_numbers(
    pair: tuple[StudyResults, StudyResults],
) -> None:
    page, _ = comparison(*pair, NAMES)
    assert '<table id="table-cells"' in page
    assert re.search(r'<table id="table-cells" class="[^"]*worded', page) is None


@pytest.mark.parametrize("own_names", [True, False], ids=["names tell it", "by size"])
def test_settings_of_as_many_cells_of_other_sizes_differ(own_names: bool) -> None:
    def study(sizes: range) -> StudyResults:
        rates = [0.001, 0.002, 0.01] if own_names else [0.01]
        of_rate = {"training": {"learning_rate": rates}}
        cells = [{"m": m, "d_model": 16} | (of_rate if m in sizes else {}) for m in range(64, 84)]
        content = {"name": "x", "cells": cells, "search": {"heads": [2]}}
        return made_up.results_of(parse_study(content), [], [])

    (table,) = differences((study(range(64, 71)), study(range(71, 78))), NAMES).shown
    (row,) = (row for row in table.rows if row["name"] == "training.learning_rate")
    assert "m=64,d_model=16" in row["a"]
    assert "m=64,d_model=16" not in row["b"]


def test_studies_without_a_cell_in_common_have_a_page() -> None:
    first, second = found({(64, 16): 5}), found({(64, 32): 5})
    page, files = comparison(first, second, NAMES)
    text = re.sub(r"<[^>]+>", "", page)
    assert "The two studies have no cell in common." in text
    assert "same cells" not in text
    assert "where it was written." in text, "no figure is named"
    assert "No cell has a threshold in both." not in text
    assert {"best-a.csv", "best-b.csv", "study-a.yaml", "study-b.yaml"} == set(files)


def test_accuracies_are_compared_split_by_split() -> None:
    document = {"name": "made-up", "model": "transformer", "cells": [{"m": 64, "d_model": 16}]}
    search = {"mode": "grid", "D_K": [8, 16], "heads": [1, 2], "seeds": 2}
    study = parse_study({**document, "context": {"length": 8}, "search": search})
    (cell,) = study.cells

    def tables(scores: dict[tuple[int, int], float]) -> StudyResults:
        rows = [
            made_up.run_row(cell, h, D_K // h, seed, score, null_rate=0.0)
            for (h, D_K), score in scores.items()
            for seed in range(2)
        ]
        return made_up.results_of(study, rows, [])

    pair = tables({(1, 8): 0.5, (2, 8): 0.75}), tables({(1, 8): 0.625, (1, 16): 0.7})
    section = splits(pair, NAMES)
    assert section is not None
    (row,) = section.shown[0].rows
    assert (row["D_K"], row["h"], row["difference"]) == (8, 1, 0.125)
    assert summary(pair, NAMES).words[0] == (
        "Over 1 split, the accuracy of other minus the accuracy of one is +0.125 on average."
    )
    assert cells(pair, NAMES) is None


def test_cells_of_one_size_are_paired_by_what_tells_them_apart() -> None:
    def found_at(limits: list[int], widths: list[int]) -> StudyResults:
        cells = [{"m": 64, "d_model": 16, "training": {"max_steps": limits}}]
        study = parse_study({"name": "x", "cells": cells, "search": {"heads": [1]}})
        by_limit = dict(zip(limits, widths, strict=True))
        rows = [
            made_up.threshold_row(cell, 1, by_limit[cell.training.max_steps])
            for cell in study.cells
        ]
        return made_up.results_of(study, [], rows)

    pair = found_at([20_000], [30]), found_at([5_000, 20_000, 80_000], [60, 31, 15])
    (row,) = answer(pair, NAMES)[1]
    assert (row["cell"], row["D_K_a"], row["D_K_b"]) == ("(64, 16)", 30, 31)
    alone = found_at([40_000], [30]), pair[1]
    assert answer(alone, NAMES)[1] == []
    single = found_at([40_000], [30]), found_at([80_000], [15])
    assert [one["D_K_b"] for one in answer(single, NAMES)[1]] == [15]
