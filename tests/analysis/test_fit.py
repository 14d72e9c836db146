"""What a page leaves out so that it stays small, and what it then says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from rgr_dist.analysis.drawing.panel import Figure, Panel
from rgr_dist.analysis.drawing.scales import share_axis
from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.page.fit import CUT, LARGEST, fitted
from rgr_dist.analysis.page.section import Column, Section, Table
from rgr_dist.analysis.report.publish import report

CELLS = [f"c{i}" for i in range(36)]
TWELVE = [f"c{i}" for i in (0, 3, 6, 10, 13, 16, 19, 22, 25, 29, 32, 35)]
SIX = [f"c{i}" for i in (0, 7, 14, 21, 28, 35)]


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
    assert by_cell == [CELLS, TWELVE, SIX]
    by_cell, of_all, few = shown[-1].figures
    assert few == SECTION.figures[2], "it has few cells"
    assert (by_cell.columns, len(of_all.panels), of_all.caption) == (4, 2, "All.")
    assert by_cell.caption == (
        "All. Here are 6 of 36 cells, evenly by size. rgr figures draws them all; with "
        "--cell, the one you name."
    )
    long, held, short = shown[-1].shown
    assert [row["anchor"] for row in long.rows] == [cell for cell in SIX for _ in range(2)]
    assert long.left_out == 60
    assert long.caption == (
        "All. Here are 12 of 72 rows, those of 6 cells. file.csv has all of them."
    )
    assert (held, short) == tuple(SECTION.shown[1:]), "no file has its rows; it is short"


def test_the_last_to_go_are_the_tables_as_files() -> None:
    draw = Drawn(*[LARGEST + 1] * 7)
    fitted(draw, [SECTION], CELLS)
    assert [holds_files for _, holds_files in draw.calls] == [True] * 4 + [False] * 3


def test_thirteen_cells_make_twelve_or_six_or_three_the_largest_among_them() -> None:
    draw = Drawn(*[LARGEST + 1] * 3, LARGEST)
    fitted(draw, [replace(SECTION, figures=[figure("by cell", CELLS[:13])])], CELLS[:13])
    shown = [[panel.cell for panel in section.figures[0].panels] for ((section,), _) in draw.calls]
    assert [len(cells) for cells in shown] == [13, 12, 6, 3]
    assert all((cells[0], cells[-1]) == ("c0", "c12") for cells in shown)


def test_a_table_lists_cells_that_have_rows_and_counts_those() -> None:
    draw = Drawn(LARGEST + 1, LARGEST)
    without = table("long", [cell for cell in CELLS if cell not in TWELVE], "file")
    others = table("others", [f"d{i}" for i in range(20)], "file")
    fitted(draw, [replace(SECTION, shown=[without, others])], CELLS)
    for cut in draw.calls[-1][0][0].shown:
        assert len({row["anchor"] for row in cut.rows}) == 12
        assert "24 of" in cut.caption
        assert "rows, those of 12 cells." in cut.caption


def test_a_page_of_many_cells_is_small_and_says_where_the_others_are(many: StudyResults) -> None:
    page, files = report(many)
    assert len(page.encode()) <= LARGEST
    for name in ("one-head", "splits", "curves"):
        (drawn,) = re.findall(rf'<figure id="{name}-figure".*?</figure>', page, flags=re.S)
        shown = re.findall(r'class="panel" data-cell="([^"]+)"', drawn)
        assert len(shown) in (12, 6, 3)
        assert (shown[0], shown[-1]) == ("m64-d16-2", "m512-d64-6"), "the smallest, the largest"
        assert f"Here are {len(shown)} of 36 cells, evenly by size" in drawn
    assert page.count('<tr id="m') == 72, "every cell has its row"
    (summary,) = re.findall(r"<summary>Thresholds of every head count: ([^<]+)</summary>", page)
    assert summary == f"{7 * len(shown)} of 504 rows"
    assert len(files["thresholds.csv"].splitlines()) == 1 + 504
    assert "thresholds.csv has all of them" in page
    assert CUT in page
    certificates = re.search(r'<table id="table-cells" class="[^"]*worded', page)
    assert certificates is not None, "the last column has words, and so room"
