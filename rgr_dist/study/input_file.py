"""Reads the files that a study names; what cannot be read is refused in one line."""

from __future__ import annotations

import csv
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field, StrictStr

from rgr_dist.study.errors import StudyError
from rgr_dist.study.spec import Spec

FileName = Annotated[StrictStr, Field(min_length=1)]
LONGEST = 40
"""Characters shown of a line."""


class FileKeys(Spec):
    """The keys of what is read from one file.

    Attributes:
        file: its path, relative to the study file.
    """

    file: FileName

    def located(self, home: Path) -> str:
        """Where the file is; a path that is not absolute is relative to ``home``."""
        return str((home / self.file).absolute())


@contextmanager
def reading(path: Path, wanted: str, largest: int | None = None) -> Iterator[None]:
    """Refuse a path that is no regular file, then explain whatever fails as it is read.

    A pipe or a device may never end.

    Args:
        wanted: what would be valid.
        largest: most bytes it may have.

    Raises:
        StudyError: it cannot be read, or a ValueError was raised over what it holds.
    """
    try:
        found = path.stat()
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
            raise ValueError("cannot be read: a pipe or a device")
        if largest is not None and found.st_size > largest:
            raise ValueError(f"cannot be read: larger than {largest >> 20} MiB")
        yield
        return
    except OSError as error:
        said = f"cannot be read: {error.strerror or error}"
    except UnicodeDecodeError:
        said = "not a text file in UTF-8"
    except (ValueError, csv.Error, pa.ArrowException) as error:
        said = str(error).split("\n")[0].rstrip(". ")
    raise StudyError(f"{path}: {said}; {wanted}")


def read_pairs(path: Path) -> npt.NDArray[np.int64]:
    """Two columns of whole numbers, int64 [rows, 2].

    A file that ends in ``.parquet`` has two integer columns. Any other is text, with columns
    separated by a comma, spaces or tabs; ``#`` starts a comment, and a first line without digits
    is a header.

    Raises:
        ValueError: it has other columns, or a line is not two whole numbers.
    """
    if path.suffix == ".parquet":
        table = read_parquet(
            path, lambda schema: len(schema) == 2 and all(map(pa.types.is_integer, schema.types))
        )
        columns = [column.to_numpy().astype(np.int64) for column in table.columns]
        return np.column_stack(columns)
    with path.open(encoding="utf-8") as file:
        lines = [(number, line.partition("#")[0].strip()) for number, line in enumerate(file, 1)]
    lines = [(number, line) for number, line in lines if line]
    if lines and not any(sign.isdigit() for sign in lines[0][1]):
        del lines[0]
    rows = []
    for number, line in lines:
        row = re.split(r"\s*[,\s]\s*", line)
        if len(row) != 2 or not all(re.fullmatch(r"-?\d{1,18}", entry) for entry in row):
            raise ValueError(f"line {number} is '{line[:LONGEST]}'")
        rows.append([int(entry) for entry in row])
    return np.array(rows, dtype=np.int64).reshape(-1, 2)


def read_parquet(path: Path, is_valid: Callable[[pa.Schema], bool]) -> pa.Table:
    """The table of a Parquet file.

    Raises:
        ValueError: its columns are not valid, or an entry is missing.
    """
    with path.open("rb") as file:
        table = pq.read_table(file)
    if not is_valid(table.schema):
        shown = ", ".join(f"{field.name} ({field.type})" for field in table.schema)
        raise ValueError(f"its columns are {shown[: 3 * LONGEST]}")
    if any(column.null_count for column in table.columns):
        raise ValueError("an entry is missing")
    return table
