"""Vectors that a study names by a file, one a row, and how they meet the items of a study."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rgr_dist.study.tables import NUMBER, WHOLE, sign_of, text_lines

Rows = npt.NDArray[np.float32]

INDEX = "model.safetensors.index.json"
NAMED = ("", "id", "ids", "index", "idx", "name", "token", "word", "item", "node", "label", "key")
"""Headings of a first column that names the rows."""


class Vectors(NamedTuple):
    """The vectors of a file, float32 [n, width], all finite, and the names of its rows, if any."""

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
    rows: Any
    if kind in (".safetensors", ".json") or path.is_dir():
        rows = _tensor(path, tensor)
    elif tensor is not None:
        raise ValueError(f"tensor: '{tensor}' is for safetensors files; leave it out")
    elif kind == ".npy":
        rows = np.load(path, allow_pickle=False)
    elif kind == ".parquet":
        rows, names = _of_parquet(path)
    else:
        rows, names = _of_text(text_lines(path))
    if rows.dtype.kind not in "fiu" or rows.ndim != 2 or not rows.size:
        raise ValueError(f"holds {rows.dtype} of shape {rows.shape}; give one row a vector")
    with np.errstate(over="ignore"):  # what float32 cannot hold is then infinite
        rows = rows.astype(np.float32)
    wrong = ~np.isfinite(rows).all(axis=1)
    if wrong.any():
        raise ValueError(f"row {wrong.argmax()} (from 0) holds a NaN or an infinite number")
    return Vectors(rows, names)


def _tensor(path: Path, tensor: str | None) -> npt.NDArray[Any]:
    """A table of a safetensors file, of a folder's, or of the shards that an index lists."""
    from safetensors import safe_open

    if path.is_dir():
        path = path / INDEX if (path / INDEX).exists() else path / "model.safetensors"
    files = {path}
    if path.suffix.lower() == ".json":
        files = {
            path.parent / name for name in json.loads(path.read_bytes())["weight_map"].values()
        }
    tables: dict[str, tuple[Path, str]] = {}
    for file in files:
        with safe_open(file, "np") as opened:
            found = {name: opened.get_slice(name) for name in opened.keys()}  # noqa: SIM118
            tables |= {
                name: (file, one.get_dtype())
                for name, one in found.items()
                if len(one.get_shape()) == 2
            }
    if tensor is None and len(tables) == 1:
        (tensor,) = tables
    if tensor not in tables:
        said = "has several tables" if tensor is None else f"has no table '{tensor}'"
        raise ValueError(f"{said}; give tensor: one of {', '.join(sorted(tables)) or 'none'}")
    file, kind = tables[tensor]
    if kind == "BF16":  # which numpy does not have
        with safe_open(file, "pt") as opened:
            return np.asarray(opened.get_tensor(tensor).float())
    with safe_open(file, "np") as opened:
        return np.asarray(opened.get_tensor(tensor))


def _of_parquet(path: Path) -> tuple[npt.NDArray[Any], list[str] | None]:
    """One column of lists, or columns of numbers; a column of text, or of whole numbers beside
    others, has the names."""
    import pandas as pd

    frame = pd.read_parquet(path)
    frame = frame if isinstance(frame.index, pd.RangeIndex) else frame.reset_index()
    lists = [x for x in frame if isinstance(frame[x].iat[0], np.ndarray)]
    floats, whole = ([x for x in frame if frame[x].dtype.kind in kinds] for kinds in ("f", "iu"))
    values = lists or floats or whole
    named = [x for x in frame if x not in values]
    if not values or len(lists) > 1 or len(named) > 1:
        raise ValueError(
            f"its columns are {', '.join(map(str, frame))[:200]}; give numbers, or one column of "
            "lists, and at most one of names"
        )
    rows = np.stack([*frame[lists[0]]]) if lists else frame[values].to_numpy()
    return rows, [str(one) for one in frame[named[0]]] if named else None


def _of_text(lines: list[str]) -> tuple[npt.NDArray[Any], list[str] | None]:
    """CSV with or without a heading, GloVe or word2vec: numbers, and in front of them a name.

    Among blanks a name may have blanks too, and word2vec begins with its sizes. A first column has
    names if an entry of it is no number, or if it has whole numbers, each once, beside numbers with
    a point, or if its heading says so.
    """
    sign, count = sign_of(lines), None
    sizes = lines[0].split() if lines else []
    if len(sizes) == 2 < len(lines[-1].split()) and all(map(WHOLE.fullmatch, sizes)):
        count, lines = int(sizes[0]), lines[1:]
        if count != len(lines):
            raise ValueError(f"its first line says {count} vectors, and it has {len(lines)}")
    if sign == " ":
        widths = Counter(len(line.split()) for line in lines[:100])
        width = int(sizes[1]) if count else widths.most_common(1)[0][0] - 1
        rows: Iterable[list[str]] = (line.rsplit(maxsplit=width) for line in lines)
    else:
        rows = csv.reader(lines, delimiter=sign)
    heading: str | None = "" if count else None
    column: list[str] = []
    numbers: list[npt.NDArray[np.float64]] = []
    for at, row in enumerate(rows):
        if at == 0 and count is None and _is_heading(row, sign):
            heading = row[0].strip()
            continue
        if numbers and len(row) != len(numbers[0]) + 1:
            width = len(numbers[0]) + 1
            raise ValueError(f"row {len(numbers)} has {len(row)} entries, the first {width}")
        column.append(row[0].strip())
        try:
            numbers.append(np.array(row[1:], dtype=np.float64))
        except ValueError as error:
            raise ValueError(f"row {len(numbers)} (from 0): {error}") from None
    if not numbers:
        raise ValueError("holds no vectors")
    table = np.array(numbers)
    are_whole = all(map(WHOLE.fullmatch, column)) and len(set(column)) == len(column)
    is_said = heading is not None and heading.lower().replace("unnamed: 0", "") in NAMED
    beside = (table != np.floor(table)).any()
    if is_said or not all(map(_is_real, column)) or (are_whole and beside and table.shape[1] > 1):
        return table, column
    return np.column_stack([np.array(column, dtype=np.float64), table]), None


def _is_heading(row: Sequence[str], sign: str) -> bool:
    """Whether a first row heads numbers: another of its entries than the first is a word, or they
    count from 0 or 1 as pandas' columns do, perhaps behind a word."""
    counted = row if WHOLE.fullmatch(row[0]) else row[1:]
    counts = ([str(at + start) for at in range(len(counted))] for start in (0, 1))
    return any(one and not _is_real(one) for one in row[1:]) or (
        sign != " " and [*counted] in counts
    )


def _is_real(text: str) -> bool:
    return bool(NUMBER.fullmatch(text.strip())) or text.strip().lower().lstrip("+-") in (
        "nan",
        "inf",
    )


def read_row_numbers(path: Path) -> list[int]:
    """The row numbers, from 0, in a ``.npy`` file or in a file of text, one a line."""
    found = np.load(path) if path.suffix.lower() == ".npy" else np.loadtxt(path, dtype=np.int64)
    return [int(one) for one in np.atleast_1d(found)]


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
        if rows is not None or len(items) < m:
            raise ValueError(f"gives {len(items)} items their rows by name; leave rows and m out")
        place = {name: at for at, name in enumerate(found.names)}
        missing = [name for name in items if name not in place]
        if missing:
            shown = ", ".join(f"'{name[:40]}'" for name in missing[:3])
            raise ValueError(f"{len(missing)} items have no vector by their name: {shown}")
        times = Counter(found.names)
        twice = next((name for name in items if times[name] > 1), None)
        if twice is not None:
            raise ValueError(f"{times[twice]} rows have the name '{twice[:40]}'")
        return [place[name] for name in items]
    chosen = list(range(len(found.rows)) if rows is None else rows)[:m]
    if len(chosen) < m:
        raise ValueError(f"has {len(chosen)} rows, and m = {m} items need as many")
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
