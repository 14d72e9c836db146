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
from pydantic import Field, StrictInt, field_validator, model_validator

from rgr_dist.study.construction import Construction
from rgr_dist.study.families import Edges, Embedding, Gaussian, Graph, Permutation
from rgr_dist.study.models import MODELS, Model, ModelName
from rgr_dist.study.spec import Count, Real, Share, Spec

PROTOCOL = 1
"""Version of the training protocol. Raise it when the same study would give other numbers."""


PROBLEM = ("graph", "m", "d_model", "embedding", "context")
"""Keys of a cell that its task depends on, without the training."""

CONFIRM_SEEDS = 20
"""Fresh seeds that confirm a winner where every head is searched."""


class Context(Spec):
    """How contexts are drawn (App. A.1).

    Attributes:
        length: items in a context, l; pairs of items for model transformer.
        positive_rate: target-in-context rate, rho: the chance that an item is a source, whose
            target is brought into the context.
    """

    length: Annotated[StrictInt, Field(ge=2)] = 16
    positive_rate: Share = 0.5


class Training(Spec):
    """Optimisation by AdamW, and stopping (App. A.1); steps are contexts of one run.

    The transformer (Sec. 7.3) takes a batch a step, decays its weights and does not stop early.

    Attributes:
        learning_rate: of AdamW; the highest that a schedule reaches.
        sharpness: alpha of the logits alpha (S - tau).
        initial_scale: multiplies the standard deviation of the first W_Q and W_K, in either
            reading of ``initial``.
        initial: the paper draws W_Q and W_K from N(0, 1/sqrt(d_model)) and does not say which the
            second number is: read as their standard ``deviation`` or as their ``variance``.
        schedule: of the learning rate (``engines.schedule``), which the paper keeps ``constant``:
            ``warmup`` rises linearly for ``warmup_steps`` and stays, ``cosine`` falls to zero at
            ``max_steps``.
        warmup_steps: with ``warmup`` alone: steps until the full rate. The default,
            2 / (1 - beta_2), is the untuned warm-up of Ma and Yarats (arXiv:1910.04209).
        max_steps: step limit; a list asks for a threshold at each.
        check_every: steps between two checks on the validation contexts.
        patience: so many checks in a row above ``stop_score`` end a run as converged; in model
            value, so many that do not bring the error down.
        stop_score: score on the validation contexts that a check must exceed to count.
        validation_contexts: contexts that a check scores, or queries of model transformer.
        test_contexts: contexts that the final score is of, or queries of model transformer.
        batch_size: queries in a step of model transformer.
        weight_decay: of AdamW in model transformer; the others have none.
        tolerance: in model value, by how large a share of the best error a check must be below it
            to count as better; the paper does not give it (Sec. 7.2).
    """

    later: ClassVar[frozenset[str]] = frozenset(
        {
            "initial_scale",
            "initial",
            "schedule",
            "warmup_steps",
            "batch_size",
            "weight_decay",
            "tolerance",
        }
    )

    learning_rate: Annotated[Real, Field(gt=0, le=1e30)] = 1e-3
    sharpness: Annotated[Real, Field(gt=0, le=1e30)] = 10.0
    initial_scale: Annotated[Real, Field(gt=0, le=1e30)] = 1.0
    initial: Literal["deviation", "variance"] = "deviation"
    schedule: Literal["constant", "cosine", "warmup"] = "constant"
    warmup_steps: Count = 2_000
    max_steps: Count = 20_000
    check_every: Count = 500
    patience: Count = 5
    stop_score: Share = 0.995
    validation_contexts: Count = 500
    test_contexts: Count = 2_000
    batch_size: Count | None = None
    weight_decay: Annotated[Real, Field(ge=0, le=1e30)] | None = None
    tolerance: Share = 0.001

    @property
    def path_depends_on_limit(self) -> bool:
        """Whether another ``max_steps`` changes a run before it gets there.

        If not, the state of a run at a smaller limit is one that it passes through at a larger.
        """
        return self.schedule == "cosine"

    @model_validator(mode="after")
    def _warms_up(self) -> Self:
        if self.schedule == "warmup":
            if self.warmup_steps > self.max_steps:
                raise ValueError(
                    f"warmup_steps: {self.warmup_steps} exceeds max_steps = {self.max_steps}; "
                    f"valid are 1 to {self.max_steps}"
                )
        elif self.warmup_steps != type(self).model_fields["warmup_steps"].default:
            raise ValueError(
                f"warmup_steps: schedule {self.schedule} does not use it; leave it out, or give "
                "schedule: warmup"
            )
        return self


class Search(Spec):
    """Which widths are tried, and what passes.

    Attributes:
        mode: ``threshold`` finds the smallest passing d_k of each head count; ``grid`` trains every
            listed D_K that the head count divides.
        heads: head counts to search. ``all`` searches every integer and confirms its winners; heads
            that may be equally wide go by their largest: if that fails, so do fewer heads of its
            width, which are a part of it.
        target: mean score over the seeds to reach; the paper's, or the model's own.
        seeds: of a probe, numbered from 0.
        keep_within: heads up to this share above the best D_K, or up to one step of their d_k above
            it, are searched to the end; ``none`` searches every head.
        max_D_K: largest total width; by default 4 m' log2(m) / d_model, at least 4 h.
        intervals: top up the probes beside a threshold to all seeds (App. A.2): those of every head
            near the best, or, with ``best``, of the best head and of ``keep_heads`` alone;
            ``false`` for none.
        extra_seeds: where a pass lies below a fail, both are trained with so many more seeds before
            they are called ``inconsistent``.
        confirm_seeds: fresh seeds on which the thresholds of the best head and of every head within
            the margin must pass again; one that does not is a fail from then on. 0 is the paper's
            protocol; 20 with ``heads: all``.
        keep_heads: heads that are searched to the end however far above the best they lie.
        transition_seeds: seeds to train at every width near a threshold, 0 for none.
        transition_window: how near: up to this share of the threshold away from it.
        retest_steps: search every cell at so many times its step limit too: ``limited_by`` then
            says whether a threshold is one of ``capacity``, or of the training ``budget``. A
            loaded study has those cells, and no such key.
        D_K: total widths of mode grid.
    """

    mode: Literal["threshold", "grid"] = "threshold"
    heads: tuple[Count, ...] | Literal["all"] = (1, 2, 4, 8, 16, 32, 64)
    target: Annotated[Real, Field(gt=0, le=1)] = 0.99
    seeds: Annotated[Count, Field(le=10_000)] = 10
    keep_within: Annotated[Real, Field(ge=0)] | None = 0.10
    max_D_K: Count | None = None
    intervals: bool | Literal["best"] = True
    extra_seeds: Annotated[StrictInt, Field(ge=0)] = 10
    confirm_seeds: Annotated[StrictInt, Field(ge=0, le=10_000)] = 0
    keep_heads: tuple[Count, ...] = ()
    transition_seeds: Annotated[StrictInt, Field(ge=0, le=10_000)] = 0
    transition_window: Annotated[Real, Field(ge=0, le=10)] = 0.5
    retest_steps: Annotated[StrictInt, Field(ge=2)] | None = None
    D_K: tuple[Count, ...] | None = None

    def lists(self, h: int) -> bool:
        """Whether a head count is one of those to be searched."""
        return self.heads == "all" or h in self.heads

    @field_validator("keep_within", mode="before")
    @classmethod
    def _none_is_null(cls, share: Any) -> Any:
        """``none`` reads like YAML's null, which keeps every head."""
        return None if share == "none" else share

    @model_validator(mode="before")
    @classmethod
    def _confirm_every_head(cls, keys: Any) -> Any:
        """With every head a winner is the least of very many, so that it is confirmed."""
        if isinstance(keys, dict) and keys.get("heads") == "all" and "confirm_seeds" not in keys:
            return {**keys, "confirm_seeds": CONFIRM_SEEDS}
        return keys

    @model_validator(mode="after")
    def _for_thresholds_alone(self) -> Self:
        if self.mode == "grid":
            for name in ("confirm_seeds", "keep_heads", "transition_seeds"):
                if getattr(self, name):
                    raise ValueError(f"{name}: only for mode threshold; leave it out of a grid")
        unknown = [h for h in self.keep_heads if not self.lists(h)]
        if unknown:
            raise ValueError(f"keep_heads: {unknown[0]} is not one of heads; list it there too")
        return self

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

    def with_limit(self, max_steps: int) -> Cell:
        """The cell with another step limit."""
        training = self.training.model_copy(update={"max_steps": max_steps})
        return self.model_copy(update={"training": training})

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
        return canonical_json(self.model_dump(mode="json", include=set(PROBLEM)))

    @cached_property
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

    def with_limit(self, max_steps: int) -> Run:
        """The run with another step limit."""
        return self.model_copy(update={"cell": self.cell.with_limit(max_steps)})

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

    @cached_property
    def budgets(self) -> dict[str, tuple[Cell, ...]]:
        """The cells that differ from a cell in nothing but their step limit, by its cell_id.

        The cell itself is one of them; they are in the order of their limits.
        """
        alike: dict[Cell, list[Cell]] = {}
        for cell in self.cells:
            alike.setdefault(cell.with_limit(1), []).append(cell)
        families = [
            tuple(sorted(cells, key=lambda cell: cell.training.max_steps))
            for cells in alike.values()
        ]
        return {cell.cell_id: family for family in families for cell in family}

    @property
    def has_budgets(self) -> bool:
        """Whether any cell has more than one step limit."""
        return any(len(family) > 1 for family in self.budgets.values())

    @cached_property
    def cell_names(self) -> dict[str, str]:
        """The name of each cell by its cell_id: ``m=64,d_model=16``, and what tells it apart.

        Cells of one size add the keys in which they differ, such as ``max_steps=80000``, but for
        the value that more than half of them have; graphs that differ only in their file add its
        name.
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

    @cached_property
    def differences(self) -> dict[str, str]:
        """What the name of each cell adds to its size and degree, by its cell_id."""
        return {
            cell.cell_id: self.name_of(cell).removeprefix(cell.name).removeprefix(",")
            for cell in self.cells
        }

    @cached_property
    def has_alike_cells(self) -> bool:
        """Whether size and degree do not tell the cells apart."""
        return any(self.differences.values())

    def _differences(self, alike: Sequence[Cell]) -> list[list[str]]:
        """For each of several cells, ``key=value`` where its value is not that of most."""
        flat = [self.keys_of(cell) for cell in alike]
        keys = list(flat[0])
        if len({one.get("graph.file") for one in flat}) == len(flat):
            keys = [key for key in keys if key != "graph.digest"]

        def is_usual(key: str, value: Any) -> bool:
            return 2 * [one[key] for one in flat].count(value) > len(flat)

        return [
            [
                f"{key.split('.')[-1]}={_plain(own[key])}"
                for key in keys
                if not is_usual(key, own[key])
            ]
            for own in flat
        ]

    def keys_of(self, cell: Cell) -> dict[str, Any]:
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


def _plain(value: Any) -> Any:
    """A value as one writes it: 30 for 30.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(value: Any, length: int) -> str:
    """First ``length`` hex digits of the SHA-256 of the canonical JSON of ``value``."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:length]
