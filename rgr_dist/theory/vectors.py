"""Reads a file of vectors, one in each row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from rgr_dist.study.errors import StudyError

KINDS = "give a .npy or .safetensors file with a table of numbers, or CSV or text"


def read_vectors(path: Path, tensor: str | None = None) -> npt.NDArray[np.float64]:
    """The vectors of a file, [m, d_model].

    Args:
        tensor: which tensor of a safetensors file; not needed where only one is a table.

    Raises:
        StudyError: the file cannot be read, or holds no table of finite numbers.
    """
    try:
        if path.suffix == ".safetensors":
            table = _of_safetensors(path, tensor)
        elif path.suffix == ".npy":
            table = np.load(path, allow_pickle=False)
        else:
            comma = "," in path.read_text("utf-8")
            table = np.loadtxt(path, delimiter="," if comma else None, ndmin=2)
        values = np.asarray(table, dtype=np.float64)
    except OSError as error:
        raise StudyError(f"{path}: cannot be read: {error.strerror or error}; {KINDS}") from None
    except (ValueError, TypeError) as error:
        raise StudyError(f"{path}: {str(error).splitlines()[0]}; {KINDS}") from None
    if values.ndim != 2 or not values.size or not np.isfinite(values).all():
        raise StudyError(f"{path}: holds no table of finite numbers; {KINDS}")
    return values


def _of_safetensors(path: Path, tensor: str | None) -> npt.NDArray[np.floating]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            tables = [name for name in file.keys() if len(file.get_slice(name).get_shape()) == 2]  # noqa: SIM118
            name = tensor or (tables[0] if len(tables) == 1 else None)
            if name not in tables:
                raise StudyError(
                    f"{path}: --tensor {tensor or '(none)'}: valid are its tables: "
                    f"{', '.join(tables) or 'none'}"
                )
            table: npt.NDArray[np.floating] = file.get_tensor(name)
            return table
    except SafetensorError as error:
        raise StudyError(f"{path}: {error}; {KINDS}") from None
