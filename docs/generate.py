"""Writes the generated tables of the study file, the reference and facts, from the code itself.

    python docs/generate.py            # writes them anew
    python docs/generate.py --check    # exit status 1 if a table is out of date

A table stands between ``<!-- generated: NAME -->`` and ``<!-- / -->``. NAME is a key of ``TABLES``.
"""

from __future__ import annotations

import inspect
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pyarrow as pa
import typer.main
from pydantic.fields import FieldInfo

import rgr_dist
from rgr_dist.cli import app
from rgr_dist.facts.cell import Facts, Function, LowRank, Partial, Predicates
from rgr_dist.store.schema import RUNS
from rgr_dist.study.families import Binary, Gaussian, OneHot, Permutation, Regular
from rgr_dist.study.files import EdgesFile, TriplesFile, VectorsFile
from rgr_dist.study.models import RECORDS
from rgr_dist.study.search import Search
from rgr_dist.study.shipped import about
from rgr_dist.study.spec import LARGEST_COUNT, Spec
from rgr_dist.study.study_file import CellItem, StudyFile
from rgr_dist.study.training import Context, Training
from rgr_dist.study.yaml_document import shipped_studies

DOCS = Path(__file__).parent
PAGES = (DOCS / "study-file.md", DOCS / "reference.md", DOCS / "facts.md")
GRAPHS: tuple[type[Spec], ...] = (Permutation, Regular, EdgesFile)
EMBEDDINGS: tuple[type[Spec], ...] = (Gaussian, OneHot, Binary, VectorsFile)
DATABASES: tuple[type[Spec], ...] = (Function, Partial, LowRank, Predicates, TriplesFile)
LEFT_OUT = ("family", "parts")
"""Keys without a row: the table has a column for the first, and the second is no key of a file."""
MARKED = re.compile(r"<!-- generated: (?P<name>[^>]+?) -->.*?<!-- / -->", re.DOTALL)


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown, its columns as wide as they come."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def plain(text: str) -> str:
    """A docstring's text as Markdown: literals in single backticks, one line, no emphasis."""
    pieces = re.split(r"(``.*?``)", " ".join(text.split()))
    return "".join(
        piece[1:-1] if piece.startswith("``") else piece.replace("*", r"\*") for piece in pieces
    ).replace("|", r"\|")


def summary(of: Any) -> str:
    """The first paragraph of a docstring."""
    return plain((inspect.getdoc(of) or "").partition("\n\n")[0])


def attributes(spec: type[Spec]) -> dict[str, str]:
    """What the docstring of a spec, and those of what it is made from, say of each of its keys."""
    told: dict[str, str] = {}
    for one in reversed(spec.__mro__):
        _, _, listed = inspect.cleandoc(one.__doc__ or "").partition("Attributes:\n")
        entries = re.findall(
            r"^    (\w+): (.*?)(?=^    \w+: |\Z)", listed, re.DOTALL | re.MULTILINE
        )
        told |= {name: plain(text) for name, text in entries}
    return told


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
    if isinstance(value, Spec | dict):
        return "the paper's"
    if isinstance(value, tuple):
        return f"`{list(value)}`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return "none" if value is None else f"`{value}`"


def key_rows(spec: type[Spec]) -> list[list[str]]:
    """Key, its values, its default and its meaning, for each key but the family."""
    about_keys = attributes(spec)
    return [
        [f"`{name}`", allowed(field.annotation, field.metadata), default(field), about_keys[name]]
        for name, field in spec.model_fields.items()
        if name not in LEFT_OUT
    ]


def keys_of(spec: type[Spec]) -> str:
    """The table of a spec's keys."""
    return table(["key", "values", "default", "meaning"], key_rows(spec))


def keys_of_families(specs: tuple[type[Spec], ...]) -> str:
    """The table of families, and below it that of their keys."""
    names = [str(get_args(spec.model_fields["family"].annotation)[0]) for spec in specs]
    first = table(
        ["family", "meaning"], [[f"`{n}`", summary(s)] for n, s in zip(names, specs, strict=True)]
    )
    rows = [
        [f"`{name}`", *row]
        for name, spec in zip(names, specs, strict=True)
        for row in key_rows(spec)
    ]
    return f"{first}\n\n{table(['family', 'key', 'values', 'default', 'meaning'], rows)}"


def models() -> str:
    """The models that are trained, and what they are judged by."""
    words = {"F1": "test micro-F1", "error": "test error, lower is better", "accuracy": "accuracy"}
    rows = [
        [
            f"`{record.name}`",
            record.section,
            words[record.score],
            f"{Search().target if record.target is None else record.target:g}",
            ", ".join(f"`{key}: {value}`" for key, value in record.defaults.items()) or "–",
        ]
        for record in RECORDS
        if record.algorithm is None
    ]
    return table(["model", "source", "score", "passes at", "own defaults"], rows)


def studies() -> str:
    """The studies that ship."""
    rows = []
    for name in shipped_studies():
        told = about(name)
        rows.append([f"`{name}`", plain(told["question"]), told["paper"], told["on two cores"]])
    return table(["study", "asks", "paper", "on two cores"], rows)


def columns(schema: pa.Schema) -> str:
    """Column, type and meaning of a stored table."""
    rows = [
        [f"`{field.name}`", field.type, plain(field.metadata[b"about"].decode())]
        for field in schema
    ]
    return table(["column", "type", "meaning"], rows)


def verbs() -> str:
    """Every verb of the command line, with its options."""
    command: Any = typer.main.get_command(app)
    rows = []
    for name, verb in command.commands.items():
        given = [one.name.upper() for one in verb.params if one.param_type_name == "argument"]
        named = [one for one in verb.params if one.param_type_name == "option"]
        options = [f"`{max(one.opts, key=len)}`" for one in named if one.name != "help"]
        said = plain((verb.help or "").partition("\n\n")[0])
        rows.append([f"`{' '.join(['rgr', name, *given])}`", said, " ".join(options)])
    return table(["call", "does", "options"], rows)


def names() -> str:
    """What ``import rgr_dist`` gives."""
    shown = (name for name in rgr_dist.__all__ if name != "__version__")
    return table(
        ["name", "is"], [[f"`{name}`", summary(getattr(rgr_dist, name))] for name in shown]
    )


TABLES: dict[str, Callable[[], str]] = {
    "study": partial(keys_of, StudyFile),
    "cells": partial(keys_of, CellItem),
    "search": partial(keys_of, Search),
    "training": partial(keys_of, Training),
    "context": partial(keys_of, Context),
    "graph": partial(keys_of_families, GRAPHS),
    "embedding": partial(keys_of_families, EMBEDDINGS),
    "facts": partial(keys_of, Facts),
    "databases": partial(keys_of_families, DATABASES),
    "models": models,
    "studies": studies,
    "runs": partial(columns, RUNS),
    "verbs": verbs,
    "names": names,
}
"""The text of each table, by its name."""


def rewritten(text: str) -> str:
    """A page with every generated table written anew.

    Raises:
        KeyError: a marker names no table.
    """
    return MARKED.sub(
        lambda mark: (
            f"<!-- generated: {mark['name']} -->\n\n{TABLES[mark['name']]()}\n\n<!-- / -->"
        ),
        text,
    )


def main(arguments: list[str]) -> int:
    """Write the pages, or check them."""
    stale = [
        page for page in PAGES if page.read_text("utf-8") != rewritten(page.read_text("utf-8"))
    ]
    for page in stale:
        if arguments == ["--check"]:
            print(f"{page.name} is out of date: python docs/generate.py", file=sys.stderr)
        else:
            page.write_text(rewritten(page.read_text("utf-8")), "utf-8")
    return int(arguments == ["--check"] and bool(stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
