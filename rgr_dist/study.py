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
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictInt,
    ValidationError,
    model_validator,
)

PROTOCOL = 1
"""Version of the training protocol. Raise it when the same study would give other numbers."""


def _number(value: Any) -> Any:
    """Refuse a boolean, which pydantic would take for 0 or 1."""
    if isinstance(value, bool):
        raise ValueError(f"{value} is not a number")
    return value


def _listed(value: Any) -> Any:
    """A single value as a list of one."""
    return value if isinstance(value, list | tuple) else [value]


Count = Annotated[StrictInt, Field(ge=1, le=2**31 - 1)]
Real = Annotated[float, BeforeValidator(_number), Field(allow_inf_nan=False)]
Share = Annotated[Real, Field(ge=0, le=1), AfterValidator(lambda share: share + 0.0)]  # no -0.0


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

    learning_rate: Annotated[Real, Field(gt=0, le=1e30)] = 1e-3
    sharpness: Annotated[Real, Field(gt=0, le=1e30)] = 10.0
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
    target: Annotated[Real, Field(gt=0, le=1)] = 0.99
    seeds: Count = 10
    keep_within: Annotated[Real, Field(ge=0)] | None = 0.10
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

    model: Literal["max"] = "max"
    graph: Graph = Graph()
    m: Annotated[Count, Field(ge=2)]
    d_model: Count
    embedding: Embedding = Embedding()
    context: Context = Context()
    training: Training = Training()

    @model_validator(mode="after")
    def _context_fits(self) -> Self:
        if self.context.length > self.m:
            raise ValueError(
                f"context.length: {self.context.length} exceeds m = {self.m} of cell {self.name}; "
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

    m: Annotated[tuple[StrictInt, ...], BeforeValidator(_listed), Field(min_length=1)]
    d_model: Annotated[tuple[StrictInt, ...], BeforeValidator(_listed), Field(min_length=1)]
    context: dict[str, Any] = {}
    training: dict[str, Any] = {}


class StudyFile(Spec):
    """The study as written."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]
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
        document = yaml.load(text, _OneOfEachKey)
    except (yaml.YAMLError, ValueError) as error:
        raise StudyError(f"{source}: not valid YAML: {_yaml_fault(error)}") from None
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
        for m, d_model in itertools.product(item.m, item.d_model):
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
    names = [cell.name for cell in cells]
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise StudyError(f"{where}: cells: {twice} is listed twice; list each cell once")
    return Study(name=written.name, cells=tuple(cells), search=written.search)


def _read(source: str) -> str:
    path = Path(source)
    if not source or "\0" in source:
        raise StudyError(f"study {source!r}: neither a name nor a path")
    if source in shipped_studies():
        return (resources.files("rgr_dist") / "studies" / f"{source}.yaml").read_text("utf-8")
    looks_like_path = path.suffix in {".yaml", ".yml"} or len(path.parts) > 1 or path.exists()
    if not looks_like_path:
        known = shipped_studies()
        near = difflib.get_close_matches(source, known, 1)
        hint = f"did you mean '{near[0]}'? " if near else ""
        raise StudyError(
            f"study '{source}': unknown; {hint}valid: {', '.join(known)}, or a YAML file's path"
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
    if not all((*path, last)):
        raise StudyError(f"--set {override}: not of the form key.subkey=value")
    items = document.get("cells")
    for item in items if isinstance(items, list) else ():
        # The override holds in every cell, also where a cell has its own value.
        if len(path) == 1 and isinstance(item, dict) and isinstance(item.get(path[0]), dict):
            item[path[0]].pop(last, None)
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
        faults = error.errors()
        first = next((fault for fault in faults if fault["type"] == "extra_forbidden"), faults[0])
        prefix = place if isinstance(place, str) else place.get(str((first["loc"] or ("",))[0]), "")
        explained = " ".join(_explain(spec, value, first).split())
        raise StudyError(f"{where}: {prefix}{explained}") from None


def _explain(spec: type[BaseModel], value: Any, error: Any) -> str:
    """One line for a pydantic error: key, what is wrong, what would be valid."""
    key, owner = _locate(spec, value, error["loc"])
    kind, given, bounds = error["type"], error.get("input"), error.get("ctx", {})
    if kind == "extra_forbidden":
        valid = list(owner.model_fields)
        near = difflib.get_close_matches(str(error["loc"][-1]), valid, 1)
        hint = f"did you mean '{near[0]}'? " if near else ""
        return f"{key}: unknown key; {hint}valid: {', '.join(valid)}"
    if kind == "literal_error":
        options = re.findall(r"'([^']*)'", bounds["expected"])
        near = difflib.get_close_matches(str(given), options, 1)
        hint = f"did you mean '{near[0]}'? " if near and len(options) > 1 else ""
        return f"{key}: {_shown(given)} is not known; {hint}valid: {', '.join(options)}"
    if kind == "missing":
        return f"{key}: missing; it has no default"
    if kind == "value_error":
        # A spec's own message starts with the key it is about; a value's does not.
        separator = "." if error["loc"] == () or _is_spec(spec, error["loc"]) else ": "
        return f"{key}{separator if key else ''}{bounds['error']}"
    if error["loc"][-1:] == ("[key]",):
        return f"{key}: the key {_shown(given)} is not a text"
    wanted = {
        "tuple_type": "a list",
        "too_short": f"at least {bounds.get('min_length')} of them",
        "dict_type": "a mapping of keys to values",
        "model_type": "a mapping of keys to values",
        "int_type": "an integer",
        "float_type": "a number",
        "float_parsing": "a number",
        "finite_number": "a finite number",
        "string_type": "a text",
        "string_pattern_mismatch": "letters, digits, '.', '_' and '-', a letter or digit first",
        "string_too_long": f"at most {bounds.get('max_length')} characters",
        "greater_than": f"a value above {bounds.get('gt')}",
        "greater_than_equal": f"at least {bounds.get('ge')}",
        "less_than_equal": f"at most {bounds.get('le')}",
    }.get(kind, error["msg"])
    return f"{key}: {_shown(given)} is not valid; give {wanted}"


def _shown(given: Any) -> str:
    """A value as a study would have it, cut short."""
    text = f"'{given}'" if isinstance(given, str) else json.dumps(given, default=str)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _locate(
    spec: type[BaseModel], value: Any, loc: tuple[int | str, ...]
) -> tuple[str, type[BaseModel]]:
    """Dotted name of an error's place, as written in ``value``, and the spec of its last key."""
    name, owner = "", spec
    for part in loc:
        if isinstance(part, int):
            if isinstance(value, list | tuple):  # else a single value stood for a list of one
                name += f"[{part}]"
                value = value[part]
            continue
        if part == "[key]":
            continue
        value = value.get(part) if isinstance(value, dict) else None
        field = owner.model_fields.get(part)
        name += f".{part}" if name else part
        inner = _spec_of(field.annotation) if field is not None else None
        owner = inner or owner
    return name, owner


def _is_spec(spec: type[BaseModel], loc: tuple[int | str, ...]) -> bool:
    """Whether an error's place is a whole spec, not a value in one."""
    owner: type[BaseModel] | None = spec
    for part in loc:
        if isinstance(part, str) and owner is not None:
            field = owner.model_fields.get(part)
            owner = _spec_of(field.annotation) if field is not None else None
    return owner is not None


def _spec_of(annotation: Any) -> type[BaseModel] | None:
    candidates = [annotation, *getattr(annotation, "__args__", ())]
    for candidate in candidates:
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None


class _OneOfEachKey(yaml.SafeLoader):
    """Loads YAML, but refuses a key that is written twice, of which YAML keeps the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = next((key for i, key in enumerate(keys) if key in keys[:i]), None)
        if twice is not None:
            line = node.start_mark.line + 1
            raise ValueError(f"the mapping at line {line} has '{twice}' twice; write it once")
        return super().construct_mapping(node, deep)


def _yaml_fault(error: Exception) -> str:
    """What is wrong and where, without the parser's excerpt."""
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return " ".join(str(error).split())
    return f"line {mark.line + 1}, column {mark.column + 1}: {getattr(error, 'problem', '')}"
