"""Rows of text in a user's file, and whether the first of them is a heading: one fixed rule each.

What the rules leave open is refused, with what the study must say.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Sequence
from pathlib import Path

Row = list[str]

NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
WHOLE = re.compile(r"0|-?[1-9]\d*")
"""A whole number without leading zeros: anything else is a name, exactly as it is written."""
COMMENT = re.compile(r"[#%]([ \t]|$)")
BLANKS = re.compile(r'"([^"]*)"|(\S+)')
SUFFIX = r"(nodes?|vertex|items?|entity|names?|labels?|ids?|idx|index|s)*"
LONGEST = 60
"""Characters shown of a line."""


def text_lines(path: Path) -> Row:
    """The lines of a text file in UTF-8, without those that are blank."""
    text = io.StringIO(path.read_bytes().decode("utf-8-sig"), newline=None)
    return [line.rstrip("\n") for line in text if line.strip()]


def sign_of(lines: Sequence[str]) -> str:
    """What separates the entries of some lines: tabs, semicolons or commas if every line has them
    outside of quotes, else blanks."""
    quoted = re.compile(r'"[^"]*"')
    bare = (all(sign in quoted.sub("", line) for line in lines) for sign in "\t;,")
    return next((sign for sign, in_all in zip("\t;,", bare, strict=True) if in_all), " ")


def read_rows(lines: list[str]) -> tuple[list[Row], Row]:
    """The entries of every line, as many of each, and those of the last comment.

    Comments are lines before the first row that begin with ``# `` or ``% ``. The names of R's
    columns have none for the first, which is an index: it is then empty.

    Raises:
        ValueError: the lines have other numbers of entries, or a quote is not closed.
    """
    comment = ""
    while lines and COMMENT.match(lines[0]):
        comment, *lines = lines
    if not lines:
        raise ValueError("holds no rows")
    sign = sign_of(lines)
    if sign == " ":
        rows = [[one or other for one, other in BLANKS.findall(line)] for line in lines]
        told = comment[1:].split()
    else:
        reader = csv.reader(lines, delimiter=sign, strict=True, skipinitialspace=sign != "\t")
        rows = [[entry.strip() for entry in row] for row in reader]
        told = [entry.strip() for entry in comment[1:].split(sign)]
    width = len(rows[-1])
    if len(rows[0]) == width - 1 and not all(map(NUMBER.fullmatch, rows[0])):
        rows[0].insert(0, "")
    for at, row in enumerate(rows, 1):
        if len(row) != width:
            raise ValueError(
                f"row {at} has {len(row)} entries, and the last {width}: "
                f"'{', '.join(row)[:LONGEST]}'"
            )
    return rows, told


def column_of(heading: Sequence[str], words: Sequence[str]) -> int | None:
    """Which column's name begins with one of some words, as ``FromNodeId`` and ``FROM_ID`` with
    ``from``; None if none does.

    Raises:
        ValueError: several do, and not exactly one of them is such a word alone.
    """
    found = [at for at, name in enumerate(heading) if _first_word(name) in words]
    exact = [at for at in found if heading[at].strip().lower() in words]
    if len(found) > 1 and len(exact) != 1:
        names = " or ".join(heading[at] for at in found)
        raise ValueError(f"which column is the {words[0]}: {names}? name one of them {words[0]}")
    return next(iter(exact or found), None)


def _first_word(name: str) -> str:
    camel = re.match(r"[\W_]*([A-Z]+(?![a-z])|[A-Z]?[a-z]+)", name)
    return re.sub(f"(?<=..){SUFFIX}$", "", camel[1].lower()) if camel else ""


def is_heading(rows: Sequence[Row], places: Sequence[int]) -> bool:
    """Whether a first row without known words is a heading, by the entries at some places.

    Above numbers it is one unless it is numbers too. Above names it is a row if its names occur
    again.

    Raises:
        ValueError: it could be either.
    """
    first, *rest = ({row[at] for at in places} for row in rows)
    again = set().union(*rest)
    are_numbers = all(map(NUMBER.fullmatch, again))
    counts = [int(one) for one in first if WHOLE.fullmatch(one)]
    may_count = are_numbers and len(rest) in counts and max(counts) >= len(again)
    if not rest or (first <= again and not may_count):
        return False
    if are_numbers and not may_count:
        return not all(map(NUMBER.fullmatch, first))
    why = "may count what follows" if are_numbers else "has a name that no other line has"
    raise ValueError(
        f"its first line, '{', '.join(rows[0])[:LONGEST]}', {why}; say heading: true if it is a "
        "heading, heading: false if not"
    )


def numbered(*columns: Sequence[str]) -> tuple[Row, list[list[int]]]:
    """The distinct entries of some columns in order, as numbers if all of them are, and every
    column with the places of its entries among them.

    Raises:
        ValueError: an entry is missing or no name, or one number is written in two ways.
    """
    entries = dict.fromkeys(itertools.chain(*columns))
    for entry in entries:
        if not entry:
            raise ValueError("an entry is missing")
        torn = any(entry.count(one) != entry.count(other) for one, other in ("[]", "()", "{}"))
        if torn or entry[0] in "[{" or entry in ("->", "--", "-", ">"):
            raise ValueError(f"an entry is '{entry[:LONGEST]}'; give columns of numbers or names")
    are_whole = all(map(WHOLE.fullmatch, entries))
    names = sorted(entries, key=int if are_whole else str)
    written: dict[float, str] = {}
    for name in () if are_whole else names:  # such as 1 and 1.0
        is_short = len(name) <= 15 and NUMBER.fullmatch(name)
        if is_short and (other := written.setdefault(float(name), name)) != name:
            raise ValueError(f"one number is written '{other}' and '{name}'; write it once")
    place = {name: at for at, name in enumerate(names)}
    return names, [[place[entry] for entry in column] for column in columns]
