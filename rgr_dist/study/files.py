"""What a study says of the files that it names, and loads: edges, vectors, triples."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import Field, StrictBool, StrictInt, StrictStr

from rgr_dist.study import assets
from rgr_dist.study.edges import read_edges, read_triples
from rgr_dist.study.spec import Spec
from rgr_dist.study.tables import reading
from rgr_dist.study.vectors import (
    Rows,
    prepared,
    read_names,
    read_row_numbers,
    read_vectors,
    rows_of_items,
)

FileName = Annotated[StrictStr, Field(min_length=1)]


class Loaded(NamedTuple):
    """What a file holds, for the cells that name it.

    Attributes:
        keys: of the part of a cell that it becomes.
        told: what was read, in words.
        names: of the items of an edge list.
    """

    keys: dict[str, Any]
    told: str
    names: list[str]


class EdgesFile(Spec):
    """The edges of a file, the same at every seed.

    Attributes:
        file: CSV, text or Parquet with a column for each end; GML, GraphML or Pajek where networkx
            is installed. Its path is relative to the study file.
        heading: whether the first line is one; say so if that is refused as unclear.
        undirected: whether every edge also goes the other way.
    """

    family: Literal["edges"]
    file: FileName
    heading: StrictBool | None = None
    undirected: StrictBool = False

    def load(self, home: Path) -> Loaded:
        """Keep the edges for this process.

        Raises:
            StudyError: the file cannot be read, or is no list of edges.
        """
        path = home / self.file
        with reading(path):
            found = read_edges(path, self.heading, self.undirected)
        keys = {
            "family": "edges",
            "digest": assets.add(found.edges),
            "edges": len(found.edges),
            "degree": int(np.unique(found.edges[:, 0], return_counts=True)[1].max()),
            "items": len(found.names),
        }
        return Loaded(keys, f"{path.name}: {found.told}", found.names)


class TriplesFile(Spec):
    """The triples of a file, the same at every seed.

    Attributes:
        file: text or Parquet of three columns: key, query and value, in this order.
        heading: whether the first line is one; say so if that is refused as unclear.
        several: ``first`` takes the first value of a pair that has several.
    """

    family: Literal["file"]
    file: FileName
    heading: StrictBool | None = None
    several: Literal["first"] | None = None

    def load(self, home: Path) -> Loaded:
        """Keep the triples for this process.

        Raises:
            StudyError: the file cannot be read, or is no list of triples.
        """
        path = home / self.file
        with reading(path):
            found = read_triples(path, self.heading, self.several == "first")
        sizes = [int(largest) + 1 for largest in found.triples.max(axis=0)]
        keys = {
            "family": "file",
            "digest": assets.add(found.triples),
            **dict(zip(("keys", "queries", "values"), sizes, strict=True)),
            "triples": len(found.triples),
        }
        return Loaded(keys, f"{path.name}: {found.told}", [])


class VectorsFile(Spec):
    """The items' vectors from a file.

    Attributes:
        file: ``.npy``, ``.safetensors`` or the index of its shards, Parquet, CSV, GloVe or word2vec
            text. Its path is relative to the study file.
        names: a file with the name of each row, one a line; items of an edge list take the rows of
            their names.
        rows: a file of row numbers, from 0, that the items take in order; the first m by default.
        null_row: for model transformer: the row of NULL; by default the last.
        tensor: the tensor to take, where a file has several.
        centre: take the mean of the cell's rows away.
        whiten: then make the rows' second moments equal in all directions.
        normalise: then scale every row to length 1.
        shuffle: pair rows with items at random for each seed, which tells what the relation does
            from what the geometry does.
    """

    family: Literal["vectors"]
    file: FileName
    names: FileName | None = None
    rows: FileName | None = None
    null_row: Annotated[StrictInt, Field(ge=0)] | None = None
    tensor: StrictStr | None = None
    centre: StrictBool = False
    whiten: StrictBool = False
    normalise: StrictBool = False
    shuffle: StrictBool = False


class VectorTable:
    """A file of vectors, read once, for cells of several sizes.

    Raises:
        StudyError: the file cannot be read, or holds no table of finite numbers.
    """

    def __init__(self, written: VectorsFile, home: Path) -> None:
        self.written, self.path = written, home / written.file
        with reading(self.path):
            self.found = read_vectors(self.path, written.tensor)
        self.listed: list[int] | None = None
        if written.names is not None:
            with reading(home / written.names):
                names = read_names(home / written.names)
                if len(names) != len(self.found.rows):
                    raise ValueError(f"has {len(names)} names for {len(self.found.rows)} rows")
            self.found = self.found._replace(names=names)
        if written.rows is not None:
            with reading(home / written.rows):
                self.listed = read_row_numbers(home / written.rows)

    def load(self, m: int, d_model: int, items: list[str] | None, has_null: bool) -> Loaded:
        """Keep the rows of m items for this process, and NULL's after them.

        Args:
            items: the names of an edge list's items.

        Raises:
            StudyError: the width is another, or an item has no row.
        """
        written, (table, _) = self.written, self.found
        with reading(self.path):
            if written.null_row is not None and not has_null:
                raise ValueError("null_row: only for model transformer; leave it out")
            if table.shape[1] != d_model:
                raise ValueError(f"its vectors have {table.shape[1]} numbers; give that d_model")
            chosen = rows_of_items(self.found, items, m, self.listed)
            if has_null:
                null = len(table) - 1 if written.null_row is None else written.null_row
                if null >= len(table) or null in chosen:
                    raise ValueError(
                        f"null_row: {null} is the row of an item, or beyond the last, "
                        f"{len(table) - 1}; give another, or a smaller m"
                    )
                chosen = [*chosen, null]
            rows: Rows = prepared(
                table[chosen], m, written.centre, written.whiten, written.normalise
            )
        keys: dict[str, Any] = {"family": "vectors", "digest": assets.add(rows)}
        if written.shuffle:
            keys["shuffle"] = True
        return Loaded(keys, f"{self.path.name}: {len(table)} vectors", [])
