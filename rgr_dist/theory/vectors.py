"""Reads a file of vectors, one in each row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from rgr_dist.study.input_file import reading

KINDS = "give a .npy or .safetensors file with a table of numbers, or CSV or text"


def read_vectors(path: Path, tensor: str | None = None) -> npt.NDArray[np.float64]:
    """The vectors of a file, [m, d_model].

    Args:
        tensor: which tensor of a safetensors file; not needed where only one is a table.

    Raises:
        StudyError: the file cannot be read, or holds no table of finite numbers.
    """
    with reading(path, KINDS):
        if path.suffix == ".safetensors":
            table = _of_safetensors(path, tensor)
        elif path.suffix == ".npy":
            table = np.load(path)
        else:
            comma = "," in path.read_text("utf-8")
            table = np.loadtxt(path, delimiter="," if comma else None, ndmin=2)
        is_table = table.ndim == 2 and table.size and table.dtype.kind in "fiu"
        if not is_table or not np.isfinite(table).all():
            raise ValueError("holds no table of finite numbers")
        return np.asarray(table, dtype=np.float64)


def _of_safetensors(path: Path, tensor: str | None) -> npt.NDArray[np.floating]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            tables = [name for name in file.keys() if len(file.get_slice(name).get_shape()) == 2]  # noqa: SIM118
            name = tensor or (tables[0] if len(tables) == 1 else None)
            if name not in tables:
                valid = ", ".join(tables) or "none"
                raise ValueError(f"--tensor {tensor or '(none)'}: valid are its tables: {valid}")
            table: npt.NDArray[np.floating] = file.get_tensor(name)
            return table
    except SafetensorError as error:
        raise ValueError(str(error)) from None
