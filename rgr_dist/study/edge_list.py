"""Loads user-supplied edge lists: two columns, sources and targets, as text, CSV or Parquet.

Nodes are numbers or names. Names are numbered in alphabetical order.
"""

from __future__ import annotations

import csv
import io
import re
from array import array
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import numpy.typing as npt

from rgr_dist.study import assets
from rgr_dist.study.errors import StudyError
from rgr_dist.study.input_file import (
    LIST,
    LONGEST,
    FileKeys,
    is_pair,
    opened,
    order_of,
    read_pairs,
    row_of,
    text_of,
)
from rgr_dist.study.spec import LARGEST_COUNT

COLUMNS = (
    "an edge list has two columns, the source and the target of each edge, all of them whole "
    "numbers or all of them names, separated by a comma, spaces or tabs"
)
NUMBER = r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?"
"""An entry that is a number, not a name; ``read_pairs`` then refuses one that is not whole."""
NAMED = r"^[^#]*[^#\s]#.*[,\t]"
"""A line in which ``#`` is part of a name, as in ``5 3#main,5 4#main``, and begins no comment."""
GLUED = r"[,;]|^[:|]|[:|]$"
"""Signs in a name among spaces which show that something else separates the names."""


class EdgesFile(FileKeys):
    """The edges of a file, the same at every seed.

    Attributes:
        file: an edge list; its path is relative to the study file.
    """

    family: Literal["edges"]


def load_edges(path: str) -> dict[str, Any]:
    """Keep the edges of a file for this process; returns the keys of the graph (``Edges``).

    Raises:
        StudyError: see ``read_edges``.
    """
    edges = read_edges(Path(path))
    return {
        "family": "edges",
        "digest": assets.add(edges),
        "edges": len(edges),
        "degree": int(np.unique(edges[:, 0], return_counts=True)[1].max()),
        "items": int(edges.max()) + 1,
    }


def read_edges(path: Path) -> npt.NDArray[np.int32]:
    """The edges of a file, int32 [m', 2], sorted by source and target.

    They are numbers (``read_pairs``) or, in a file of text, names. Any directed graph is valid: an
    item may have any number of out- and in-neighbours, including none, and self-loops are allowed.
    Each edge is listed once.

    Raises:
        StudyError: the file cannot be read or is not an edge list.
    """
    with opened(path, COLUMNS, LIST) as file:
        names: list[str] = []
        if path.suffix != ".parquet" and _is_named(file):
            pairs, names = _named_pairs(file)
        else:
            pairs = read_pairs(file, path.suffix)
        edges, times = np.unique(pairs, axis=0, return_counts=True)
        if len(edges) == 0:
            raise ValueError("it holds no edges")
        for item in (int(edges.min()), int(edges.max())):
            if not 0 <= item < LARGEST_COUNT:
                raise ValueError(f"item {item} is out of range; items are numbered from 0")
        if times.max() > 1:
            twice = [names[item] if names else str(item) for item in edges[times.argmax()]]
            raise ValueError(f"the edge {' '.join(twice)} is listed twice")
        return edges.astype(np.int32)


def counted_items(graph: Mapping[str, Any]) -> int:
    """The number of items of a loaded graph, if each of them occurs in an edge.

    Raises:
        StudyError: some occur in no edge, and the edges do not say whether those exist.
    """
    occur, items = np.unique(assets.get(graph["digest"])), graph["items"]
    if len(occur) < items:
        first = int((occur != np.arange(len(occur))).argmax())
        raise StudyError(
            f"{items - len(occur)} of the items 0 to {items - 1} occur in no edge, the first of "
            f"them {first}; give m: {items} if they exist, or number the items from 0 without gaps"
        )
    return len(occur)


def _separator(line: str) -> str:
    """What separates the entries of a first line; a tab next to a comma is part of the comma."""
    signs = "," if re.search(r",\s*\t|\t\s*,", line) else "\t,"
    return next((sign for sign in signs if sign in line), " ")


def _lines(file: BinaryIO) -> Iterator[tuple[int, str, str]]:
    """The number, text and separator of each line that is not blank and does not begin with ``#``.

    Tabs separate entries if the first line has one, else commas, even one in quotes, else spaces.

    Raises:
        ValueError: quotes keep a tab, or a blank that would be lost here, as other readers do not.
    """
    file.seek(0)
    text = io.StringIO(text_of(file), newline=None)
    separator = None
    for at, line in enumerate(text, 1):
        if line.strip() and line[0] != "#":
            separator = separator or _separator(line.strip())
            lost = r'\t|^"\s|\s"$' + r"|[^\S ]" * (separator == " ")
            kept = re.findall(r'(?<![^,\s])"(?:[^"]|"")*"', line)
            if any(re.search(lost, quoted) for quoted in kept):
                raise ValueError(f"line {at} has a tab or an outer blank within quotes")
            yield at, line, separator


def _entries(at: int, line: str, separator: str) -> list[str]:
    """The entries of a line, without quotes and blanks around them.

    Raises:
        ValueError: a quote is not closed, or something else follows it.
    """
    among = {"\t": r"[\n\r\f\v]", ",": r"[\t\n\r\f\v]", " ": r"\s"}[separator]
    blanks = re.sub(among, " ", line).strip(" ")
    blanks = re.sub(rf'" +(?={separator})', '"', blanks)
    try:
        row = next(csv.reader([blanks], delimiter=separator, skipinitialspace=True, strict=True))
    except csv.Error as error:
        quote = "has a quote that is not closed, or text right after one"
        said = quote if '"' in line else f"cannot be read: {error}"
        raise ValueError(f"line {at} {said}") from None
    return [entry.strip(" ") for entry in row]


def _is_named(file: BinaryIO) -> bool:
    """Whether the first two lines, one of which may be a header, contain no number."""
    text = io.StringIO(text_of(file), newline=None)
    lines = islice((line for line in text if line.strip() and line[0] != "#"), 2)
    if any(is_pair(row_of(line)[1]) and not re.search(NAMED, line) for line in lines):
        file.seek(0)
        return False
    rows = [_entries(*line) for line in islice(_lines(file), 2)]
    file.seek(0)
    return bool(rows) and not any(re.fullmatch(NUMBER, one.strip()) for row in rows for one in row)


def _named_pairs(file: BinaryIO) -> tuple[npt.NDArray[np.int64], list[str]]:
    """The edges of a file of names, int64 [rows, 2], and the names by number.

    A first line may be a heading if its names occur in no other line while other names recur. Then
    two words of ``EDGES``, one of each end, must be above it if it is an edge, or in its place.

    Raises:
        ValueError: a line is not two names, or the first may be a heading.
    """
    numbers: dict[str, int] = {}
    ends, is_headed, turned = array("q"), False, False
    for at, line, separator in _lines(file):
        row = _entries(at, line, separator)
        if len(row) != 2 or not all(row):
            raise ValueError(f"line {at} is '{', '.join(row)[:LONGEST]}'")
        is_plain = separator == " " and '"' not in line
        glued = [entry for entry in row if is_plain and re.search(GLUED, entry)]
        if glued:
            raise ValueError(
                f"line {at} has '{glued[0][:LONGEST]}' among spaces; such names need quotes"
            )
        order = None if ends or is_headed else order_of([entry.strip().lower() for entry in row])
        if order in ((0, 1), (1, 0)):
            is_headed, turned = True, order == (1, 0)
        else:
            ends.extend(numbers.setdefault(entry, len(numbers)) for entry in row)
    others = set(ends[2:])
    if not is_headed and others.isdisjoint(ends[:2]) and len(others) < len(ends) - 2:
        first = ", ".join([*numbers][end] for end in ends[:2])[:LONGEST]
        raise ValueError(
            f"its first line, '{first}', has names that no other line has: write 'source,target' "
            "in its place if it is a heading, above it if it is an edge"
        )
    names = sorted(numbers)
    rank = np.empty(len(numbers), dtype=np.int64)
    for place, name in enumerate(names):
        rank[numbers[name]] = place
    pairs = rank[np.array(ends, dtype=np.int64)].reshape(-1, 2)
    return pairs[:, ::-1] if turned else pairs, names
