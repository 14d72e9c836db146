"""Loads user-supplied edge lists: two columns, sources and targets, as text, CSV or Parquet."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field, StrictStr

from rgr_dist.study import assets
from rgr_dist.study.errors import StudyError
from rgr_dist.study.input_file import check_file
from rgr_dist.study.spec import Spec

LARGEST_ITEM = 2**31 - 2
COLUMNS = (
    "an edge list has two columns of whole numbers, the source and the target of each edge, "
    "separated by a comma, spaces or tabs"
)


class EdgesFile(Spec):
    """The edges of a file, the same at every seed.

    Attributes:
        file: an edge list; its path is relative to the study file.
    """

    family: Literal["edges"]
    file: Annotated[StrictStr, Field(min_length=1)]

    def located(self, home: Path) -> str:
        """Where the file is; a path that is not absolute is relative to ``home``."""
        return str((home / self.file).absolute())


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

    A file that ends in ``.parquet`` holds two integer columns. Any other is text, one edge per
    line, with columns separated by a comma, spaces or tabs; ``#`` starts a comment, and a first
    line without digits is a header. Any directed graph is valid: an item may have any number of
    out- and in-neighbours, including none, and self-loops are allowed. Each edge is listed once.

    Raises:
        StudyError: the file cannot be read or is not an edge list.
    """
    check_file(path, COLUMNS)
    try:
        pairs = _parquet(path) if path.suffix == ".parquet" else _text(path)
    except OSError as error:
        raise StudyError(f"{path}: cannot be read: {error.strerror}; {COLUMNS}") from None
    except UnicodeDecodeError:
        raise StudyError(f"{path}: not a text file; {COLUMNS}") from None
    except pa.ArrowException as error:
        reason = str(error).split(";")[0].split("\n")[0].rstrip(". ")
        raise StudyError(f"{path}: {reason}; {COLUMNS}") from None
    except ValueError as error:
        raise StudyError(f"{path}: {error}; {COLUMNS}") from None
    if pairs.size == 0:
        raise StudyError(f"{path}: it holds no edges; {COLUMNS}")
    low, high = int(pairs.min()), int(pairs.max())
    if low < 0 or high > LARGEST_ITEM:
        worst = low if low < 0 else high
        raise StudyError(f"{path}: item {worst} is out of range; items are numbered from 0")
    edges = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))].astype(np.int32)
    same = (np.diff(edges, axis=0) == 0).all(axis=1)
    if same.any():
        source, target = edges[int(same.argmax())]
        raise StudyError(f"{path}: the edge {source} {target} is listed twice; list each edge once")
    return edges


def _text(path: Path) -> npt.NDArray[np.int64]:
    with path.open(encoding="utf-8") as file:
        lines = [line.partition("#")[0].strip() for line in file]
    first = next((number for number, line in enumerate(lines) if line), len(lines))
    if first < len(lines) and not any(sign.isdigit() for sign in lines[first]):
        lines[first] = ""
    by_comma = any("," in line for line in lines[: first + 2])
    rows = [line.split("," if by_comma else None) for line in lines if line]
    numbers = itertools.compress(itertools.count(1), lines)
    for number, row in zip(numbers, rows, strict=True):
        if len(row) != 2 or not all(_is_whole(value) for value in row):
            shown = lines[number - 1][:40]
            raise ValueError(f"line {number} is '{shown}'")
    return np.array(rows, dtype=np.int64).reshape(-1, 2)


def _is_whole(text: str) -> bool:
    text = text.strip()
    return text.removeprefix("-").isdecimal() and len(text) < 19


def _parquet(path: Path) -> npt.NDArray[Any]:
    with path.open("rb") as file:
        table = pq.read_table(file)
    kinds = [field.type for field in table.schema]
    if len(kinds) != 2 or not all(pa.types.is_integer(kind) for kind in kinds):
        shown = ", ".join(f"{field.name} ({field.type})" for field in table.schema)
        raise ValueError(f"its columns are {shown}")
    if any(column.null_count for column in table.columns):
        raise ValueError("an entry is null")
    return np.column_stack([column.to_numpy().astype(np.int64) for column in table.columns])
