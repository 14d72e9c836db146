"""What a section of a report is made of: words, figures, and tables to read and to download."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from rgr_dist.analysis.drawing.panel import Figure
from rgr_dist.analysis.records import graph_bits_per_parameter
from rgr_dist.analysis.wording import MISSING, number

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Column:
    """A column of a table on the page.

    Attributes:
        head: its header.
        cell: what it shows of a row, or the key of that; None is shown as a dash.
        value: what it is sorted by, or the key of that; what it shows, if not given.
        form: how a number is shown, as ``format`` has it: ``.3f``; whole ones have commas.
        text: words, which stand on the left and sort by alphabet.
        names: names that are not ours to mark up.
    """

    head: str
    cell: str | Callable[[Row], Any]
    value: str | Callable[[Row], Any] | None = None
    form: str | None = None
    text: bool = False
    names: bool = False

    def shown(self, row: Row) -> str:
        """The text of the row's cell."""
        value = _value(self.cell, row)
        if value is None:
            return MISSING
        if self.form is not None:
            return number(value, self.form)
        if isinstance(value, int) and not isinstance(value, bool):
            return f"{value:,}"
        return str(value)

    def sorted_by(self, row: Row) -> str | None:
        """What the row is sorted by where that is not what it begins with; empty if it has none."""
        if self.value is None:
            return None
        value = _value(self.value, row)
        begins = re.match(r"[\d,]+(?![\d.])", self.shown(row))
        if value is not None and begins is not None and begins[0].replace(",", "") == str(value):
            return None
        return "" if value is None else str(value)


def _value(of: str | Callable[[Row], Any], row: Row) -> Any:
    return row[of] if isinstance(of, str) else of(row)


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows to read on the page.

    Attributes:
        name: its id.
        caption: what it lists, and how to read it.
        cell: the key of a row that holds its cell's anchor, which ties it to the figures.
        anchored: whether its rows are the cells' own, which addresses lead to.
        apart: the rows to be shaded.
        folded: shown once a reader unfolds it, under this summary and the number of rows.
        file: which of the files has the rows too, so that a page may leave some out.
        left_out: how many it leaves out.
    """

    name: str
    caption: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    cell: str | None = "anchor"
    anchored: bool = False
    apart: Callable[[Row], bool] = lambda row: False
    folded: str | None = None
    file: str | None = None
    left_out: int = 0


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the page with a heading of its own.

    Attributes:
        name: its address on the page; its template is ``sections/<name>.html.j2``, or the plain
            one that shows words, figures and tables in turn.
        words: paragraphs before the figures.
        shown: the tables to read.
        values: what its own template shows besides.
        files: tables to download, by name; written as CSV beside the page.
    """

    name: str
    title: str
    words: Sequence[str] = ()
    figures: Sequence[Figure] = ()
    shown: Sequence[Table] = ()
    template: str = "plain"
    values: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, pd.DataFrame] = field(default_factory=dict)


def cell_column() -> Column:
    """The cell that a row is of."""
    return Column("cell", "short", text=True, names=True)


def bits_column() -> Column:
    """Bits of the graph per parameter, at the threshold of a row."""
    return Column("bits", graph_bits_per_parameter, form=".2f")
