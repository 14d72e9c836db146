"""What a run of facts starts from: its triples, the order of its batches, its initial weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rgr_dist.problem.databases import Int32Array, sample_triples
from rgr_dist.problem.streams import Stream
from rgr_dist.study.cell import Cell
from rgr_dist.study.database import Database
from rgr_dist.study.run import Run

Arrays = dict[str, npt.NDArray[np.float64]]


@dataclass(frozen=True)
class FactsTask:
    """The problem of one (cell, seed): the same at every head count and width.

    Attributes:
        triples: key, query, value, int32 [|D|, 3], sorted.
    """

    cell: Cell
    seed: int
    triples: Int32Array

    @classmethod
    def of(cls, cell: Cell, seed: int) -> FactsTask:
        """Draw the database of a seed.

        Raises:
            AssetError: the triples of a file have not been loaded in this process.
        """
        return cls(cell, seed, sample_triples(database_of(cell), cell.problem_json, seed))

    @property
    def shape(self) -> tuple[int, int, int]:
        """|K|, |Q|, |V|."""
        database = database_of(self.cell)
        return database.keys, database.queries, database.values

    @property
    def batches_per_epoch(self) -> int:
        """Steps in which every triple is seen once; the last batch may be smaller."""
        return -(-len(self.triples) // (self.cell.training.batch_size or len(self.triples)))

    def epoch(self, index: int) -> Int32Array:
        """The triples in the order in which an epoch's batches take them, [|D|, 3].

        They are sorted if one batch holds them all; otherwise they are shuffled anew in each epoch.
        """
        if self.batches_per_epoch == 1:
            return self.triples
        stream = Stream.of(self.cell.problem_json, f"epoch {index}", self.seed)
        return self.triples[stream.permutation(len(self.triples))]

    def batch(self, step: int) -> Int32Array:
        """The triples of a training step, int32 [b, 3]."""
        epoch, part = divmod(step, self.batches_per_epoch)
        size = self.cell.training.batch_size or len(self.triples)
        return self.epoch(epoch)[part * size : (part + 1) * size]


def database_of(cell: Cell) -> Database:
    """The database of a cell of facts."""
    assert cell.database is not None
    return cell.database


def initial_facts(run: Run) -> Arrays:
    """The layer's parameters at the start, by name (``models.facts``), float64.

    Entries are normal. Those of the embeddings X_K and X_Q have the deviation
    ``facts.embedding_scale``, those of the unembedding U 1/sqrt(d_model), and the weights of the
    layer 1/sqrt(inputs) times ``training.initial_scale``. A head's columns of W_Q, W_K and W_V and
    its rows of W_O come from the stream in order, so that a wider layer begins with the narrower
    one's, up to the scale of W_O.
    """
    cell = run.cell
    database = database_of(cell)
    d, scale = cell.d_model, cell.training.initial_scale
    embedded = cell.facts.embedding_scale
    assert run.d_vo is not None

    def draw(name: str, rows: int, columns: int, deviation: float) -> npt.NDArray[np.float64]:
        stream = Stream.of(cell.problem_json, f"facts {name}", run.seed)
        drawn: npt.NDArray[np.float64] = stream.normals(rows, columns)
        return deviation * drawn

    def columns(name: str, count: int) -> npt.NDArray[np.float64]:
        return np.ascontiguousarray(draw(name, count, d, scale / np.sqrt(d)).T)

    D_V = run.h * run.d_vo
    return {
        "X_K": draw("X_K", database.keys, d, embedded),
        "X_Q": draw("X_Q", database.queries, d, embedded),
        "W_Q": columns("W_Q", run.D_K),
        "W_K": columns("W_K", run.D_K),
        "W_V": columns("W_V", D_V),
        "W_O": draw("W_O", D_V, d, scale / np.sqrt(D_V)),
        "U": np.ascontiguousarray(draw("U", database.values, d, 1 / np.sqrt(d)).T),
    }


def trained_names(cell: Cell) -> tuple[str, ...]:
    """The parameters that are trained; the others keep their initial values."""
    embedding = ("X_K", "X_Q") if cell.facts.train_embedding else ()
    unembedding = ("U",) if cell.facts.train_unembedding else ()
    return (*embedding, "W_Q", "W_K", "W_V", "W_O", *unembedding)
