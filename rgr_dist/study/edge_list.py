"""Loads user-supplied edge lists: two columns, sources and targets, as text, CSV or Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rgr_dist.study import assets
from rgr_dist.study.input_file import LIST, FileKeys, opened, read_pairs
from rgr_dist.study.spec import LARGEST_COUNT

COLUMNS = (
    "an edge list has two columns of whole numbers, the source and the target of each edge, "
    "separated by a comma, spaces or tabs"
)


class EdgesFile(FileKeys):
    """The edges of a file, the same at every seed.

    Attributes:
        file: an edge list; its path is relative to the study file.
    """

    family: Literal["edges"]


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
    """The edges of a file (``read_pairs``), int32 [m', 2], sorted by source and target.

    Any directed graph is valid: an item may have any number of out- and in-neighbours, including
    none, and self-loops are allowed. Each edge is listed once.

    Raises:
        StudyError: the file cannot be read or is not an edge list.
    """
    with opened(path, COLUMNS, LIST) as file:
        edges, times = np.unique(read_pairs(file, path.suffix), axis=0, return_counts=True)
        if len(edges) == 0:
            raise ValueError("it holds no edges")
        for item in (int(edges.min()), int(edges.max())):
            if not 0 <= item < LARGEST_COUNT:
                raise ValueError(f"item {item} is out of range; items are numbered from 0")
        if times.max() > 1:
            source, target = edges[times.argmax()]
            raise ValueError(f"the edge {source} {target} is listed twice")
        return edges.astype(np.int32)
