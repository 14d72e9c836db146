"""What a study says of the files that it names, and loads: edges, vectors, triples."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import Field, StrictBool, StrictInt, StrictStr

from rgr_dist.study import assets
from rgr_dist.study.edges import read_edges, read_triples
from rgr_dist.study.errors import reading
from rgr_dist.study.spec import Spec
from rgr_dist.study.tables import Row
from rgr_dist.study.vectors import Vectors, prepared, read_row_numbers, read_vectors, rows_of_items

FileName = Annotated[StrictStr, Field(min_length=1)]


class Loaded(NamedTuple):
    """What a file holds: the keys of the part of a cell that it becomes, what was read in words,
    and the names of the items of an edge list."""

    keys: dict[str, Any]
    told: str
    names: list[str]


class EdgesFile(Spec):
    """The edges of a file, the same at every seed.

    Attributes:
        file: CSV, text or Parquet with a column for each end; GML, GraphML or Pajek where networkx
            is installed. Its path is relative to the study file. A list makes a cell for each.
        heading: whether the first line is one; say so if that is refused as unclear.
        undirected: whether every edge also goes the other way.
    """

    family: Literal["edges"]
    file: FileName
    heading: StrictBool | None = None
    undirected: StrictBool = False

    def load(self, home: Path) -> Loaded:
        """Keep the edges for this process."""
        found = read_edges(home / self.file, self.heading, self.undirected)
        keys = {
            "family": "edges",
            "digest": assets.add(found.edges),
            "edges": len(found.edges),
            "degree": int(np.unique(found.edges[:, 0], return_counts=True)[1].max()),
            "items": len(found.names),
        }
        return Loaded(keys, found.told, found.names)


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
        """Keep the triples for this process."""
        found = read_triples(home / self.file, self.heading, self.several == "first")
        sizes = [int(largest) + 1 for largest in found.triples.max(axis=0)]
        keys = {
            "family": "file",
            "digest": assets.add(found.triples),
            **dict(zip(("keys", "queries", "values"), sizes, strict=True)),
            "triples": len(found.triples),
        }
        return Loaded(keys, found.told, [])


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

    def load(
        self, home: Path, tables: Tables, m: int, d_model: int, items: Row | None, has_null: bool
    ) -> Loaded:
        """Keep the rows of m items for this process, and NULL's after them.

        Args:
            tables: what was read before; what is read now is added.
            items: the names of an edge list's items.

        Raises:
            StudyError, ValueError: the width is another, or an item has no row.
        """
        if self not in tables:
            tables[self] = self._read(home)
        found, listed = tables[self]
        count, width = found.rows.shape
        if self.null_row is not None and not has_null:
            raise ValueError("null_row: only for model transformer; leave it out")
        if width != d_model:
            raise ValueError(f"its vectors have {width} numbers; give that d_model")
        chosen = rows_of_items(found, items, m, listed)
        if has_null:
            null = count - 1 if self.null_row is None else self.null_row
            if null >= count or null in chosen:
                raise ValueError(
                    f"null_row: {null} is the row of an item, or beyond the last, {count - 1}; "
                    "give another, or a smaller m"
                )
            chosen = [*chosen, null]
        rows = prepared(found.rows[chosen], m, self.centre, self.whiten, self.normalise)
        keys: dict[str, Any] = {"family": "vectors", "digest": assets.add(rows)}
        if self.shuffle:
            keys["shuffle"] = True
        return Loaded(keys, f"{count} vectors", [])

    def _read(self, home: Path) -> tuple[Vectors, list[int] | None]:
        """The table with its names, and the rows that are listed, if any."""
        found = read_vectors(home / self.file, self.tensor)
        if self.names is not None:
            with reading(home / self.names):
                names = (home / self.names).read_text("utf-8-sig").splitlines()
                if len(names) != len(found.rows):
                    raise ValueError(f"has {len(names)} names for {len(found.rows)} rows")
            found = found._replace(names=[name.strip() for name in names])
        if self.rows is None:
            return found, None
        with reading(home / self.rows):
            return found, read_row_numbers(home / self.rows)


Tables = dict[VectorsFile, tuple[Vectors, list[int] | None]]
"""What was read of files of vectors, with the rows that are listed."""
