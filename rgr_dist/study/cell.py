"""What is measured: a cell, whose defaults are the paper's values (Sec. 6 and App. A.1)."""

from __future__ import annotations

import json
from functools import cached_property
from pkgutil import resolve_name
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator

from rgr_dist.paper import capacity_scale
from rgr_dist.study.address import canonical_json, cell_address, run_json
from rgr_dist.study.construction import Construction
from rgr_dist.study.families import Edges, Embedding, Gaussian, Graph, Permutation
from rgr_dist.study.layer import Layer
from rgr_dist.study.models import MODELS, Model, ModelName
from rgr_dist.study.spec import Count, Spec
from rgr_dist.study.training import Context, Training


class Cell(Spec):
    """One point of the law: a model variant on a graph family with m items and d_model.

    A model with a room of its own has cells of its own class (``cell_type``).

    Attributes:
        problem: the keys that its task depends on: none of the training.
    """

    later: ClassVar[frozenset[str]] = frozenset({"construction", "layer"})
    problem: ClassVar[tuple[str, ...]] = ("graph", "m", "d_model", "embedding", "context")

    model: ModelName = "max"
    graph: Graph = Permutation()
    m: Annotated[Count, Field(ge=2, le=2**24)]  # item numbers are exact in float32
    d_model: Count
    embedding: Embedding = Gaussian()
    context: Context = Context()
    training: Training = Training()
    construction: Construction = Construction()
    layer: Layer | None = None

    @model_validator(mode="after")
    def _suits_its_model(self) -> Self:
        record = self.record
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
        self.check_items()
        return self

    def check_items(self) -> None:
        """Raise ValueError, naming the key, if its graph or contexts are not of its m items."""
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

    def canonical(self) -> Self:
        """The same science, at one address: keys are left out where that means the same.

        Stored cells are read as they are, so that each keeps the address that it was stored at.
        """
        return self

    def with_limit(self, max_steps: int) -> Self:
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
        """Number of relations m'."""
        return self.graph.n_edges(self.m)

    @property
    def family(self) -> str:
        """The family of its graph."""
        return self.graph.family

    @property
    def assets(self) -> tuple[str, ...]:
        """Digests of what its parts load from files, such as its graph."""
        parts = (getattr(self, name) for name in type(self).model_fields)
        digests = (getattr(part, "digest", None) for part in parts)
        return tuple(digest for digest in digests if digest is not None)

    @property
    def name(self) -> str:
        """The cell's name on the command line: ``m=64,d_model=16``, or with ``,degree=4``.

        A graph from a file is named by its number of edges, ``,edges=300``.
        """
        sizes = f"m={self.m},d_model={self.d_model}"
        if isinstance(self.graph, Edges):
            return f"{sizes},edges={self.graph.edges}"
        return sizes if self.graph.degree == 1 else f"{sizes},degree={self.graph.degree}"

    @property
    def problem_json(self) -> str:
        """Canonical JSON of what the random streams are keyed by: the task without the training."""
        return canonical_json(self.model_dump(include=set(self.problem)))

    @cached_property
    def config_json(self) -> str:
        """Canonical JSON of its science configuration: the part that its runs share."""
        return canonical_json(self.model_dump())

    @property
    def scale(self) -> float:
        """m' log₂ m / d_model: what D_K grows with (Sec. 6.1)."""
        return capacity_scale(self.m, self.d_model, self.n_edges)

    def step_cost(self, D_K: float) -> float:
        """Multiply-adds of a training step, where a model's room says what they are."""
        raise NotImplementedError

    @property
    def own_keys(self) -> dict[str, Any]:
        """Further keys, besides those of training, in which cells of one size can differ."""
        rows = {f"embedding.{key}": value for key, value in dict(self.embedding).items()}
        rows.pop("embedding.digest", None)
        return {"graph.family": self.graph.family, **rows}

    def run_json(self, h: int, d_k: int, seed: int) -> str:
        """Canonical JSON of everything that the numbers of a run depend on."""
        return run_json(self.config_json, {"h": h, "d_k": d_k, "seed": seed})

    @cached_property
    def cell_id(self) -> str:
        """Address of the cell: hash of its science configuration and the protocol version."""
        return cell_address(self.config_json)


def cell_type(model: str) -> type[Cell]:
    """The class of a model's cells."""
    room = MODELS[model].room
    found: type[Cell] = Cell if room is None else resolve_name(room.cell)
    return found


def read_cell(text: str) -> Cell:
    """A cell from its JSON."""
    return cell_type(json.loads(text)["model"]).model_validate_json(text)
