"""Cut a page of many cells to some of them, so that it stays small enough to be sent on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from itertools import product

from rgr_dist.analysis.drawing.panel import Figure
from rgr_dist.analysis.page.section import Section, Table

LARGEST = 400_000
"""The most bytes of a page, unless what cannot be cut takes more."""

MOST = (12, 6, 3)
"""How many cells to show, tried in turn until the page fits."""

FEW_ROWS = 24
"""The most rows of a table that is always shown whole."""

CUT = "Here are"
"""The first words with which a caption says what its figure or table leaves out."""


Draw = Callable[[Sequence[Section], bool], str]
"""Draws the page of some sections; the flag says whether it embeds its tables as files."""


def fitted(draw: Draw, sections: Sequence[Section], cells: Sequence[str]) -> str:
    """The page with as many cells as fit, and without its tables as files if even few do not.

    Args:
        cells: anchors of the cells that figures draw, by size; tables prefer these to others.
    """
    page = draw(sections, True)
    for holds_files, most in product((True, False), MOST):
        if len(page.encode()) <= LARGEST:
            break
        some = [
            replace(
                section,
                figures=[_drawn(figure, most) for figure in section.figures],
                shown=[_listed(table, cells, most) for table in section.shown],
            )
            for section in sections
        ]
        page = draw(some, holds_files)
    return page


def panels_of(figure: Figure, cells: Collection[str]) -> Figure:
    """A figure with the panels of these cells alone."""
    panels = tuple(panel for panel in figure.panels if panel.cell in cells)
    return replace(figure, panels=panels, columns=max(1, min(figure.columns, len(panels))))


def _drawn(figure: Figure, most: int) -> Figure:
    """A figure with at most ``most`` of its cells, if every panel belongs to one cell."""
    every = [*dict.fromkeys(panel.cell for panel in figure.panels if panel.cell is not None)]
    if len(every) <= most or any(panel.cell is None for panel in figure.panels):
        return figure
    some = _evenly(every, most)
    here = f" {CUT} {len(some)} of {len(every)} cells, evenly by size."
    rest = " rgr figures draws them all; with --cell, the one you name."
    return replace(panels_of(figure, some), caption=f"{figure.caption}{here}{rest}")


def _listed(table: Table, cells: Sequence[str], most: int) -> Table:
    """A table with the rows of at most ``most`` cells, if it is long and a file has all of them."""
    if table.file is None or table.cell is None or len(table.rows) <= FEW_ROWS:
        return table
    own = dict.fromkeys(row[table.cell] for row in table.rows)
    some = _evenly([cell for cell in cells if cell in own] or [*own], most)
    rows = [row for row in table.rows if row[table.cell] in some]
    if len(rows) == len(table.rows):
        return table
    here = f" {CUT} {len(rows)} of {len(table.rows)} rows, those of {len(some)} cells."
    caption = f"{table.caption}{here} {table.file}.csv has all of them."
    return replace(table, rows=rows, caption=caption, left_out=len(table.rows) - len(rows))


def _evenly(cells: Sequence[str], most: int) -> Sequence[str]:
    """At most ``most`` of the cells, evenly spaced, with the first and the last."""
    if len(cells) <= most:
        return cells
    return [cells[round(i * (len(cells) - 1) / (most - 1))] for i in range(most)]
