"""The study file: what is measured, how it is trained, how it is searched.

A study is YAML. Every key that is left out takes the paper's value (Sec. 6 and
App. A.1), and an unknown key is an error. Loading expands the study's cells into
frozen ``Cell`` specs, whose canonical JSON is what a run's identity is made of.
"""

from __future__ import annotations

import difflib
import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, StrictInt, ValidationError, model_validator

PROTOCOL = 1
"""Version of the training protocol. Raise it when the same study would give other numbers."""

Count = Annotated[StrictInt, Field(ge=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=False)]
Share = Annotated[float, Field(ge=0, le=1)]


AnySpec = TypeVar("AnySpec", bound="BaseModel")


class StudyError(ValueError):
    """The study cannot be used as written; the message says what, where and what would be valid."""


class Spec(BaseModel):
    """A frozen part of a study that refuses keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Graph(Spec):
    """The relation to be stored; a permutation has one out- and one in-edge at each item."""

    family: Literal["permutation"] = "permutation"

    @property
    def degree(self) -> int:
        """Out-degree r of every item."""
        return 1


class Embedding(Spec):
    """Frozen item vectors; ``gaussian`` is N(0, I/d_model), then L2-normalised (Sec. 4)."""

    family: Literal["gaussian"] = "gaussian"


class Context(Spec):
    """How contexts are drawn (App. A.1): length l and target-in-context rate rho."""

    length: Annotated[StrictInt, Field(ge=2)] = 16
    positive_rate: Share = 0.5


class Training(Spec):
    """Optimisation and stopping (App. A.1); steps are contexts of one run."""

    learning_rate: Positive = 1e-3
    sharpness: Positive = 10.0
    max_steps: Count = 20_000
    check_every: Count = 500
    patience: Count = 5
    stop_score: Share = 0.995
    validation_contexts: Count = 500
    test_contexts: Count = 2_000


class Search(Spec):
    """Which widths are tried, and what passes.

    ``threshold`` finds the smallest passing d_k of each head count; ``grid`` trains
    every listed D_K that the head count divides.
    """

    mode: Literal["threshold", "grid"] = "threshold"
    heads: tuple[Count, ...] = (1, 2, 4, 8, 16, 32, 64)
    target: Annotated[float, Field(gt=0, le=1)] = 0.99
    seeds: Count = 10
    keep_within: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = 0.10
    max_D_K: Count | None = None
    intervals: bool = True
    D_K: tuple[Count, ...] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
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
        largest = self.max_D_K if self.mode == "threshold" else max(self.D_K or (0,))
        if largest is not None:
            over = [h for h in self.heads if h > largest]
            if over:
                raise ValueError(
                    f"heads: {over[0]} exceeds the largest D_K, {largest}; "
                    f"every head needs a width of at least 1, so valid are 1 to {largest}"
                )
        return self


class Cell(Spec):
    """One point of the law: a model variant on a graph family with m items and d_model."""

    model: Literal["max"] = "max"
    graph: Graph = Graph()
    m: Annotated[StrictInt, Field(ge=2)]
    d_model: Count
    embedding: Embedding = Embedding()
    context: Context = Context()
    training: Training = Training()

    @model_validator(mode="after")
    def _context_fits(self) -> Self:
        if self.context.length > self.m:
            raise ValueError(
                f"context.length: {self.context.length} exceeds m = {self.m}; "
                f"a context holds distinct items, so valid are 2 to {self.m}"
            )
        return self

    @property
    def n_edges(self) -> int:
        """Number of relations m' = r * m."""
        return self.graph.degree * self.m

    @property
    def name(self) -> str:
        """How the command line names the cell: ``m=64,d_model=16``."""
        return f"m={self.m},d_model={self.d_model}"

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
    """A resolved study: its name, its cells in order, and how to search them."""

    name: str
    cells: tuple[Cell, ...]
    search: Search

    def to_yaml(self) -> str:
        """The study with every default written out; loading it gives the same study."""
        cells = []
        shared = self.cells[0]
        for cell in self.cells:
            item: dict[str, Any] = {"m": cell.m, "d_model": cell.d_model}
            for part in ("context", "training"):
                own, common = getattr(cell, part).model_dump(), getattr(shared, part).model_dump()
                changed = {key: own[key] for key in own if own[key] != common[key]}
                if changed:
                    item[part] = changed
            cells.append(item)
        document = {
            "name": self.name,
            **shared.model_dump(mode="json", exclude={"m", "d_model"}),
            "cells": cells,
            "search": self.search.model_dump(mode="json", exclude_none=False),
        }
        return yaml.safe_dump(document, sort_keys=False)


class CellItem(Spec):
    """One entry of ``cells``: lists of m and d_model, and what this entry overrides."""

    m: StrictInt | tuple[StrictInt, ...]
    d_model: StrictInt | tuple[StrictInt, ...]
    context: dict[str, Any] = {}
    training: dict[str, Any] = {}


class StudyFile(Spec):
    """The study as written."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    model: Any = "max"
    graph: dict[str, Any] = {}
    embedding: dict[str, Any] = {}
    context: dict[str, Any] = {}
    training: dict[str, Any] = {}
    cells: tuple[CellItem, ...] = Field(min_length=1)
    search: Search = Search()


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(value: Any, length: int) -> str:
    """First ``length`` hex digits of the SHA-256 of the canonical JSON of ``value``."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:length]


def shipped_studies() -> list[str]:
    """Names of the studies that come with the package."""
    folder = resources.files("rgr_dist") / "studies"
    return sorted(p.name[:-5] for p in folder.iterdir() if p.name.endswith(".yaml"))


def load_study(source: str, overrides: Sequence[str] = ()) -> Study:
    """Load a shipped study by name, or a study file by path, with ``a.b=c`` overrides.

    Raises:
        StudyError: the source is unknown or unreadable, or the study is not valid.
    """
    text = _read(source)
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise StudyError(f"{source}: not valid YAML: {_one_line(error)}") from None
    if not isinstance(document, dict):
        raise StudyError(f"{source}: a study is a mapping with the keys name, cells, search, …")
    for override in overrides:
        _override(document, override)
    return parse_study(document, where=source)


def parse_study(document: Mapping[str, Any], where: str = "study") -> Study:
    """Validate a study document and expand its cells.

    Raises:
        StudyError: naming the key, its place and what would be valid.
    """
    written = _validated(StudyFile, document, where, "")
    cells: list[Cell] = []
    for index, item in enumerate(written.cells):
        ms = item.m if isinstance(item.m, tuple) else (item.m,)
        widths = item.d_model if isinstance(item.d_model, tuple) else (item.d_model,)
        if not ms or not widths:
            raise StudyError(f"{where}: cells[{index}]: empty list of m or d_model; give one value")
        for m, d_model in itertools.product(ms, widths):
            cell = {
                "model": written.model,
                "graph": written.graph,
                "m": m,
                "d_model": d_model,
                "embedding": written.embedding,
                "context": {**written.context, **item.context},
                "training": {**written.training, **item.training},
            }
            here = f"cells[{index}]."
            place = {"m": here, "d_model": here}
            place |= {part: here for part in ("context", "training") if getattr(item, part)}
            cells.append(_validated(Cell, cell, where, place))
    names = [cell.cell_id for cell in cells]
    twice = next((c for i, c in enumerate(cells) if names[i] in names[:i]), None)
    if twice is not None:
        raise StudyError(f"{where}: cells: {twice.name} is listed twice; list each cell once")
    return Study(name=written.name, cells=tuple(cells), search=written.search)


def _read(source: str) -> str:
    path = Path(source)
    if source in shipped_studies():
        return (resources.files("rgr_dist") / "studies" / f"{source}.yaml").read_text("utf-8")
    looks_like_path = path.suffix in {".yaml", ".yml"} or len(path.parts) > 1 or path.exists()
    if not looks_like_path:
        known = shipped_studies()
        near = difflib.get_close_matches(source, known, 1)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        raise StudyError(
            f"study '{source}': unknown{hint} Valid: {', '.join(known)}, or the path of a YAML file"
        )
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise StudyError(
            f"{source}: cannot be read: {error.strerror}; give a readable YAML file"
        ) from None
    except UnicodeDecodeError:
        raise StudyError(f"{source}: not a text file; a study is YAML in UTF-8") from None


def _override(document: dict[str, Any], override: str) -> None:
    key, equals, value = override.partition("=")
    if not equals or not key.strip():
        raise StudyError(f"--set {override}: not of the form key.subkey=value")
    *path, last = key.strip().split(".")
    place = document
    for part in path:
        place = place.setdefault(part, {})
        if not isinstance(place, dict):
            raise StudyError(f"--set {override}: '{part}' has no keys below it")
    try:
        place[last] = yaml.safe_load(value)
    except yaml.YAMLError:
        raise StudyError(f"--set {override}: '{value}' is not a YAML value") from None


def _validated(
    spec: type[AnySpec], value: Any, where: str, place: str | Mapping[str, str]
) -> AnySpec:
    try:
        return spec.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        prefix = place if isinstance(place, str) else place.get(str((first["loc"] or ("",))[0]), "")
        raise StudyError(f"{where}: {prefix}{_explain(spec, first)}") from None


def _explain(spec: type[BaseModel], error: Any) -> str:
    """One line for a pydantic error: key, what is wrong, what would be valid."""
    key, owner = _locate(spec, error["loc"])
    given = error.get("input")
    if error["type"] == "extra_forbidden":
        valid = list(owner.model_fields)
        near = difflib.get_close_matches(str(error["loc"][-1]), valid, 1)
        hint = f"did you mean '{near[0]}'? " if near else ""
        return f"{key}: unknown key; {hint}valid: {', '.join(valid)}"
    if error["type"] == "literal_error":
        valid_text = error["ctx"]["expected"]
        options = [option.strip(" '") for option in valid_text.replace(" or ", ", ").split(",")]
        near = difflib.get_close_matches(str(given), options, 1)
        hint = f"did you mean '{near[0]}'? " if near and len(options) > 1 else ""
        return f"{key}: '{given}' is not known; {hint}valid: {', '.join(options)}"
    if error["type"] == "missing":
        return f"{key}: missing; it has no default"
    if error["type"] == "value_error":
        separator = f"{key}." if key else ""
        return f"{separator}{error['ctx']['error']}"
    message = error["msg"].replace("Input should be", "should be")
    return f"{key}: {given!r} is not valid: {message}"


def _locate(spec: type[BaseModel], loc: tuple[int | str, ...]) -> tuple[str, type[BaseModel]]:
    """Dotted name of an error's place and the spec that owns its last key."""
    name, owner = "", spec
    for part in loc:
        if isinstance(part, int):
            name += f"[{part}]"
            continue
        field = owner.model_fields.get(part)
        if field is None and name and not _is_key(owner, part):
            break
        name += f".{part}" if name else part
        inner = _spec_of(field.annotation) if field is not None else None
        owner = inner or owner
    return name, owner


def _is_key(owner: type[BaseModel], part: str) -> bool:
    """Whether ``part`` is a key the user wrote, not the tag of a union's branch."""
    return part not in {"int", "constrained-int", "tuple[int, ...]", "float", "tuple"} and (
        "[" not in part
    )


def _spec_of(annotation: Any) -> type[BaseModel] | None:
    candidates = [annotation, *getattr(annotation, "__args__", ())]
    for candidate in candidates:
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
