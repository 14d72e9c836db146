"""Listings on standard output: a table to read, JSON or CSV to script against."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

from rgr_dist.faults import shown

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console
    from rich.table import Table

Row = Mapping[str, Any]
Rows: TypeAlias = "pd.DataFrame | Sequence[Row]"


class Format(StrEnum):
    """How a listing is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def print_listing(
    sections: Mapping[str, Rows],
    how: Format,
    show: Sequence[str] = (),
    facts: Mapping[str, Any] | None = None,
    columns: Sequence[str] = (),
) -> None:
    """Print named tables.

    Args:
        sections: tables by name. JSON is one object of lists of rows. CSV is one table: where there
            are several, its first column says which one a row is from.
        show: columns that a table shows, in this order; all if not given.
        facts: single values: members of the JSON object, lines below a table; CSV leaves them out.
        columns: the columns of CSV if there are no rows.
    """
    rows = {name: plain(table) for name, table in sections.items()}
    if how is Format.JSON:
        print(json.dumps({**rows, **(facts or {})}, indent=2, allow_nan=False))
    elif how is Format.CSV:
        import pandas as pd  # half a second, and not every command has tables

        named = [{"table": name} if len(rows) > 1 else {} for name in rows]
        flat = [of | row for of, table in zip(named, rows.values(), strict=True) for row in table]
        known = (table.columns for table in sections.values() if isinstance(table, pd.DataFrame))
        empty = pd.DataFrame(columns=[*(columns or dict.fromkeys(chain(*known)))])
        frame = pd.json_normalize(flat) if flat else empty
        frame.map(_flat).to_csv(sys.stdout, index=False)
    else:
        for name, table in rows.items():
            if table or not facts:  # which say all there is to say
                _print(_table(name, table, show))
        for fact, value in (facts or {}).items():
            say(f"{fact.replace('_', ' ')}: {_cell(value)}")


def plain(table: Rows) -> list[dict[str, Any]]:
    """The rows of a table with plain values, None where one is missing."""
    if isinstance(table, Sequence):
        return [dict(row) for row in table]
    from rgr_dist.planning.budgets import records

    return records(table)


def say(text: str) -> None:
    """Print a line; a terminal wraps it between words, unless it has a command to copy."""
    console = _console()
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
    from rich.console import Console  # which --help does without

    if sys.stdout.isatty():
        return Console()
    return Console(width=160, force_terminal=False, force_jupyter=False)  # a pipe or a file


def _print(table: Table) -> None:
    """Print a table; where there is no room for its numbers, its lines are longer than that."""
    console = _console()
    least = console.measure(table, options=console.options.update(width=10_000)).minimum
    console.width = max(console.width, least)
    console.print(table, crop=False)


def _table(name: str, rows: Sequence[Row], show: Iterable[str]) -> Table:
    """The columns that say something; texts fold where there is no room, numbers do not."""
    from rich.table import Table

    table = Table(title=name, title_justify="left", box=None, pad_edge=False, padding=(0, 1, 0, 0))
    columns = list(show or dict.fromkeys(column for row in rows for column in row))
    usual = {"degree": 1}  # a column of such values alone says nothing
    columns = [
        one
        for one in columns
        if any(row.get(one) not in (None, "", usual.get(one)) for row in rows)
    ]
    for column in columns:
        is_number = all(isinstance(row.get(column), int | float | None) for row in rows)
        header = re.sub(r"_(?!K|V|k\b|vo|qk|model)", " ", column)
        parts = [*header.split(), *(_cell(row.get(column)) for row in rows)]
        table.add_column(
            header,
            justify="right" if is_number else "left",
            overflow="fold",
            width=max(map(len, parts)) if is_number else None,
        )
    for row in rows:
        table.add_row(*(_cell(row.get(column)) for column in columns))
    return table


def _flat(value: Any) -> Any:
    """A value as CSV has it: the parts of a list side by side, and nothing that moves a cursor."""
    text = " ".join(map(str, value)) if isinstance(value, list | tuple) else value
    return shown(text) if isinstance(text, str) else text


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
