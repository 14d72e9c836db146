"""Arrays that a study loads from files, such as an edge list or an embedding table.

A cell names an array by nothing but the digest of its content. The driver adds the arrays as it
reads the study file; workers receive them along with the cell. What a digest stands for never
changes, so it does not matter which process added the array, or when.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rgr_dist.study.cell import Cell

Array = npt.NDArray[Any]

_ARRAYS: dict[str, Array] = {}


class AssetError(LookupError):
    """An array that a cell needs has not been loaded in this process."""


def add(array: Array) -> str:
    """Keep an array for this process, read-only; returns its digest.

    Returns:
        SHA-256 of its type, shape and content, 64 hex digits.

    Raises:
        TypeError: its content is Python objects, which have no bytes of their own.
    """
    kept = np.array(array, order="C")
    if kept.dtype.hasobject:
        raise TypeError(f"an array of {kept.dtype} has no content of its own; give numbers")
    kept = kept.astype(kept.dtype.newbyteorder("<"), copy=False)
    kept.flags.writeable = False
    digest = hashlib.sha256(f"{kept.dtype.str}{kept.shape}".encode())
    digest.update(kept.tobytes())
    _ARRAYS.setdefault(digest.hexdigest(), kept)
    return digest.hexdigest()


def get(digest: str) -> Array:
    """The array with the given digest, read-only.

    Raises:
        AssetError: this process does not have it.
    """
    if digest not in _ARRAYS:
        raise AssetError(
            f"the array {digest[:12]} is not loaded: read the study file that brings it, "
            "or hand it over with the cell"
        )
    return _ARRAYS[digest]


def needed(cells: Iterable[Cell]) -> dict[str, Array]:
    """The arrays that some cells need, by digest, to be sent to the process that trains them.

    Raises:
        AssetError: one of the arrays is not loaded here.
    """
    return {digest: get(digest) for cell in cells for digest in cell.assets}


def take(arrays: Mapping[str, Array]) -> None:
    """Keep the arrays that another process has sent (``needed``)."""
    _ARRAYS.update(arrays)
