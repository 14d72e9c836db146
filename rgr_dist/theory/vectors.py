"""Reads a file of vectors, one in each row."""

from __future__ import annotations

import io
import warnings
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rgr_dist.study.input_file import LIST, TABLE, as_path, check_size, opened, read_tensor

KINDS = (
    "give a .npy or .safetensors file with a table of numbers (which of several, --tensor says), "
    "or CSV or text"
)


def read_vectors(
    path: Path, tensor: str | None = None, items: int | None = None
) -> npt.NDArray[np.float64]:
    """The vectors of a file, [m, d_model].

    Args:
        tensor: which tensor of a safetensors file; not needed if only one is a table.
        items: how many of the first vectors to return; None for all.

    Raises:
        StudyError: the file cannot be read, or holds no table of finite numbers.
    """
    largest = {".npy": TABLE, ".safetensors": None}.get(path.suffix, LIST)
    with opened(path, KINDS, largest) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a text without numbers
        if path.suffix == ".safetensors":
            table = read_tensor(file, [tensor] if tensor else [])
        elif path.suffix == ".npy":
            table = np.lib.format.open_memmap(as_path(file), mode="r")
        else:
            text = file.read().decode("utf-8-sig")
            table = np.loadtxt(io.StringIO(text), delimiter="," if "," in text else None, ndmin=2)
        table = table[:items]
        check_size(8 * table.size, TABLE)
        is_table = table.ndim == 2 and table.size and table.dtype.kind in "fiu"
        if not is_table or not np.isfinite(table).all():
            raise ValueError("holds no table of finite numbers")
        return np.asarray(table, dtype=np.float64, order="C")
