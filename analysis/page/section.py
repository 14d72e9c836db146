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
        cell: a row's key, or a function of a row, for what it shows; None is shown as a dash.
        value: the same for what it is sorted by; by default, what it shows.
        form: how ``format`` shows its numbers: ``.3f``; by default, integers have commas.
        text: whether it holds words, which are aligned left and sorted alphabetically.
        names: whether it holds names, which get no markup.
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
        """What the row is sorted by; None if its text says so already, empty if it has no value."""
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
        name: its id on the page.
        caption: what it lists, and how to read it.
        cell: the key of a row that holds its cell's anchor, which ties it to the figures.
        anchored: whether its rows carry their cells' anchors, so that links lead to them.
        apart: tells which rows are shaded.
        folded: a summary, shown with the number of rows, that folds a table of more than 24.
        file: the file that has all rows too, so that a page may leave some out.
        left_out: how many rows are left out.
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
        name: its address on the page.
        words: paragraphs before the figures.
        shown: the tables to read.
        template: ``sections/<template>.html.j2``; ``plain`` shows words, figures, tables in turn.
        values: what else its template shows.
        files: tables to download, by name; written as CSV next to the page.
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
    """The column that names each row's cell."""
    return Column("cell", "short", text=True, names=True)


def bits_column() -> Column:
    """The column of the graph's bits per parameter at each row's threshold."""
    return Column("bits", graph_bits_per_parameter, form=".2f")
