"""Listings on standard output: a table to read, JSON or CSV to script against."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from rich.console import Console
from rich.table import Table

Row = Mapping[str, Any]

USUAL = {"degree": 1}
"""What a column need not say: a table leaves it out where every row says just that, or nothing."""


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
) -> None:
    """Print named lists of rows.

    Args:
        sections: rows by name. JSON is one object of lists. CSV is one table: where there are
            several lists, its first column says which a row is from.
        show: columns that a table shows, in this order; all if not given.
        facts: single values: members of the JSON object, lines below a table; CSV leaves them out.
    """
    if how is Format.JSON:
        print(json.dumps({**sections, **(facts or {})}, indent=2, allow_nan=False))
    elif how is Format.CSV:
        _print_csv(sections)
    else:
        console = Console() if sys.stdout.isatty() else Console(width=160)
        for name, rows in sections.items():
            console.print(_table(name, rows, show))
        for name, value in (facts or {}).items():
            line = f"{name.replace('_', ' ')}: {_cell(value)}"
            console.print(line, highlight=False, soft_wrap=True)


def _print_csv(sections: Mapping[str, Sequence[Row]]) -> None:
    several = len(sections) > 1
    rows = [
        {"table": name, **_flat(row)} if several else _flat(row)
        for name, listed in sections.items()
        for row in listed
    ]
    columns = dict.fromkeys(column for row in rows for column in row)
    nested = {column.rpartition(".")[0] for column in columns}  # null in rows that lack it
    columns = {column: None for column in columns if column not in nested}
    writer = csv.DictWriter(sys.stdout, list(columns), restval="", extrasaction="ignore")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: _listed(value) for key, value in row.items()})


def _listed(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else _plain(value)


def _flat(row: Row, prefix: str = "") -> dict[str, Any]:
    """A row with a column for each member of a nested value: ``certificate.pass.d_k``."""
    flat: dict[str, Any] = {}
    for key, value in row.items():
        inner = isinstance(value, dict)
        flat |= _flat(value, f"{prefix}{key}.") if inner else {f"{prefix}{key}": value}
    return flat


def _table(name: str, rows: Sequence[Row], show: Sequence[str]) -> Table:
    table = Table(title=name, box=None, title_justify="left", header_style="bold", pad_edge=False)
    columns = [column for column in (show or rows[0]) if column in rows[0]] if rows else []
    columns = [
        column for column in columns if any(row[column] != USUAL.get(column) for row in rows)
    ]
    for column in columns:
        numeric = all(isinstance(row[column], int | float | None) for row in rows)
        header = re.sub(r"_(?!K|k\b|model)", " ", column)  # D_K, d_k and d_model stay
        table.add_column(header, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_cell(row[column]) for column in columns))
    return table


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return _plain(value)


def _plain(value: Any) -> str:
    if value is None:
        return ""
    return json.dumps(value) if isinstance(value, dict | list) else str(value)
