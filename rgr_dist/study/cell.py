"""What is measured: a cell, whose defaults are the paper's values (Sec. 6 and App. A.1)."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator

from rgr_dist.study.address import canonical_json, cell_address
from rgr_dist.study.construction import Construction
from rgr_dist.study.database import Database, Facts
from rgr_dist.study.families import Edges, Embedding, Gaussian, Graph, Permutation
from rgr_dist.study.layer import HOW, Layer
from rgr_dist.study.models import MODELS, Model, ModelName
from rgr_dist.study.spec import Count, Spec, at_most
from rgr_dist.study.training import Context, Training

PROBLEM = ("graph", "m", "d_model", "embedding", "context", "database")
"""Keys of a cell that its task depends on: none of the training."""
NEEDS_DATABASE = "needs one, such as {family: function, keys: 64, queries: 8, values: 64}"


class Cell(Spec):
    """One point of the law: a model variant on a graph family with m items and d_model.

    For model facts, a database takes the place of the graph, and m is the number of its triples.
    """

    later: ClassVar[frozenset[str]] = frozenset({"construction", "database", "facts", "layer"})

    model: ModelName = "max"
    graph: Graph = Permutation()
    m: Annotated[Count, Field(ge=2, le=2**24)]  # item numbers are exact in float32
    d_model: Count
    embedding: Embedding = Gaussian()
    context: Context = Context()
    training: Training = Training()
    construction: Construction = Construction()
    database: Database | None = None
    facts: Facts = Facts()
    layer: Layer | None = None

    @model_validator(mode="after")
    def _uses_its_keys(self) -> Self:
        record = self.record
        unused = (*record.unused_parts, *record.unused_keys)
        self.leaves_out(unused, f"model {self.model} does not use it")
        if record.task == "own layer" and self.layer is None:
            raise ValueError(f"model: 'file' is no name; {HOW}")
        for name in record.training:
            if getattr(self.training, name) is None:
                raise ValueError(f"training.{name}: missing; model {self.model} needs a number")
        if record.one_target and self.graph.family != "permutation":
            raise ValueError(
                f"graph.family: model {self.model} has one target to each item; "
                "give permutation, or leave it out"
            )
        if record.embedding not in (None, self.embedding.family):
            raise ValueError(
                f"embedding.family: {self.embedding.family} is not valid; "
                f"model {self.model} takes {record.embedding}"
            )
        return self

    @model_validator(mode="after")
    def _has_its_items(self) -> Self:
        if self.record.holds == "facts":
            self._check_database()
            return self
        length = self.context.length
        items = 2 * length + 1 if self.record.task == "matching" else length
        if items > self.m:
            largest = (self.m - 1) // 2 if self.record.task == "matching" else self.m
            raise ValueError(
                f"context.length: {length} needs {items} distinct items, and cell {self.name} has "
                f"{self.m}; give {f'2 to {largest}' if largest >= 2 else 'a larger m'}"
            )
        self.graph.check(self.m)
        self.embedding.check(self.m, self.d_model)
        return self

    def _check_database(self) -> None:
        if self.database is None:
            raise ValueError(f"database: missing; model {self.model} {NEEDS_DATABASE}")
        if self.m != self.database.n_asked:
            raise ValueError(
                f"m: {self.m} is not valid, since the database has {self.database.n_asked} "
                "triples; leave m out, and they are counted"
            )
        at_most("training.batch_size", self.training.batch_size or 0, self.m, f"for {self.name}")

    def canonical(self) -> Cell:
        """The same science, at one address: keys are left out where that means the same.

        Stored cells are read as they are, so that each keeps the address that it was stored at.
        """
        decay, size = self.training.weight_decay, self.training.batch_size
        if self.record.holds == "facts":
            decay, size = decay or None, None if size == self.m else size
        elif decay is not None:
            decay += 0.0  # no -0.0
        keys = {"weight_decay": decay, "batch_size": size}
        changed: dict[str, Any] = {"training": self.training.model_copy(update=keys)}
        return self.model_copy(update=changed)

    def with_limit(self, max_steps: int) -> Cell:
        """The cell with another step limit."""
        training = self.training.model_copy(update={"max_steps": max_steps})
        return self.model_copy(update={"training": training})

    @property
    def record(self) -> Model:
        """The record that describes the cell's model."""
        return MODELS[self.model]

    @property
    def model_name(self) -> str:
        """The model's name in tables; a layer from a file is named by its class and keys."""
        return self.model if self.layer is None else self.layer.shown

    @property
    def n_edges(self) -> int:
        """Number of relations m', or of triples for model facts."""
        return self.m if self.database is not None else self.graph.n_edges(self.m)

    @property
    def family(self) -> str:
        """The family of its graph, or of its database."""
        return self.graph.family if self.database is None else self.database.family

    @property
    def assets(self) -> tuple[str, ...]:
        """Digests of what its graph, embedding, database and layer load from files."""
        parts = (self.graph, self.embedding, self.database, self.layer)
        digests = (getattr(part, "digest", None) for part in parts)
        return tuple(digest for digest in digests if digest is not None)

    @property
    def name(self) -> str:
        """The cell's name on the command line: ``m=64,d_model=16``, or with ``,degree=4``.

        A graph from a file is named by its number of edges, ``,edges=300``; a cell of facts by the
        number of its triples, ``facts=512,d_model=32``.
        """
        if self.database is not None:
            return f"facts={self.m},d_model={self.d_model}"
        sizes = f"m={self.m},d_model={self.d_model}"
        if isinstance(self.graph, Edges):
            return f"{sizes},edges={self.graph.edges}"
        return sizes if self.graph.degree == 1 else f"{sizes},degree={self.graph.degree}"

    @property
    def problem_json(self) -> str:
        """Canonical JSON of what the random streams are keyed by: the task without the training."""
        return canonical_json(self.model_dump(include=set(PROBLEM)))

    @cached_property
    def config_json(self) -> str:
        """Canonical JSON of its science configuration: the part that its runs share."""
        return canonical_json(self.model_dump())

    @cached_property
    def cell_id(self) -> str:
        """Address of the cell: hash of its science configuration and the protocol version."""
        return cell_address(self.config_json)
