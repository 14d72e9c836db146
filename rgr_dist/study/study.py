"""What a study is: what is measured, how it is trained, how it is searched.

Frozen specs whose defaults are the paper's values (Sec. 6 and App. A.1). The canonical
JSON of a ``Run`` is what its identity is made of.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import yaml
from pydantic import Field, StrictInt, model_validator

from rgr_dist.study.construction import Construction
from rgr_dist.study.families import Edges, Embedding, Gaussian, Graph, Permutation
from rgr_dist.study.models import MODELS, Model, ModelName
from rgr_dist.study.spec import Count, Real, Share, Spec

PROTOCOL = 1
"""Version of the training protocol. Raise it when the same study would give other numbers."""


class Context(Spec):
    """How contexts are drawn (App. A.1): length l and target-in-context rate rho."""

    length: Annotated[StrictInt, Field(ge=2)] = 16
    positive_rate: Share = 0.5


class Training(Spec):
    """Optimisation and stopping (App. A.1); steps are contexts of one run.

    ``initial_scale`` multiplies the standard deviation 1/sqrt(d_model) of the first weights.
    The transformer (Sec. 7.3) takes a batch a step, decays its weights and does not stop early.
    Message retrieval stops once its error does not fall: a check is better only if it is below
    the best one by more than ``tolerance`` times that, which the paper does not give (Sec. 7.2).
    """

    later: ClassVar[frozenset[str]] = frozenset(
        {"initial_scale", "batch_size", "weight_decay", "tolerance"}
    )

    learning_rate: Annotated[Real, Field(gt=0, le=1e30)] = 1e-3
    sharpness: Annotated[Real, Field(gt=0, le=1e30)] = 10.0
    initial_scale: Annotated[Real, Field(gt=0, le=1e30)] = 1.0
    max_steps: Count = 20_000
    check_every: Count = 500
    patience: Count = 5
    stop_score: Share = 0.995
    validation_contexts: Count = 500
    test_contexts: Count = 2_000
    batch_size: Count | None = None
    weight_decay: Annotated[Real, Field(ge=0, le=1e30)] | None = None
    tolerance: Share = 0.001


class Search(Spec):
    """Which widths are tried, and what passes.

    ``threshold`` finds the smallest passing d_k of each head count; ``grid`` trains
    every listed D_K that the head count divides.

    Attributes:
        heads: head counts to search; ``all`` searches every integer.
        target: mean score over the seeds to reach; in a study file of model value 0.5 by default.
        keep_within: heads up to this share above the best D_K are searched to the end.
        max_D_K: largest total width; by default 4 m' log2(m) / d_model, at least 4 h.
        intervals: top up the probes beside a threshold to all seeds (App. A.2).
        extra_seeds: seeds added to a pass and a fail that contradict each other.
        retest_steps: train the failing side of a certificate again with so many times the
            step limit, to tell a lack of capacity from one of training.
    """

    mode: Literal["threshold", "grid"] = "threshold"
    heads: tuple[Count, ...] | Literal["all"] = (1, 2, 4, 8, 16, 32, 64)
    target: Annotated[Real, Field(gt=0, le=1)] = 0.99
    seeds: Annotated[Count, Field(le=10_000)] = 10
    keep_within: Annotated[Real, Field(ge=0)] | None = 0.10
    max_D_K: Count | None = None
    intervals: bool = True
    extra_seeds: Annotated[StrictInt, Field(ge=0)] = 10
    retest_steps: Annotated[StrictInt, Field(ge=2)] | None = None
    D_K: tuple[Count, ...] | None = None

    def lists(self, h: int) -> bool:
        """Whether a head count is one of those to be searched."""
        return self.heads == "all" or h in self.heads

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.heads == "all":
            if self.mode == "grid":
                raise ValueError("heads: all; mode grid needs a list of heads, such as [1, 2, 4]")
            return self
        if not self.heads:
            raise ValueError("heads: empty; give at least one head count, such as [1, 2, 4]")
        if len(set(self.heads)) != len(self.heads):
            raise ValueError(f"heads: {list(self.heads)} repeats a head count; list each once")
        if self.mode == "grid" and not self.D_K:
            raise ValueError("D_K: missing; mode grid needs a list of total widths")
        if self.mode == "threshold" and self.D_K is not None:
            raise ValueError("D_K: only for mode grid; for a threshold give max_D_K, or neither")
        if self.mode == "grid" and self.max_D_K is not None:
            raise ValueError("max_D_K: only for mode threshold; in mode grid the D_K list limits")
        if self.D_K and len(set(self.D_K)) != len(self.D_K):
            raise ValueError(f"D_K: {list(self.D_K)} repeats a width; list each once")
        largest = self.max_D_K if self.mode == "threshold" else max(self.D_K or (0,))
        if largest is not None:
            over = [h for h in self.heads if h > largest]
            if over:
                raise ValueError(
                    f"heads: {over[0]} exceeds the largest D_K, {largest}; "
                    f"every head needs a width of at least 1, so valid are 1 to {largest}"
                )
        for h in self.heads if self.D_K else ():
            if all(width % h for width in self.D_K or ()):
                raise ValueError(
                    f"heads: {h} divides none of D_K {list(self.D_K or ())}; "
                    f"list a multiple of {h}, or leave the head out"
                )
        return self


class Cell(Spec):
    """One point of the law: a model variant on a graph family with m items and d_model."""

    later: ClassVar[frozenset[str]] = frozenset({"construction"})

    model: ModelName = "max"
    graph: Graph = Permutation()
    m: Annotated[Count, Field(ge=2)]
    d_model: Count
    embedding: Embedding = Gaussian()
    context: Context = Context()
    training: Training = Training()
    construction: Construction = Construction()

    @model_validator(mode="after")
    def _suits_the_model(self) -> Self:
        record = self.record
        if record.algorithm is None and self.construction != Construction():
            raise ValueError(f"construction: model {self.model} is trained; leave it out")
        for key in record.unused_keys:
            part, name = key.split(".")
            spec = getattr(self, part)
            if getattr(spec, name) != type(spec).model_fields[name].default:
                raise ValueError(f"{key}: model {self.model} does not use it; leave it out")
        if record.one_target and self.graph.family != "permutation":
            raise ValueError(
                f"graph.family: model {self.model} has one target to each item; "
                "give permutation, or leave it out"
            )
        for name in record.required_keys:
            if getattr(self.training, name) is None:
                raise ValueError(f"training.{name}: missing; model {self.model} needs a number")
        items = 2 * self.context.length + 1
        if record.task == "matching" and items > self.m:
            raise ValueError(
                f"context.length: {self.context.length} pairs and the query of cell {self.name} "
                f"take {items} distinct items of m = {self.m}; valid are 2 to {(self.m - 1) // 2}"
            )
        return self

    @model_validator(mode="after")
    def _context_fits(self) -> Self:
        if self.context.length > self.m:
            raise ValueError(
                f"context.length: {self.context.length} exceeds m = {self.m} of cell {self.name}; "
                f"a context holds distinct items, so valid are 2 to {self.m}"
            )
        return self

    @model_validator(mode="after")
    def _families_fit(self) -> Self:
        self.graph.check(self.m)
        self.embedding.check(self.m, self.d_model)
        return self

    @property
    def record(self) -> Model:
        """What is particular to the cell's model."""
        return MODELS[self.model]

    @property
    def written_model(self) -> str | dict[str, Any]:
        """Its model as a study file has it: a name, or a construction with its parameters."""
        if self.record.algorithm is None:
            return self.model
        chosen = self.construction.model_dump(mode="json", exclude_none=True)
        return {"construction": self.record.algorithm, **chosen}

    @property
    def minimised(self) -> bool:
        """Whether a lower score is better."""
        return self.record.minimised

    @property
    def n_edges(self) -> int:
        """Number of relations m'."""
        return self.graph.n_edges(self.m)

    @property
    def assets(self) -> tuple[str, ...]:
        """Digests of the arrays that the graph and the embedding load from files."""
        digests = (getattr(part, "digest", None) for part in (self.graph, self.embedding))
        return tuple(digest for digest in digests if digest is not None)

    @property
    def name(self) -> str:
        """How the command line names the cell: ``m=64,d_model=16``, or with ``,degree=4``.

        A graph from a file is named by its number of edges, ``,edges=300``.
        """
        sizes = f"m={self.m},d_model={self.d_model}"
        if isinstance(self.graph, Edges):
            return f"{sizes},edges={self.graph.edges}"
        return sizes if self.graph.degree == 1 else f"{sizes},degree={self.graph.degree}"

    @property
    def problem_json(self) -> str:
        """Canonical JSON of what the random streams are keyed by: the task without the training."""
        return canonical_json(
            self.model_dump(mode="json", include={"graph", "m", "d_model", "embedding", "context"})
        )

    @property
    def cell_id(self) -> str:
        """Address of the cell: hash of its science configuration and the protocol version."""
        return digest({"protocol": PROTOCOL, "cell": self.model_dump(mode="json")}, 16)


class Run(Spec):
    """One training run: a cell at h heads of width d_k, from one seed."""

    cell: Cell
    h: Count
    d_k: Count
    seed: Annotated[StrictInt, Field(ge=0)]

    @model_validator(mode="after")
    def _heads_share_the_values(self) -> Self:
        if self.cell.record.splits_values and self.cell.d_model % self.h:
            raise ValueError(f"h: {self.h} does not divide d_model = {self.cell.d_model}")
        return self

    @property
    def D_K(self) -> int:
        """Total key width h * d_k."""
        return self.h * self.d_k

    @property
    def config_json(self) -> str:
        """Canonical JSON of everything that the run's numbers depend on."""
        return canonical_json({"protocol": PROTOCOL, **self.model_dump(mode="json")})

    @property
    def run_id(self) -> str:
        """Address of the run: hash of ``config_json``."""
        return hashlib.sha256(self.config_json.encode()).hexdigest()[:32]


class Study(Spec):
    """A resolved study: its name, its cells in order, and how to search them.

    Attributes:
        files: the keys that named an array's files, by its digest; no number depends on them.
    """

    name: str
    cells: tuple[Cell, ...]
    search: Search
    files: dict[str, dict[str, Any]] = Field(default_factory=dict)

    def extended(self, cell: Cell) -> Cell | None:
        """The cell with the extended budget of a retest, if the study asks for one."""
        if self.search.retest_steps is None:
            return None
        steps = cell.training.max_steps * self.search.retest_steps
        return cell.model_copy(
            update={"training": cell.training.model_copy(update={"max_steps": steps})}
        )

    @property
    def trained_cells(self) -> list[Cell]:
        """The cells, and those that a retest trains with more steps; each once."""
        return list(dict.fromkeys([*self.cells, *filter(None, map(self.extended, self.cells))]))

    @cached_property
    def cell_names(self) -> dict[str, str]:
        """The name of each cell by its cell_id: ``m=64,d_model=16``, and what tells it apart.

        Cells of one size add the keys in which they differ, such as ``max_steps=80000``; graphs
        that differ only in their file add its name.
        """
        by_name: dict[str, list[Cell]] = {}
        for cell in self.cells:
            by_name.setdefault(cell.name, []).append(cell)
        return {
            cell.cell_id: ",".join([name, *own])
            for name, alike in by_name.items()
            for cell, own in zip(alike, self._differences(alike), strict=True)
        }

    def name_of(self, cell: Cell) -> str:
        """The name by which the command line knows a cell of this study."""
        return self.cell_names[cell.cell_id]

    @property
    def differences(self) -> dict[str, str]:
        """What the name of each cell adds to its size and degree, by its cell_id."""
        return {
            cell.cell_id: self.name_of(cell).removeprefix(cell.name).removeprefix(",")
            for cell in self.cells
        }

    @property
    def has_alike_cells(self) -> bool:
        """Whether size and degree do not tell the cells apart."""
        return any(self.differences.values())

    def _differences(self, alike: Sequence[Cell]) -> list[list[str]]:
        """For each of several cells, ``key=value`` where not all have the same value."""
        flat = [self._flat(cell) for cell in alike]
        keys = [key for key in flat[0] if any(one[key] != flat[0][key] for one in flat)]
        if len({one.get("graph.file") for one in flat}) == len(flat):
            keys = [key for key in keys if key != "graph.digest"]
        return [[f"{key.split('.')[-1]}={one[key]}" for key in keys] for one in flat]

    def _flat(self, cell: Cell) -> dict[str, Any]:
        """The keys in which cells of one size can differ."""
        parts: dict[str, Any] = {"context": cell.context, "training": cell.training}
        flat = {f"{part}.{key}": v for part, spec in parts.items() for key, v in dict(spec).items()}
        flat["graph.family"] = cell.graph.family
        if isinstance(cell.graph, Edges):
            file = Path(self.files.get(cell.graph.digest, {}).get("file", "")).name
            flat |= {"graph.file": file, "graph.digest": cell.graph.digest[:8]}
        return flat

    def to_yaml(self) -> str:
        """The study with every default written out; loading it gives the same study."""
        cells = []
        shared = self.cells[0]
        for cell in self.cells:
            item: dict[str, Any] = {"m": cell.m, "d_model": cell.d_model}
            if cell.graph != shared.graph:
                item["graph"] = self.written(cell.graph)
            for part in ("context", "training"):
                own, common = dict(getattr(cell, part)), dict(getattr(shared, part))
                changed = {key: own[key] for key in own if own[key] != common[key]}
                if changed:
                    item[part] = changed
            cells.append(item)
        document = {
            "name": self.name,
            **shared.model_dump(mode="json", exclude={"m", "d_model", "construction"}),
            "model": shared.written_model,
            "embedding": self.written(shared.embedding),
            "graph": self.written(shared.graph),
            "cells": cells,
            "search": self.search.model_dump(mode="json", exclude_none=False),
        }
        return yaml.safe_dump(document, sort_keys=False)

    def written(self, part: Graph | Embedding) -> dict[str, Any]:
        """A part as a study file has it: naming its files instead of what was read from them."""
        keys = part.model_dump(mode="json")
        digest = keys.get("digest")
        return keys if digest is None else {"family": part.family, **self.files.get(digest, {})}


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(value: Any, length: int) -> str:
    """First ``length`` hex digits of the SHA-256 of the canonical JSON of ``value``."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:length]
