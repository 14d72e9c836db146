"""Reads the files that a study names; a file that cannot be read is refused in one line."""

from __future__ import annotations

import csv
import io
import itertools
import math
import os
import re
import stat
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field, StrictStr

from rgr_dist.faults import shown
from rgr_dist.study.errors import StudyError
from rgr_dist.study.spec import Spec

FileName = Annotated[StrictStr, Field(min_length=1)]
LONGEST = 40
"""Characters shown of a line."""
LIST, TABLE = 16, 1024
"""Most MiB of a list of edges, triples or counts, and of a table of vectors or a text."""
LARGEST_HEADER = 2**22
"""Most bytes of the header in which a safetensors file describes its tensors; GPT-2: 15,000."""
RAISED_BY = "RGR_LARGEST_FILE"
"""The environment variable that sets another limit, in MiB, for every file."""
Ends = tuple[tuple[str, ...], tuple[str, ...]]
"""The words that head a first and a second column."""
INTEGER = r'-?[0-9]{1,18}|"-?[0-9]{1,18}"'
"""An entry that is a whole number, in digits that every program reads."""
EDGES = ("source", "src", "from"), ("target", "dst", "dest", "destination", "to")
"""The words that head the columns of an edge list."""
NUMBERS = ("F16", "F32", "F64", "I8", "I16", "I32", "I64", "U8", "U16", "U32", "U64")
"""The number formats of safetensors files that numpy also has."""


class FileKeys(Spec):
    """The keys of a part that is read from one file.

    Attributes:
        file: its path, relative to the study file.
    """

    file: FileName

    def located(self, home: Path) -> str:
        """Where the file is; a path that is not absolute is relative to ``home``."""
        return str((home / self.file).absolute())


def exists(path: Path) -> bool:
    """Whether a path exists; False for a name that no file can have."""
    return os.path.exists(path)  # noqa: PTH110  # Path.exists raises if a name is too long


@contextmanager
def opened(path: Path, wanted: str, largest: int | None) -> Iterator[BinaryIO]:
    """Open a file that a user names, for reading; explains whatever fails in the block.

    Only regular files are read, because a pipe or a device may never end.

    Args:
        wanted: what would be valid.
        largest: most MiB that it may have (``check_size``); None if only part of it is read.

    Raises:
        StudyError: the file cannot be read, or is not what is wanted.
    """
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise ValueError("cannot be read: a pipe or a device")
            if largest is not None:
                check_size(found.st_size, largest)
            yield file
        return
    except StudyError:
        raise
    except OSError as error:
        said = f"cannot be read: {error.strerror or error}"
    except UnicodeDecodeError:
        said = "not a text file in UTF-8"
    except (ValueError, csv.Error, pa.ArrowException) as error:
        said = str(error)
    except Exception as error:  # parsers raise errors of any kind
        said = f"cannot be read: {str(error) or type(error).__name__}"
    first = said.strip().split("\n")[0].rstrip(". ")
    raise StudyError(f"{path}: {shown(first)}; {wanted}")


def _without_waiting(path: str, flags: int) -> int:
    """Open a file, or even a pipe without a writer, which ``opened`` then refuses."""
    return os.open(path, flags | os.O_NONBLOCK)


def check_size(size: int, largest: int) -> None:
    """Make sure that a file, or what it holds once it is read, is not too large for memory.

    Args:
        size: in bytes.
        largest: most MiB, unless the environment sets another limit (``RAISED_BY``).

    Raises:
        ValueError: it is too large.
        StudyError: the limit in the environment is not a whole number.
    """
    said = os.environ.get(RAISED_BY) or str(largest)
    if not (said.isascii() and said.isdigit() and len(said) < 10):
        raise StudyError(f"{RAISED_BY}={said}: give the largest file in MiB, such as 4096")
    if size > int(said) << 20:
        raise ValueError(f"cannot be read: larger than {said} MiB; {RAISED_BY} sets another limit")


def as_path(file: BinaryIO) -> str:
    """A path of an open file, for libraries that open files themselves."""
    return f"/dev/fd/{file.fileno()}"


def text_of(file: BinaryIO) -> str:
    """The text of a file in UTF-8, without a byte-order mark.

    Raises:
        ValueError: it is in another encoding. UTF-16 without a mark is valid UTF-8 with zero bytes.
    """
    text = file.read().decode("utf-8-sig")
    if "\0" in text:
        raise ValueError("not a text file in UTF-8: it has zero bytes")
    return text


def read_pairs(file: BinaryIO, suffix: str, heads: Ends = EDGES) -> npt.NDArray[np.int64]:
    """Two columns of whole numbers, int64 [rows, 2].

    A file that ends in ``.parquet`` has two integer columns. Any other is text, with columns
    separated by a comma, spaces or tabs; ``#`` starts a comment, and a first line without digits
    is a header. Numbers may be in quotes. Columns are exchanged if their heads hold words of
    ``heads`` in the other order, as in ``dst_id,src_id`` or ``ToNode,FromNode``.

    Raises:
        ValueError: it has other columns, both of one end, or a line is not two whole numbers.
    """
    if suffix == ".parquet":
        table = read_parquet(
            file, lambda schema: len(schema) == 2 and all(map(pa.types.is_integer, schema.types))
        )
        columns = [column.to_numpy().astype(np.int64) for column in table.columns]
        swapped = _are_swapped(table.column_names, heads)
        return np.column_stack(columns[::-1] if swapped else columns)
    numbers, is_first, header = array("q"), True, list[str]()
    for at, whole in enumerate(io.StringIO(text_of(file), newline=None), 1):
        line, row = row_of(whole)
        if is_pair(row):
            numbers.extend(int(one.strip('"')) for one in row)
        elif line and not (is_first and not any(map(str.isdigit, line))):
            raise ValueError(f"line {at} is '{line[:LONGEST]}'")
        elif line:
            header = row
        is_first &= not line
    pairs = np.array(numbers, dtype=np.int64).reshape(-1, 2)
    return pairs[:, ::-1] if _are_swapped(header, heads) else pairs


def row_of(whole: str) -> tuple[str, list[str]]:
    """A line of numbers without its comment, and its entries."""
    line = whole.partition("#")[0].strip()
    return line, re.split(r"\s*[,\s]\s*", line)


def is_pair(row: Sequence[str]) -> bool:
    """Whether the entries of a line are two whole numbers."""
    return len(row) == 2 and all(re.fullmatch(INTEGER, one) for one in row)


def _are_swapped(header: Sequence[str], heads: Ends) -> bool:
    """Whether two columns of these names are the other way round."""
    words = [_head_of(name, heads) for name in header]
    ends, said = order_of(words, heads), f"{', '.join(header)[: 2 * LONGEST]}"
    if ends is not None and ends[0] == ends[1]:
        raise ValueError(f"both columns are headed as one end: {said}")
    if len(words) == 2 and ends is None and (words[0] in heads[1] or words[1] in heads[0]):
        raise ValueError(f"one column is headed as the other end, the other as neither: {said}")
    return ends == (1, 0)


def _head_of(name: str, heads: Ends) -> str:
    """``from`` of ``from_id``, ``FromNode``, ``FROMID``; the last, ``count`` of ``token_count``."""
    known = "|".join(itertools.chain(*heads))
    words = re.split("(?<=[a-z])(?=[A-Z])|[^A-Za-z]", name)
    found = [re.fullmatch(f"({known})(s|ids?|nodes?|of)?", word.lower()) for word in words]
    return next((one[1] for one in reversed(found) if one), "")


def order_of(words: Sequence[str], heads: Ends = EDGES) -> tuple[int, int] | None:
    """Which column of ``heads`` each of two words heads; None if one of them heads neither."""
    found = [column for word in words for column, names in enumerate(heads) if word in names]
    return (found[0], found[1]) if len(found) == len(words) == 2 else None


def read_parquet(file: BinaryIO, is_valid: Callable[[pa.Schema], bool]) -> pa.Table:
    """The table of a Parquet file, dictionary-encoded: each text is in memory once.

    Raises:
        ValueError: its columns are not valid, it has too many rows, or an entry is missing.
    """
    schema = pq.read_schema(file)
    if not is_valid(schema):
        shown = ", ".join(f"{field.name} ({field.type})" for field in schema)
        raise ValueError(f"its columns are {shown[: 3 * LONGEST]}")
    found = pq.ParquetFile(file, read_dictionary=schema.names)
    about = found.metadata
    groups = [about.row_group(i).total_byte_size for i in range(about.num_row_groups)]
    check_size(max(sum(groups), 8 * about.num_rows * about.num_columns), LIST)
    table = found.read()
    if any(column.null_count for column in table.columns):
        raise ValueError("an entry is missing")
    return table


def read_tensor(file: BinaryIO, names: Sequence[str] = ()) -> npt.NDArray[Any]:
    """A table of a safetensors file: the first of these names that it has, or its only table.

    Raises:
        ValueError: there is no such table, numpy lacks its number format, or it is too large.
    """
    from safetensors import safe_open

    if int.from_bytes(file.read(8), "little") > LARGEST_HEADER:
        raise ValueError(f"cannot be read: its header is larger than {LARGEST_HEADER:,} bytes")
    with safe_open(as_path(file), framework="numpy") as parts:
        slices = {name: parts.get_slice(name) for name in parts.keys()}  # noqa: SIM118
        tables = [name for name in slices if len(slices[name].get_shape()) == 2]
        found = [name for name in names or tables if name in tables]
        if not found or (len(found) > 1 and not names):
            raise ValueError(f"its tables are {', '.join(tables) or 'none'}")
        if slices[found[0]].get_dtype() not in NUMBERS:
            raise ValueError(f"{found[0]} is not of type {', '.join(NUMBERS)}")
        check_size(8 * math.prod(slices[found[0]].get_shape()), TABLE)
        values: npt.NDArray[Any] = parts.get_tensor(found[0])
        return values
