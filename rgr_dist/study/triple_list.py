"""Loads a database from a file: triples of a key, a query and a value, as CSV or Parquet."""

from __future__ import annotations

import csv
import io
import itertools
import re
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rgr_dist.study import assets
from rgr_dist.study.input_file import LIST, LONGEST, FileKeys, opened, read_parquet

NAMES = ("key", "query", "value")
COLUMNS = (
    "a database has three columns of integers or text, named key, query and value in the first "
    "line of a CSV file; a pair of a key and a query is listed once"
)


class TriplesFile(FileKeys):
    """The triples of a file, the same at every seed.

    Attributes:
        file: a CSV or Parquet file of triples; its path is relative to the study file.
    """

    family: Literal["file"]


def load_triples(path: str) -> dict[str, Any]:
    """Keep the triples of a file for this process; returns the keys of the database.

    Those are the keys of ``FactsFile``.

    Raises:
        StudyError: see ``read_triples``.
    """
    triples = read_triples(Path(path))
    keys, queries, values = (int(largest) + 1 for largest in triples.max(axis=0))
    return {
        "family": "file",
        "digest": assets.add(triples),
        "keys": keys,
        "queries": queries,
        "values": values,
        "triples": len(triples),
    }


def read_triples(path: Path) -> npt.NDArray[np.int32]:
    """The triples of a file, int32 [|D|, 3], sorted by key and query.

    A file that ends in ``.parquet`` holds three columns, of integers or text, named ``key``,
    ``query`` and ``value``. Any other is CSV in UTF-8, whose first line names them so. The entries
    of a column are numbered from 0 in their order, that of integers where all are, else that of
    text without spaces around it. A pair of a key and a query is listed once.

    Raises:
        StudyError: the file cannot be read or is not such a list.
    """
    with opened(path, COLUMNS, LIST) as file:
        columns = _parquet(file) if path.suffix == ".parquet" else _csv(file)
        labels, numbers = zip(*(_numbered(name, columns[name]) for name in NAMES), strict=True)
        triples = np.unique(np.array(numbers, dtype=np.int32).T, axis=0)
        if not len(triples):
            raise ValueError("it holds no triples")
        pairs, times = np.unique(np.array(numbers[:2]), axis=1, return_counts=True)
        if times.max() > 1:
            key, query = pairs[:, times.argmax()]
            shown = [str(labels[0][key])[:LONGEST], str(labels[1][query])[:LONGEST]]
            raise ValueError(f"key {shown[0]!r} is listed twice at query {shown[1]!r}")
        if len(labels[2]) < 2:
            raise ValueError("all triples have the same value")
        return triples


def _csv(file: BinaryIO) -> dict[str, list[Any]]:
    """Its columns as text."""
    lines = csv.reader(io.StringIO(file.read().decode("utf-8-sig"), newline=""), strict=True)
    head = [name.strip() for name in next(lines, [])]
    if sorted(head) != sorted(NAMES):
        raise ValueError(f"its first line is {','.join(head)[:LONGEST]!r}")
    rows = []
    for row in lines:
        if row and len(row) != len(NAMES):
            raise ValueError(f"line {lines.line_num} is {','.join(row)[:LONGEST]!r}")
        rows += [row] if row else []
    return {name: [row[at] for row in rows] for at, name in enumerate(head)}


def _parquet(file: BinaryIO) -> dict[str, list[Any]]:
    table = read_parquet(
        file, lambda schema: sorted(schema.names) == sorted(NAMES) and all(map(_is_entry, schema))
    )
    return {name: [*itertools.chain(*map(_entries, table[name].chunks))] for name in NAMES}


def _entries(chunk: pa.Array) -> list[Any]:
    """The entries of a part of a column; equal texts are one object."""
    if not pa.types.is_dictionary(chunk.type):
        return list(chunk.to_pylist())
    labels = chunk.dictionary.to_pylist()
    return [labels[number] for number in chunk.indices.to_pylist()]


def _is_entry(field: pa.Field) -> bool:
    """Whether a column has integers or text."""
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    tests = (pa.types.is_integer, pa.types.is_string, pa.types.is_large_string)
    return any(test(kind) for test in tests)


def _numbered(name: str, entries: list[Any]) -> tuple[list[Any], list[int]]:
    """The distinct entries of a column in order, and the number of each entry.

    Raises:
        ValueError: an entry is missing.
    """
    if any(isinstance(entry, str) for entry in entries):
        stripped = {entry: entry.strip() for entry in set(entries)}
        entries = [stripped[entry] for entry in entries]
        if "" in entries:
            raise ValueError(f"a {name} is missing")
        if all(re.fullmatch("-?[0-9]{1,18}", entry) for entry in entries):
            entries = [int(entry) for entry in entries]
    labels = sorted(set(entries))
    number = {label: at for at, label in enumerate(labels)}
    return labels, [number[entry] for entry in entries]
