"""A page of many cells: it shows some of them, so that it stays small enough to be sent on."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from itertools import product

from rgr_dist.analysis.drawing.panel import Figure
from rgr_dist.analysis.page.section import Section, Table

LARGEST = 400_000
"""Bytes that a page has at most, as far as this makes it so small."""

MOST = (12, 6, 3)
"""Cells that are shown of a study whose page would be larger with all, or with more."""

FEW_ROWS = 24
"""Rows of a table that is shown whole."""


Draw = Callable[[Sequence[Section], bool], str]
"""The page of sections, which holds its tables as files or does not."""


def fitted(draw: Draw, sections: Sequence[Section], cells: Sequence[str]) -> str:
    """The page with as many of the cells as it has room for, then without the tables as files.

    Args:
        cells: their anchors, by size; those that are shown lie evenly among them.
    """
    page = draw(sections, True)
    for holds_files, most in product((True, False), MOST):
        if len(page.encode()) <= LARGEST:
            break
        shown = cells[:: math.ceil(len(cells) / most) or 1]
        page = draw([_of_cells(section, shown) for section in sections], holds_files)
    return page


def panels_of(figure: Figure, cells: Collection[str]) -> Figure:
    """A figure without the panels of other cells."""
    panels = tuple(panel for panel in figure.panels if panel.cell in cells)
    return replace(figure, panels=panels, columns=max(1, min(figure.columns, len(panels))))


def _of_cells(section: Section, cells: Collection[str]) -> Section:
    figures = [_drawn(figure, cells) for figure in section.figures]
    return replace(
        section,
        figures=[figure for figure in figures if figure.panels],
        shown=[_listed(table, cells) for table in section.shown],
    )


def _drawn(figure: Figure, cells: Collection[str]) -> Figure:
    """A figure with some of its cells, if each has panels of its own."""
    every = {panel.cell for panel in figure.panels}
    if None in every or every <= {*cells}:
        return figure
    here = f" Here are {len(every & {*cells})} of {len(every)} cells, evenly by size."
    rest = " rgr figures draws all of them, or with --cell the one that you name."
    return replace(panels_of(figure, cells), caption=f"{figure.caption}{here}{rest}")


def _listed(table: Table, cells: Collection[str]) -> Table:
    """A table with the rows of some cells, if a file has the others."""
    if table.file is None or table.cell is None or len(table.rows) <= FEW_ROWS:
        return table
    rows = [row for row in table.rows if row[table.cell] in cells]
    if len(rows) == len(table.rows):
        return table
    here = f" Here are {len(rows)} of {len(table.rows)} rows, those of {len(cells)} cells."
    caption = f"{table.caption}{here} {table.file}.csv has all of them."
    return replace(table, rows=rows, caption=caption, left_out=len(table.rows) - len(rows))
