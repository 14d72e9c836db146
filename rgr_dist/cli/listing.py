"""Listings on standard output: a table to read, JSON or CSV to script against."""

from __future__ import annotations

import csv
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.table import Table

from rgr_dist.faults import shown

Row = Mapping[str, Any]

WIDE, NARROW = 2, 1
"""Blanks between columns, in a wide and in a narrow terminal."""
SHORTEST = 12
"""First characters of a text that a column must have room for; the rest may wrap."""
DECISION_COLUMNS = (
    "step h d_k D_K d_qk d_vo D_V why verdict ran spared stored_before evidence"
    " status D_K_low D_K_high D_V_low D_V_high because confirmed"
)
"""The columns of ``rgr explain`` that a table shows."""
USUAL = {"degree": 1}
"""Usual values: a table leaves out a column in which every row has just this value, or none."""


class Format(StrEnum):
    """How a listing is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def print_listing(
    sections: Mapping[str, Sequence[Row]],
    how: Format,
    show: Sequence[str] = (),
    facts: Mapping[str, Any] | None = None,
    columns: Sequence[str] = (),
    console: Console | None = None,
) -> None:
    """Print named lists of rows.

    Args:
        sections: rows by name. JSON is one object of lists. CSV is one table: where there are
            several lists, its first column says which list a row is from.
        show: columns that a table shows, in this order; all if not given.
        facts: single values: members of the JSON object, lines below a table; CSV leaves them out.
        columns: the columns of CSV if there are no rows.
        console: where a table goes; standard output if not given.
    """
    if how is Format.JSON:
        print(json.dumps({**sections, **(facts or {})}, indent=2, allow_nan=False))
    elif how is Format.CSV:
        _print_csv(sections, columns)
    else:
        console = console or _console()
        for name, rows in sections.items():
            if rows or not facts:  # which say all there is to say
                console.print(_table(name, rows, show, console.width))
        for line in facts_in_words(facts):
            say(line, console)


def facts_in_words(facts: Mapping[str, Any] | None) -> list[str]:
    """A line for each of the single values that a listing has."""
    return [f"{fact.replace('_', ' ')}: {_cell(value)}" for fact, value in (facts or {}).items()]


def say(text: str, console: Console | None = None) -> None:
    """Print a line; a terminal wraps it between words, unless it has a command to copy."""
    console = console or _console()
    whole = not console.is_terminal or "rgr " in text
    console.print(text, highlight=False, markup=False, soft_wrap=whole)


@contextmanager
def silent_output() -> Iterator[None]:
    """Discard what is printed meanwhile, such as by Ray when a node dies."""
    with nowhere() as output, redirect_stdout(output):
        yield


def nowhere() -> TextIO:
    """An output that discards everything."""
    return Path(os.devnull).open("w")


def _console() -> Console:
    if sys.stdout.isatty():
        return Console()
    return Console(width=160, force_terminal=False, force_jupyter=False)  # a pipe or a file


def _print_csv(sections: Mapping[str, Sequence[Row]], empty: Sequence[str]) -> None:
    several = len(sections) > 1
    rows = [
        {"table": name, **_flat(row)} if several else _flat(row)
        for name, listed in sections.items()
        for row in listed
    ]
    columns = dict.fromkeys((column for row in rows for column in row) if rows else empty)
    # In rows without nested members, their parent is a column too, and null: ``certificate``.
    nested = {column[: dot.start()] for column in columns for dot in re.finditer(r"\.", column)}
    columns = {column: None for column in columns if column not in nested}
    writer = csv.DictWriter(sys.stdout, list(columns), restval="", extrasaction="ignore")
    writer.writeheader()
    for row in rows:
        for key, value in row.items():
            text = " ".join(map(str, value)) if isinstance(value, list | tuple) else value
            row[key] = shown(text) if isinstance(text, str) else text
        writer.writerow(row)


def _flat(row: Row, prefix: str = "") -> dict[str, Any]:
    """A row with a column for each member of a nested value: ``certificate.pass.d_k``."""
    flat: dict[str, Any] = {}
    for key, value in row.items():
        inner = isinstance(value, dict)
        flat |= _flat(value, f"{prefix}{key}.") if inner else {f"{prefix}{key}": value}
    return flat


def _columns(rows: Sequence[Row], show: Sequence[str]) -> list[str]:
    """The columns to show: those that say something, in order."""
    columns = show or dict.fromkeys(chain.from_iterable(rows))
    return [
        one
        for one in columns
        if any(row.get(one, USUAL.get(one)) != USUAL.get(one) for row in rows)
    ]


def _table(name: str, rows: Sequence[Row], show: Sequence[str], width: int) -> Table:
    """The rows as a table that breaks no number; as lists if that would be too wide."""
    columns = _columns(rows, show)
    cells = {column: [_cell(row.get(column)) for row in rows] for column in columns}
    numeric = {
        column: all(isinstance(row.get(column), int | float | None) for row in rows)
        for column in columns
    }
    least = {}
    for column in columns:
        texts = cells[column]
        starts = texts if numeric[column] else [text[:SHORTEST] for text in texts]
        least[column] = max(map(cell_len, _header(column).split() + starts))
    whole = sum(max(map(cell_len, [_header(name), *texts])) for name, texts in cells.items())
    gap = WIDE if sum(least.values()) + WIDE * len(columns) <= width else NARROW
    room = width - gap * len(columns)
    if sum(least.values()) > room:
        return _one_below_the_other(name, rows, show)
    table = Table(title=name, title_justify="left", box=None, pad_edge=False)
    table.header_style, table.padding = "bold", (0, gap, 0, 0)
    for column in columns:  # if short of room, texts and headers wrap, numbers do not
        fixed = least[column] if numeric[column] and whole > room else None
        justify: JustifyMethod = "right" if numeric[column] else "left"
        table.add_column(_header(column), justify=justify, overflow="fold", width=fixed)
    for line in zip(*cells.values(), strict=True):
        table.add_row(*line)
    return table


def _one_below_the_other(name: str, rows: Sequence[Row], show: Sequence[str]) -> Table:
    """Each row as a list, where a table would be too wide."""
    table = Table(title=name, box=None, title_justify="left", pad_edge=False, show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for row in rows:
        for column in _columns(rows, show):
            if row.get(column) is not None:
                table.add_row(_header(column), _cell(row[column]))
        table.add_row()
    return table


def _header(column: str) -> str:
    """A column's heading: ``steps left``; D_K, d_k, d_model and facts' widths stay as they are."""
    return re.sub(r"_(?!K|V|k\b|vo|qk|model)", " ", column)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return shown("; ".join(value))
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    if isinstance(value, int):
        return f"{value:,}"
    return json.dumps(value) if isinstance(value, dict | list) else shown(str(value))
