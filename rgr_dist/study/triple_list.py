"""Loads a database from a file: triples of a key, a query and a value, as CSV or Parquet."""

from __future__ import annotations

import csv
import io
import re
from array import array
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rgr_dist.study import assets
from rgr_dist.study.edge_list import NUMBER
from rgr_dist.study.input_file import LIST, LONGEST, FileKeys, opened, read_parquet, text_of

NAMES = ("key", "query", "value")
DIGITS = 18
"""Characters of a number, at most: longer ones are compared as text."""
TEXTS = (pa.string(), pa.large_string())
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
    """Keep the triples of a file for this process; returns the keys of a ``FactsFile``.

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
    ``query`` and ``value``. Any other file is CSV in UTF-8, with these names in its first line. The
    entries of a column are numbered from 0 in sorted order: as integers if all of them are, else as
    text, without surrounding spaces. A pair of a key and a query is listed once.

    Raises:
        StudyError: the file cannot be read or is not such a list.
    """
    with opened(path, COLUMNS, LIST) as file:
        is_csv = path.suffix != ".parquet"
        table = _csv(file) if is_csv else read_parquet(file, _has_triples)
        labels, numbers = zip(*(_numbered(name, table[name]) for name in NAMES), strict=True)
        triples = np.unique(np.column_stack(numbers), axis=0)
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


def _csv(file: BinaryIO) -> pa.Table:
    text = io.StringIO(text_of(file), newline="")
    lines = csv.reader(text, strict=True, skipinitialspace=True)
    head = [name.strip() for name in next(lines, [])]
    if sorted(head) != sorted(NAMES):
        raise ValueError(f"its first line is {','.join(head)[:LONGEST]!r}")
    labels: list[dict[str, int]] = [{} for _ in head]  # each text is in memory once
    numbers = [array("i") for _ in head]
    for row in filter(None, lines):
        if len(row) != len(NAMES):
            raise ValueError(f"line {lines.line_num} is {','.join(row)[:LONGEST]!r}")
        for column, known, entry in zip(numbers, labels, row, strict=True):
            column.append(known.setdefault(entry, len(known)))
    entries = [pa.array([*known], pa.string()) for known in labels]
    columns = map(pa.DictionaryArray.from_arrays, map(np.array, numbers), entries)
    return pa.table(dict(zip(head, columns, strict=True)))


def _has_triples(schema: pa.Schema) -> bool:
    """Whether a schema has the columns of triples, each once, with integers or text."""
    kinds = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in schema.types]
    are_entries = (pa.types.is_integer(kind) or kind in TEXTS for kind in kinds)
    return sorted(schema.names) == sorted(NAMES) and all(are_entries)


def _numbered(name: str, column: pa.ChunkedArray) -> tuple[list[Any], npt.NDArray[np.int32]]:
    """The distinct entries of a column in order, and the number of each entry.

    Raises:
        ValueError: an entry is missing, or a number is written in two ways, such as 7 and 7.0.
    """
    coded = column.dictionary_encode().combine_chunks()
    entries = coded.dictionary.to_pylist()  # each once, since texts may be long
    if any(isinstance(entry, str) for entry in entries):
        entries = [entry.strip() for entry in entries]
        if "" in entries:
            raise ValueError(f"a {name} is missing")
        if all(re.fullmatch("-?[0-9]{1,18}", entry) for entry in entries):
            entries = [int(entry) for entry in entries]
        elif all(re.fullmatch(NUMBER, entry) and len(entry) <= DIGITS for entry in entries):
            written: dict[Decimal, str] = {}
            for entry in entries:
                if (other := written.setdefault(Decimal(entry), entry)) != entry:
                    raise ValueError(f"the same {name} is written {other!r} and {entry!r}")
    labels = sorted(set(entries))
    number = {label: at for at, label in enumerate(labels)}
    numbers = np.array([number[entry] for entry in entries], dtype=np.int32)
    return labels, numbers[coded.indices.to_numpy()]
