"""What a page leaves out so that it stays small, and what it then says."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import pytest

from rgr_dist.analysis.drawing.panel import Figure, Panel
from rgr_dist.analysis.drawing.scales import share_axis
from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.page.fit import LARGEST, fitted
from rgr_dist.analysis.page.section import Column, Section, Table
from rgr_dist.analysis.report.publish import report
from rgr_dist.study.from_yaml import parse_study
from tests.analysis import made_up

CELLS = [f"c{i}" for i in range(36)]


def panel(cell: str | None) -> Panel:
    return Panel(x=share_axis("x"), y=share_axis("y"), cell=cell)


def figure(name: str, cells: Sequence[str | None]) -> Figure:
    panels = tuple(panel(cell) for cell in cells)
    return Figure(name=name, title="", caption="All.", panels=panels, columns=4)


def table(name: str, cells: Sequence[str], file: str | None) -> Table:
    rows = [{"anchor": cell, "n": i} for cell in cells for i in range(2)]
    return Table(name=name, caption="All.", columns=[Column("n", "n")], rows=rows, file=file)


SECTION = Section(
    name="one",
    title="One",
    figures=[figure("by cell", CELLS), figure("of all", [None, None]), figure("few", CELLS[1:2])],
    shown=[table("long", CELLS, "file"), table("held", CELLS, None), table("short", "ab", "file")],
)


class Drawn:
    """Draws pages as large as they are told to be, and keeps what they were of."""

    def __init__(self, *sizes: int) -> None:
        self.sizes, self.calls = iter(sizes), []

    def __call__(self, sections: Sequence[Section], holds_files: bool) -> str:
        self.calls.append((sections, holds_files))
        return "x" * next(self.sizes)


def test_a_page_that_is_small_has_everything() -> None:
    draw = Drawn(LARGEST)
    assert len(fitted(draw, [SECTION], CELLS)) == LARGEST
    assert draw.calls == [([SECTION], True)]


def test_a_page_shows_as_many_cells_as_it_has_room_for() -> None:
    draw = Drawn(LARGEST + 2, LARGEST + 1, LARGEST)
    assert len(fitted(draw, [SECTION], CELLS)) == LARGEST
    shown = [section for ((section,), _) in draw.calls]
    by_cell = [[panel.cell for panel in each.figures[0].panels] for each in shown]
    assert by_cell == [CELLS, CELLS[::3], CELLS[::6]]
    by_cell, of_all = shown[-1].figures
    assert (by_cell.columns, len(of_all.panels), of_all.caption) == (4, 2, "All.")
    assert by_cell.caption == (
        "All. Here are 6 of 36 cells, evenly by size. rgr figures draws all of them, or with "
        "--cell the one that you name."
    )
    long, held, short = shown[-1].shown
    assert [row["anchor"] for row in long.rows] == [cell for cell in CELLS[::6] for _ in range(2)]
    assert long.left_out == 60
    assert long.caption == (
        "All. Here are 12 of 72 rows, those of 6 cells. file.csv has all of them."
    )
    assert (held, short) == tuple(SECTION.shown[1:]), "no file has its rows; it is short"


def test_the_last_to_go_are_the_tables_as_files() -> None:
    draw = Drawn(*[LARGEST + 1] * 7)
    fitted(draw, [SECTION], CELLS[:2])
    assert [holds_files for _, holds_files in draw.calls] == [True] * 4 + [False] * 3


@pytest.fixture(scope="module")
def many() -> StudyResults:
    """Seventy-two cells, of which 36 are drawn, as if all had been searched."""
    study = parse_study(
        {
            "name": "many",
            "cells": [{"m": [64, 128, 256, 512], "d_model": [16, 32, 64]}],
            "training": {"learning_rate": [1e-3, 3e-4, 3e-3], "max_steps": [20_000, 160_000]},
            "search": {"heads": made_up.HEADS, "seeds": 2},
        }
    )
    runs, thresholds = [], []
    for cell in study.cells:
        for h in made_up.HEADS:
            d_k = max(3, math.ceil(1.5 * cell.m * math.log2(cell.m) / cell.d_model / h))
            thresholds.append(made_up.threshold_row(cell, h, d_k))
            scores = {(h, d_k - 1): [0.7, 0.8], (h, d_k): [0.992, 0.996], (h, d_k + 2): [1.0, 1.0]}
            runs += made_up.probe_rows(cell, scores)
    return made_up.results_of(study, runs, thresholds)


def test_a_page_of_many_cells_is_small_and_says_where_the_others_are(many: StudyResults) -> None:
    page, files = report(many)
    assert len(page.encode()) <= LARGEST
    for name in ("one-head", "splits", "curves"):
        (drawn,) = re.findall(rf'<figure id="{name}-figure".*?</figure>', page, flags=re.S)
        shown = re.findall(r'class="panel" data-cell="([^"]+)"', drawn)
        assert 3 <= len(shown) <= 12
        assert f"Here are {len(shown)} of 36 cells, evenly by size" in drawn
    assert page.count('<tr id="m') == 72, "every cell has its row"
    (summary,) = re.findall(r"<summary>Thresholds of every head count: ([^<]+)</summary>", page)
    assert summary == f"{7 * len(shown)} of 504 rows"
    assert len(files["thresholds.csv"].splitlines()) == 1 + 504
    assert "thresholds.csv has all of them" in page
