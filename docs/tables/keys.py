"""Every key of a study file, from the specs that read it and their docstrings."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from rgr_dist.study.construction import Construction
from rgr_dist.study.database import Facts, Function, LowRank, Partial, Predicates
from rgr_dist.study.edge_list import EdgesFile
from rgr_dist.study.families import Binary, Gaussian, OneHot, Permutation, Regular, StandIn
from rgr_dist.study.models import RECORDS, Model
from rgr_dist.study.search import Search, Settings
from rgr_dist.study.spec import LARGEST_COUNT, Spec
from rgr_dist.study.study_file import CellItem, StudyFile
from rgr_dist.study.token_table import TableFile
from rgr_dist.study.training import Context, Training
from rgr_dist.study.triple_list import TriplesFile
from tables.markdown import plain, table

GRAPHS: tuple[type[Spec], ...] = (Permutation, Regular, EdgesFile)
EMBEDDINGS: tuple[type[Spec], ...] = (Gaussian, OneHot, Binary, TableFile, StandIn)
DATABASES: tuple[type[Spec], ...] = (Function, Partial, LowRank, Predicates, TriplesFile)
PARTS = (
    "graph", "embedding", "database", "facts", "context", "training", "cells", "search", "model",
)  # fmt: skip
"""Keys of a study that have keys of their own, each in a section of that name."""


def attributes(spec: type[Spec]) -> dict[str, str]:
    """What the docstring of a spec, and those of what it is made from, say of each of its keys."""
    told: dict[str, str] = {}
    for one in reversed(spec.__mro__):
        _, _, listed = inspect.cleandoc(one.__doc__ or "").partition("Attributes:\n")
        entries = re.findall(
            r"^    (\w+): (.*?)(?=^    \w+: |\Z)", listed, re.DOTALL | re.MULTILINE
        )
        told |= {name: plain(text).replace("|", r"\|") for name, text in entries}
    return told


def summary(spec: type[Spec]) -> str:
    """The first paragraph of a spec's docstring."""
    return plain((inspect.getdoc(spec) or "").partition("\n\n")[0])


def allowed(annotation: Any, metadata: Sequence[Any] = ()) -> str:
    """What a key may be, in words, from its annotation and the constraints on it."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return allowed(inner[0], [*inner[1:], *metadata])
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(map(allowed, inner)))
    if origin is Literal:
        return " or ".join(f"`{one}`" for one in inner)
    if origin is tuple:
        return f"a list of {allowed(inner[0]).replace('integer', 'integers', 1)}"
    if annotation in (int, float):
        return _number("integer" if annotation is int else "number", limits(metadata))
    return {bool: "`true` or `false`", NoneType: "none", str: "text", Any: "any"}.get(
        annotation, "keys"
    )


def limits(metadata: Sequence[Any]) -> dict[str, float]:
    """The bounds among constraints, by ``ge``, ``gt``, ``le`` and ``lt``."""
    found: dict[str, float] = {}
    for one in metadata:
        if isinstance(one, FieldInfo):
            found |= limits(one.metadata)
        for name in ("ge", "gt", "le", "lt"):
            if getattr(one, name, None) is not None:
                found[name] = getattr(one, name)
    return found


def _number(kind: str, bounds: Mapping[str, float]) -> str:
    low, above, below = (bounds.get(name) for name in ("ge", "gt", "lt"))
    high = bounds.get("le", math.inf)
    high = math.inf if high >= LARGEST_COUNT else high  # what fits into 32 bits
    if low is not None and high < math.inf:
        return f"{kind}, {low:g} to {high:g}"
    start = f" ≥ {low:g}" if low is not None else f" > {above:g}" if above is not None else ""
    end = f" ≤ {high:g}" if high < math.inf else f" < {below:g}" if below is not None else ""
    return f"{kind}{start}{' and' if start and end else ''}{end}"


def default(field: FieldInfo) -> str:
    """The value of a key that is left out."""
    if field.is_required():
        return "must be given"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, tuple):
        return f"`{list(value)}`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return "none" if value is None else f"`{value}`"


def key_rows(spec: type[Spec]) -> list[list[str]]:
    """Key, its values, its default and its meaning, for each key but the family."""
    about = attributes(spec)
    return [
        [f"`{name}`", allowed(field.annotation, field.metadata), default(field), about[name]]
        for name, field in spec.model_fields.items()
        if name != "family"
    ]


def keys_of(spec: type[Spec]) -> str:
    """The table of a spec's keys."""
    return table(["key", "values", "default", "meaning"], key_rows(spec))


def keys_of_study() -> str:
    """The table of a study file's own keys, linked to the sections of those that have keys."""
    rows = []
    for key, may_be, value, about in key_rows(StudyFile):
        name = key.strip("`")
        if name in PARTS:
            may_be = f"[its keys](#{name})"
            value = value if name in ("cells", "model") else "the paper's"
        rows.append([key, may_be, value, about])
    return table(["key", "values", "default", "meaning"], rows)


def keys_of_cells() -> str:
    """The table of the keys of an entry of ``cells``."""
    rows = []
    for key, may_be, value, about in key_rows(CellItem):
        name = key.strip("`")
        if name in PARTS:
            may_be, value = f"[its keys](#{name})", "the study's"
        else:
            may_be = may_be.replace("a list of integers ≥ 1", "integer ≥ 1, or a list")
            value = "must be given" if value == "`[]`" else value
        rows.append([key, may_be, value, about])
    return table(["key", "values", "default", "meaning"], rows)


def keys_of_families(specs: tuple[type[Spec], ...]) -> str:
    """The table of families, and below it that of their keys."""
    names = [_family(spec) for spec in specs]
    first = table(
        ["family", "meaning"], [[f"`{n}`", summary(s)] for n, s in zip(names, specs, strict=True)]
    )
    rows = [
        [f"`{name}`", *row]
        for name, spec in zip(names, specs, strict=True)
        for row in key_rows(spec)
    ]
    return f"{first}\n\n{table(['family', 'key', 'values', 'default', 'meaning'], rows)}"


def _family(spec: type[Spec]) -> str:
    return str(get_args(spec.model_fields["family"].annotation)[0])


def models() -> str:
    """The table of models that are trained, and that of constructions."""
    trained = [record for record in RECORDS if record.algorithm is None]
    made = [record for record in RECORDS if record.algorithm is not None]
    first = table(
        ["model", "paper", "score", "passes at", "own defaults", "does not take"],
        [[f"`{r.name}`", r.section, _score(r), _target(r), _own(r), _unused(r)] for r in trained],
    )
    second = table(
        ["model", "paper", "passes at", "graphs"],
        [
            [
                f"`{{construction: {r.algorithm}}}`",
                r.section,
                _target(r),
                "permutations" if r.one_target else "any",
            ]
            for r in made
        ],
    )
    return f"{first}\n\n{second}"


def _score(record: Model) -> str:
    words = {"F1": "test micro-F1", "error": "test error (MSE)", "accuracy": "test accuracy"}
    return words[record.score] + (", lower is better" if record.minimised else "")


def _target(record: Model) -> str:
    target = Search().target if record.target is None else record.target
    return f"{target:g}" if record.finds_thresholds else "–"


def _own(record: Model) -> str:
    return ", ".join(f"`{key}: {value}`" for key, value in record.training.items()) or "–"


def _unused(record: Model) -> str:
    keys = [f"`{key}`" for key in record.unused_keys]
    return ", ".join([*keys, *(["graphs but permutations"] if record.one_target else [])]) or "–"


PIECES: dict[str, Callable[[], str]] = {
    "keys study": keys_of_study,
    "keys cells": keys_of_cells,
    "keys search": partial(keys_of, Search),
    "keys training": partial(keys_of, Training),
    "keys context": partial(keys_of, Context),
    "keys construction": partial(keys_of, Construction),
    "keys graph": partial(keys_of_families, GRAPHS),
    "keys database": partial(keys_of_families, DATABASES),
    "keys facts": partial(keys_of, Facts),
    "keys per": partial(keys_of, Settings),
    "keys embedding": partial(keys_of_families, EMBEDDINGS),
    "models": models,
}
