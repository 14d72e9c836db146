"""Rows of text in a user's file: what separates the entries, and whether the first is a heading.

One fixed rule each. What could be read in two ways is refused, with what the study must say.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from rgr_dist.faults import on_one_line
from rgr_dist.study.errors import StudyError

Row = list[str]
Found = TypeVar("Found")

NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
WHOLE = re.compile(r"0|-?[1-9]\d*")
"""A whole number without leading zeros: anything else is a name, exactly as it is written."""
COMMENT = re.compile(r"[#%]([ \t]|$)")
SUFFIX = r"(nodes?|vertex|items?|entity|names?|labels?|ids?|idx|index|s)*"
LONGEST = 60
"""Characters shown of a line."""


class UnclearError(ValueError):
    """A first line that could be a heading or not."""


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn whatever a reader of a user's file raises into one line that begins with its path.

    Raises:
        StudyError: something was raised.
    """
    try:
        yield
    except StudyError:
        raise
    except Exception as error:  # parsers raise errors of any kind
        said = str(error) or type(error).__name__
        if isinstance(error, OSError):
            said = f"cannot be read: {error.strerror or error}"
        if isinstance(error, UnicodeDecodeError):
            said = "is not text in UTF-8"
        raise StudyError(f"{path}: {on_one_line(said)}") from None


def text_lines(path: Path) -> list[str]:
    """The lines of a text file in UTF-8, without those that are blank."""
    text = path.read_bytes().decode("utf-8-sig")
    if "\0" in text:
        raise ValueError("is not text in UTF-8: it has zero bytes")
    return [line.rstrip("\n") for line in io.StringIO(text, newline=None) if line.strip()]


def read_rows(path: Path, interpret: Callable[[list[Row], Row], Found]) -> Found:
    """What a file of text holds, by what separates its entries.

    Tabs do if every line has as many, else semicolons, else commas, else blanks. Outside of CSV, a
    file that commas and blanks split equally well is refused. Comments are lines before the first
    row that begin with ``# `` or ``% ``.

    Args:
        interpret: makes the result from the rows and the last comment's entries.

    Raises:
        ValueError: it is no table, or could be two.
    """
    lines, comment = text_lines(path), ""
    while lines and COMMENT.match(lines[0]):
        comment = lines.pop(0)[1:]
    if not lines:
        raise ValueError("holds no rows")
    has_data = re.compile(r"[\s,;]+\{.*\}\s*$")  # networkx writes the data of an edge so
    if all(map(has_data.search, lines)):
        lines = [has_data.sub("", line) + "\t{}" for line in lines]
        if not any("\t" in line[:-3] for line in lines):
            sign = next((one for one in ";," if one in lines[0]), None)
            lines = [re.sub(r"\s*[,;]\s*" if sign else r"\s+", "\t", line) for line in lines]
    found: dict[str, Found] = {}
    faults: dict[str, ValueError] = {}
    for sign in "\t;, ":
        try:
            rows = _split(lines, sign)
        except (ValueError, csv.Error) as error:
            if sign in lines[0]:
                quote = "; is a quote not closed?" if isinstance(error, csv.Error) else ""
                faults[sign] = ValueError(f"{error}{quote}")
            continue
        try:
            found[sign] = interpret(rows, _entries(comment, sign))
        except UnclearError:
            raise
        except ValueError as error:
            faults[sign] = error
        if sign == "\t" or path.suffix.lower() == ".csv":
            break
    if len(found) > 1 and " " in found and len(set(map(repr, found.values()))) > 1:
        raise ValueError(
            "either commas or blanks could separate its entries; name it .csv if commas do, or put "
            "names in quotes"
        )
    if not found:
        raise next(iter(faults.values()), ValueError(f"line 1 is '{lines[0][:LONGEST]}'"))
    return next(iter(found.values()))


def _entries(line: str, sign: str) -> Row:
    if sign != " ":
        return [entry.strip() for entry in line.split(sign)]
    return line.split()


def _split(lines: Sequence[str], sign: str) -> list[Row]:
    """The entries of every line, two or more and of every line as many.

    The first line may have one less: the names of columns without that of the first.

    Raises:
        ValueError: the lines have other numbers of entries, or a quote is not closed.
    """
    if sign == " ":
        quoted = re.compile(r'"((?:[^"]|"")*)"(?=\s|$)|(\S+)')
        rows = [[one[1] or one[0].replace('""', '"') for one in quoted.findall(x)] for x in lines]
        if any(entry[:1] in ",;" or entry[-1:] in ",;" for row in rows for entry in row if entry):
            raise ValueError("commas among blanks")
    else:
        reader = csv.reader(lines, delimiter=sign, strict=True, skipinitialspace=sign != "\t")
        rows = [[entry.strip() for entry in row] for row in reader]
        if len(rows) != len(lines):
            raise ValueError("a quote is not closed")
    width = len(rows[-1])
    for at, row in enumerate(rows, 1):
        if len(row) != width and not (at == 1 and len(row) == width - 1):
            raise ValueError(
                f"row {at} has {len(row)} entries and the last {width}: "
                f"'{lines[at - 1][:LONGEST].strip()}'"
            )
    if width < 2:
        raise ValueError(f"row 1 is '{lines[0][:LONGEST].strip()}'")
    return rows


def word_of(name: str) -> str:
    """The word that a column's name begins with: ``from`` of ``FromNodeId`` and ``FROM_ID``."""
    camel = re.match(r"[\W_]*([A-Z]+(?![a-z])|[A-Z]?[a-z]+)", name)
    return re.sub(f"(?<=..){SUFFIX}$", "", camel[1].lower()) if camel else ""


def column_of(heading: Sequence[str], words: Sequence[str]) -> int | None:
    """Which column's name begins with one of some words; None if none does.

    Raises:
        ValueError: several do, and not exactly one of them is such a word alone.
    """
    found = [at for at, name in enumerate(heading) if word_of(name) in words]
    exact = [at for at in found if heading[at].strip().lower() in words]
    if len(found) > 1 and len(exact) != 1:
        names = " or ".join(heading[at] for at in found)
        raise ValueError(f"which column is the {words[0]}: {names}? name one of them {words[0]}")
    return next(iter(exact or found), None)


def is_heading(first: Row, rest: Sequence[Row], places: Sequence[int]) -> bool:
    """Whether a first row without known words is a heading, by the entries at some places.

    Above numbers it is one unless it is numbers too. Above names it is a row if its names occur
    again.

    Raises:
        UnclearError: it could be either.
    """
    if not rest:
        return False
    entries = [first[at] for at in places]
    shown = ", ".join(entries)[:LONGEST]
    again = {row[at] for row in rest for at in places}
    if all(NUMBER.fullmatch(row[at]) for row in rest for at in places):
        if not all(map(NUMBER.fullmatch, entries)):
            return True
        counts = [int(one) for one in entries if WHOLE.fullmatch(one)]
        may_count = str(len(rest)) in entries and max(counts) >= len(again)
        if may_count and not again.issuperset(entries):
            raise UnclearError(
                f"its first line, '{shown}', may count what follows; say heading: true if it does, "
                "heading: false if not"
            )
        return False
    if again.issuperset(entries):
        return False
    raise UnclearError(
        f"its first line, '{shown}', has a name that no other line has; say heading: true if it is "
        "a heading, heading: false if not"
    )


def numbered(*columns: Sequence[str]) -> tuple[list[str], dict[str, int]]:
    """The distinct entries of some columns in order, as numbers if all of them are, and the place
    of each.

    Raises:
        ValueError: an entry is missing or no name, or one number is written in two ways.
    """
    entries = set().union(*columns)
    if "" in entries:
        raise ValueError("an entry is missing")
    for entry in entries:
        if entry[0] in "[{" or any(entry.count(a) != entry.count(b) for a, b in ("[]", "()", "{}")):
            raise ValueError(f"an entry is '{entry[:LONGEST]}'; give columns of numbers or names")
    if all(map(WHOLE.fullmatch, entries)):
        names = sorted(entries, key=int)
    else:
        names = sorted(entries)
        written: dict[float, str] = {}
        for name in names:
            if len(name) <= 15 and NUMBER.fullmatch(name):
                other = written.setdefault(float(name), name)
                if other != name:
                    raise ValueError(f"one number is written '{other}' and '{name}'; write it once")
    return names, {name: at for at, name in enumerate(names)}
