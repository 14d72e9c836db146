"""Loads a database from a file: triples of a key, a query and a value, as CSV or Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pc_csv
import pyarrow.parquet as pq
from pydantic import Field, StrictStr

from rgr_dist.study import assets
from rgr_dist.study.errors import StudyError
from rgr_dist.study.input_file import check_file
from rgr_dist.study.spec import LARGEST_COUNT, Spec

NAMES = ("key", "query", "value")
COLUMNS = (
    "a database has three columns of integers or text, named key, query and value in the first "
    "line of a CSV file"
)
LONGEST = 40
"""Characters shown of an entry."""
LONGEST_LINE, AT_ONCE = 10_000, 2**20
"""Characters that are read as a first line, and of a file at once."""


class TriplesFile(Spec):
    """The triples of a file, the same at every seed.

    Attributes:
        file: a CSV or Parquet file of triples; its path is relative to the study file.
    """

    family: Literal["file"]
    file: Annotated[StrictStr, Field(min_length=1)]

    def located(self, home: Path) -> str:
        """Where the file is; a path that is not absolute is relative to ``home``."""
        return str((home / self.file).absolute())


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
    check_file(path, COLUMNS)
    try:
        table = _parquet(path) if path.suffix == ".parquet" else _csv(path)
        columns = [_numbered(name, table[name]) for name in NAMES]
    except OSError as error:
        raise StudyError(f"{path}: cannot be read: {error.strerror}; {COLUMNS}") from None
    except UnicodeDecodeError:
        raise StudyError(f"{path}: not text in UTF-8; {COLUMNS}") from None
    except pa.ArrowException as error:
        reason = str(error).split(";")[0].split("\n")[0].rstrip(". ")
        raise StudyError(f"{path}: {reason}; {COLUMNS}") from None
    except ValueError as error:
        raise StudyError(f"{path}: {error}; {COLUMNS}") from None
    if table.num_rows == 0:
        raise StudyError(f"{path}: it holds no triples; {COLUMNS}")
    if table.num_rows > LARGEST_COUNT:
        raise StudyError(f"{path}: it holds {table.num_rows} triples; valid is up to 2^31 - 1")
    labels, numbers = zip(*columns, strict=True)
    triples = np.stack(numbers, axis=1).astype(np.int32)
    triples = triples[np.lexsort((triples[:, 2], triples[:, 1], triples[:, 0]))]
    same = (np.diff(triples[:, :2], axis=0) == 0).all(axis=1)
    if same.any():
        first = int(same.argmax())
        key, query, value = (
            _shown(column[int(number)].as_py())
            for column, number in zip(labels, triples[first], strict=True)
        )
        other = _shown(labels[2][int(triples[first + 1, 2])].as_py())
        if value == other:
            raise StudyError(
                f"{path}: the triple {key}, {query}, {value} is listed twice; list each triple once"
            )
        raise StudyError(
            f"{path}: key {key} has two values at query {query}, {value} and {other}; give one"
        )
    if len(labels[2]) < 2:
        raise StudyError(f"{path}: all triples have the same value; a database has two or more")
    return triples


def _csv(path: Path) -> pa.Table:
    """Its columns as text."""
    wrong: list[pc_csv.InvalidRow] = []

    def keep(row: pc_csv.InvalidRow) -> str:
        wrong.append(row)
        return "skip"

    with path.open(encoding="utf-8-sig", newline="") as file:
        first = file.readline(LONGEST_LINE).rstrip("\r\n")
        while file.read(AT_ONCE):  # Arrow tells of a wrong letter by an exception of its own
            pass
    if not first:
        raise ValueError("its first line is empty")
    names = [name.strip().strip('"') for name in first.split(",")]
    if sorted(names) != sorted(NAMES):
        raise ValueError(f"its first line is {_shown(first)}")
    table = pc_csv.read_csv(
        path,
        read_options=pc_csv.ReadOptions(column_names=names, skip_rows=1, use_threads=False),
        parse_options=pc_csv.ParseOptions(invalid_row_handler=keep),
        convert_options=pc_csv.ConvertOptions(
            column_types=dict.fromkeys(NAMES, pa.string()), strings_can_be_null=False
        ),
    )
    if wrong:
        raise ValueError(f"{_place_of(path, wrong[0].text)} is {_shown(wrong[0].text)}")
    return table


def _place_of(path: Path, text: str) -> str:
    """The number of the first line that reads so; Arrow's count leaves empty lines out."""
    with path.open(encoding="utf-8-sig") as file:
        numbers = (number for number, line in enumerate(file, 1) if line.rstrip("\r\n") == text)
        found = next(numbers, None)
    return "a line" if found is None else f"line {found}"


def _parquet(path: Path) -> pa.Table:
    with path.open("rb") as file:
        table = pq.read_table(file)
    for index, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(index, field.name, table[index].cast(field.type.value_type))
    kinds = {field.name: field.type for field in table.schema}
    if sorted(table.column_names) != sorted(NAMES) or not all(
        pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)
        for kind in kinds.values()
    ):
        shown = ", ".join(f"{field.name} ({field.type})" for field in table.schema)
        raise ValueError(f"its columns are {_shown(shown, 3 * LONGEST)}")
    return table


def _numbered(name: str, column: pa.ChunkedArray) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """The distinct entries of a column in order, and the number of each entry.

    Raises:
        ValueError: an entry is missing.
    """
    if column.null_count:
        raise ValueError(f"a {name} is missing")
    if not pa.types.is_integer(column.type):
        column = pc.utf8_trim_whitespace(column)
        if pc.any(pc.equal(pc.utf8_length(column), 0)).as_py():
            raise ValueError(f"a {name} is missing")
        if pc.all(pc.match_substring_regex(column, "^-?[0-9]{1,18}$")).as_py():
            column = column.cast(pa.int64())
    coded = pc.dictionary_encode(column).combine_chunks()
    order = pc.sort_indices(coded.dictionary).to_numpy()
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.arange(len(order))
    return coded.dictionary.take(order), number[coded.indices.to_numpy()]


def _shown(entry: Any, longest: int = LONGEST) -> str:
    """An entry as a message has it: on one line, and not too long."""
    return str(entry) if isinstance(entry, int) else repr(entry[:longest])
