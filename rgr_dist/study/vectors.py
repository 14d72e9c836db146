"""Vectors that a study names by a file, one a row, and how they meet the items of a study."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rgr_dist.study.tables import NUMBER, WHOLE, text_lines

Rows = npt.NDArray[np.float32]

TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
"""Numbers of safetensors files; bfloat16 is the upper half of float32."""
INDEX = "model.safetensors.index.json"
NAMED = ("", "id", "ids", "index", "idx", "name", "token", "word", "item", "node", "label", "key")
"""Headings of a first column that names the rows."""


class Vectors(NamedTuple):
    """The vectors of a file.

    Attributes:
        rows: float32 [n, width], all finite.
        names: of the rows, if the file has them.
    """

    rows: Rows
    names: list[str] | None


def read_vectors(path: Path, tensor: str | None = None) -> Vectors:
    """The vectors of a ``.npy``, ``.safetensors``, Parquet, CSV, GloVe or word2vec file.

    Args:
        tensor: which of several tensors of a safetensors file, or of its shards.

    Raises:
        ValueError, OSError: it holds no table of finite numbers, or the names are not clear.
    """
    kind, names = path.suffix.lower(), None
    is_tensors = kind == ".safetensors" or path.name.endswith(".index.json") or path.is_dir()
    if tensor is not None and not is_tensors:
        raise ValueError(f"tensor: '{tensor}' is for safetensors files; leave it out")
    rows: Any
    if kind == ".npy":
        rows = np.load(path, allow_pickle=False)
    elif is_tensors:
        rows = _tensor(path, tensor)
    elif kind == ".parquet":
        rows, names = _of_parquet(path)
    else:
        rows, names = _of_text(text_lines(path))
    if rows.dtype.kind not in "fiub" or rows.ndim != 2 or not rows.size:
        raise ValueError(f"holds {rows.dtype} of shape {rows.shape}; give one row a vector")
    with np.errstate(over="ignore"):  # what float32 cannot hold is then infinite
        rows = rows.astype(np.float32)
    wrong = ~np.isfinite(rows).all(axis=1)
    if wrong.any():
        raise ValueError(f"row {wrong.argmax()} (from 0) holds a NaN or an infinite number")
    return Vectors(rows, names)


def _tensor(path: Path, tensor: str | None) -> npt.NDArray[Any]:
    """A table of a safetensors file, of a folder's, or of the shards that an index lists."""
    if path.is_dir():
        path = path / INDEX if (path / INDEX).exists() else path / "model.safetensors"
    files = [path]
    if path.suffix.lower() == ".json":
        shards = json.loads(path.read_bytes())["weight_map"].values()
        files = [path.parent / name for name in shards]
    found: dict[str, tuple[Path, int, Any]] = {}
    for file in dict.fromkeys(files):
        with file.open("rb") as opened:
            size = int.from_bytes(opened.read(8), "little")
            if size > file.stat().st_size:
                raise ValueError(f"{file.name} is no safetensors file, or only a part of one")
            header = json.loads(opened.read(size))
        found |= {name: (file, 8 + size, one) for name, one in header.items() if "shape" in one}
    tables = [name for name, (_, _, one) in found.items() if len(one["shape"]) == 2]
    if tensor is None and len(tables) == 1:
        tensor = tables[0]
    if tensor not in tables:
        said = "has several tables" if tensor is None else f"has no table '{tensor}'"
        raise ValueError(f"{said}; give tensor: one of {', '.join(tables) or 'none'}")
    file, start, one = found[tensor]
    if one["dtype"] not in TYPES:
        raise ValueError(f"{tensor} is of type {one['dtype']}; give {', '.join(TYPES)}")
    first, last = one["data_offsets"]
    kind = np.dtype(TYPES[one["dtype"]])
    values = np.fromfile(file, kind, (last - first) // kind.itemsize, offset=start + first)
    if one["dtype"] == "BF16":
        values = (values.astype(np.uint32) << 16).view(np.float32)
    return values.reshape(one["shape"])


def _of_parquet(path: Path) -> tuple[npt.NDArray[Any], list[str] | None]:
    """Columns of numbers, or one of lists; a column of text, or of whole numbers beside others,
    has the names."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    kinds = {name: table.schema.field(name).type for name in table.column_names}
    lists = [x for x in kinds if pa.types.is_nested(kinds[x])]
    floats = [x for x in kinds if pa.types.is_floating(kinds[x])]
    whole = [x for x in kinds if pa.types.is_integer(kinds[x])]
    others = [x for x in kinds if x not in (*lists, *floats, *whole)]
    if not others and (lists or floats) and len(whole) == 1:
        others, whole = whole, []
    values = lists or [x for x in kinds if x in (*floats, *whole)]
    if len(lists) > 1 or (lists and (floats or whole)) or len(others) > 1 or not values:
        raise ValueError(
            f"its columns are {', '.join(f'{x} ({kinds[x]})' for x in kinds)[:200]}; give numbers, "
            "or one column of lists, and at most one of names"
        )
    if any(table[x].null_count for x in (*values, *others)):
        raise ValueError("an entry is missing")
    if lists:
        rows = np.array(table[lists[0]].to_pylist(), dtype=np.float64)
    else:
        rows = np.column_stack([table[name].to_numpy() for name in values])
    names = [str(one) for one in table[others[0]].to_pylist()] if others else None
    return rows, names


def _of_text(lines: Sequence[str]) -> tuple[npt.NDArray[Any], list[str] | None]:
    """CSV with or without a heading, GloVe or word2vec: numbers, and in front of them a name.

    Among blanks a name may have blanks too, and word2vec begins with its sizes.
    """
    if not lines:
        raise ValueError("holds no vectors")
    sign = next((one for one in "\t;," if all(one in line for line in lines)), None)
    ends = (line.rsplit(",", 1)[-1].strip() for line in lines[1:])
    if sign is not None and (sign != "," or all(map(_is_real, ends))):
        cells = [[one.strip() for one in row] for row in csv.reader(lines, delimiter=sign)]
        is_headed = _is_heading(cells[0])
        return _named(cells[is_headed:], cells[0][0] if is_headed else None)
    rows = [line.split() for line in lines]
    rows = rows[1:] if rows[0][0] == "#" else rows  # numpy's heading
    sizes, width = rows[0], min(map(len, rows[1:] or rows)) - 1
    if len(sizes) == 2 and width > 1 and all(map(WHOLE.fullmatch, sizes)):
        rows, width = rows[1:], int(sizes[1])
        if len(rows) != int(sizes[0]):
            raise ValueError(f"its first line says {sizes[0]} vectors, and it has {len(rows)}")
        is_named: str | None = ""
    else:
        width, is_named = min(width, len(sizes) - 1), None
        for at, row in enumerate(rows):
            extra = row[:-width] if len(row) > width + 1 else []
            if any(NUMBER.fullmatch(one) and not WHOLE.fullmatch(one) for one in extra):
                raise ValueError(f"row {at} (from 0) has {len(row)} entries, another {width + 1}")
    return _named([[" ".join(row[:-width]), *row[-width:]] for row in rows], is_named)


def _is_heading(first: Sequence[str]) -> bool:
    """Whether a first line heads numbers: another of its entries than the first is a word, or they
    count from 0 or 1, perhaps behind a word."""
    counted = [*first] if WHOLE.fullmatch(first[0]) else [*first[1:]]
    counts = ([str(at + start) for at in range(len(counted))] for start in (0, 1))
    return any(one and not _is_real(one) for one in first[1:]) or counted in counts


def _named(
    rows: Sequence[Sequence[str]], heading: str | None
) -> tuple[npt.NDArray[Any], list[str] | None]:
    """The numbers of rows of text, and the names in their first column if it has them.

    It has if an entry of it is no number, or if it has whole numbers, each once, beside numbers
    with a point, or if its heading says so.
    """
    if not rows:
        raise ValueError("holds no vectors")
    width = len(rows[0])
    for at, row in enumerate(rows):
        if len(row) != width:
            raise ValueError(f"row {at} (from 0) has {len(row)} entries, and the first {width}")
    column = [row[0] for row in rows]
    are_whole = all(map(WHOLE.fullmatch, column)) and len(set(column)) == len(column)
    beside = any("." in entry for row in rows for entry in row[1:])
    is_said = heading is not None and heading.lower().replace("unnamed: 0", "") in NAMED
    if is_said or not all(map(NUMBER.fullmatch, column)) or (are_whole and beside and width > 1):
        return _numbers([row[1:] for row in rows]), column
    return _numbers(rows), None


def _numbers(rows: Sequence[Sequence[str]]) -> npt.NDArray[np.float64]:
    """The numbers of rows of text; NaN where one is ``nan``."""
    try:
        return np.array(rows, dtype=np.float64)
    except ValueError:
        at, entry = next(
            (at, one) for at, row in enumerate(rows) for one in row if not _is_real(one)
        )
        raise ValueError(f"row {at} (from 0) has '{entry[:60]}', which is no number") from None


def _is_real(text: str) -> bool:
    return re.fullmatch(f"{NUMBER.pattern}|[-+]?(nan|inf|infinity)", text, re.I) is not None


def read_names(path: Path) -> list[str]:
    """The names in a file of text, one a line."""
    lines = path.read_bytes().decode("utf-8-sig").splitlines()
    return [line.strip() for line in lines]


def read_row_numbers(path: Path) -> list[int]:
    """The row numbers, from 0, in a ``.npy`` file or in a file of text, one a line.

    Raises:
        ValueError: they are no whole numbers.
    """
    if path.suffix.lower() == ".npy":
        numbers = np.load(path, allow_pickle=False)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
            raise ValueError(f"holds {numbers.dtype} of shape {numbers.shape}; give whole numbers")
        return [int(one) for one in numbers]
    lines = [line.strip() for line in text_lines(path)]
    wrong = next((one for one in lines if not WHOLE.fullmatch(one)), None)
    if wrong is not None:
        raise ValueError(f"a line is '{wrong[:60]}'; give one row number a line, from 0")
    return [int(one) for one in lines]


def rows_of_items(
    found: Vectors, items: Sequence[str] | None, m: int, rows: Sequence[int] | None
) -> list[int]:
    """The row of each of the m items.

    Args:
        items: the items' names, if an edge list has them: they take the rows of their names.
        rows: the rows to take, in order; the first m by default.

    Raises:
        ValueError: an item has no row.
    """
    if items is not None and (found.names is not None or items != [str(i) for i in range(m)]):
        if found.names is None:
            raise ValueError("has no names for the items of graph.file; give names: a file of them")
        if rows is not None:
            raise ValueError("rows: items have their vectors by name; leave it out")
        place = {name: at for at, name in enumerate(found.names)}
        missing = [name for name in items if name not in place]
        if missing:
            shown = ", ".join(f"'{name[:40]}'" for name in missing[:3])
            raise ValueError(f"{len(missing)} items have no vector by their name: {shown}")
        times = Counter(found.names)
        twice = next((name for name in items if times[name] > 1), None)
        if twice is not None:
            raise ValueError(f"{times[twice]} rows have the name '{twice[:40]}'")
        if len(items) < m:
            raise ValueError(f"m = {m}, and graph.file names {len(items)} items; leave m out")
        return [place[name] for name in items]
    listed = list(range(len(found.rows))) if rows is None else list(rows)
    if len(listed) < m:
        raise ValueError(f"has {len(listed)} rows, and m = {m} items need as many")
    chosen = listed[:m]
    if len(set(chosen)) < m or not all(0 <= at < len(found.rows) for at in chosen):
        raise ValueError(f"rows: gives a row twice, or one that is not 0 to {len(found.rows) - 1}")
    return chosen


def prepared(rows: Rows, m: int, centre: bool, whiten: bool, normalise: bool) -> Rows:
    """The rows as a study asks for them: centred, whitened, at unit length, in this order.

    Means and directions are those of the first m rows; a NULL after them is treated alike.

    Args:
        rows: [m, width], or [m + 1, width] with NULL.
        whiten: multiply by (XᵀX / m)^(-1/2), without taking a mean away.

    Raises:
        ValueError: m rows do not span all directions, or one has no length.
    """
    made = rows.astype(np.float64)
    if centre:
        made -= made[:m].mean(axis=0)
    if whiten:
        _, sizes, ways = np.linalg.svd(made[:m], full_matrices=False)
        if len(sizes) < rows.shape[1] or sizes[-1] < 1e-6 * sizes[0]:
            raise ValueError(
                f"whiten: {m} rows do not span {rows.shape[1]} dimensions; give more items, or "
                "leave it out"
            )
        made = made @ (ways.T / sizes * np.sqrt(m)) @ ways
    if normalise:
        lengths = np.linalg.norm(made, axis=1, keepdims=True)
        if not lengths.all():
            raise ValueError(f"normalise: row {int(lengths.argmin())} of the items is zero")
        made /= lengths
    return made.astype(np.float32)
