"""Reads the file of an attention layer without running it: its class, its keys and their defaults.

``models.own_layer`` says what the class must have, and runs it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field, StrictBool, StrictInt, StrictStr, TypeAdapter, ValidationError

from rgr_dist.study import assets
from rgr_dist.study.errors import StudyError
from rgr_dist.study.layer import Key, Layer
from rgr_dist.study.spec import Real, nearest
from rgr_dist.study.tables import reading

SIZES = ("d_model", "h", "d_k")
"""The first fields of every layer's class."""
METHODS = ("parameters", "scores")
"""Methods that a layer's class must define; ``cached`` and ``loss`` are optional.

A torch module must define ``__init__``, which takes the sizes first, and ``forward``.
"""
KINDS: Mapping[str, TypeAdapter[Any]] = {
    "int": TypeAdapter(Annotated[StrictInt, Field(ge=-(2**63), lt=2**63)]),
    "float": TypeAdapter(Real),
    "str": TypeAdapter(Annotated[StrictStr, Field(max_length=100)]),
    "bool": TypeAdapter(StrictBool),
}
"""The types that a key may have, as a file writes them, and what checks a value of each."""
WANTED = "rgr new-model NAME writes a file to begin with"


@dataclass(frozen=True)
class Fields:
    """What the text of a file says about its layer.

    Attributes:
        name: name of its class.
        kinds: the type of each key of its own, by name.
        defaults: the default of each key that has one, by name.
    """

    name: str
    kinds: Mapping[str, str]
    defaults: Mapping[str, Key]


def zoo() -> list[str]:
    """The names of the layers that ship."""
    folder = resources.files("rgr_dist") / "models" / "zoo"
    names = (p.name.removesuffix(".py") for p in folder.iterdir() if p.name.endswith(".py"))
    return sorted(name for name in names if not name.startswith("_"))


def load_layer(written: Mapping[str, Any], home: Path) -> tuple[Layer, dict[str, Any]]:
    """Keep the text of a layer's file for this process.

    Args:
        written: ``file`` or ``zoo``, and the layer's own keys.
        home: the folder that the file's path is relative to.

    Returns:
        The layer, and the key that named its file, with the whole path.

    Raises:
        StudyError: there is no such layer, its file defines none, or a key is not one of its own.
    """
    if "file" in written and "zoo" in written:
        raise StudyError("model: both file and zoo; give one")
    of, name = ("zoo", written["zoo"]) if "zoo" in written else ("file", written["file"])
    own = {key: value for key, value in written.items() if key != of}
    if not isinstance(name, str) or not name:
        raise StudyError(f"model.{of}: {name!r} is not valid; give a name")
    if of == "zoo":
        if name not in zoo():
            raise StudyError(f"model.zoo: '{name}' is not known; {nearest(name, zoo())}")
        path = Path(str(resources.files("rgr_dist") / "models" / "zoo" / f"{name}.py"))
    else:
        path = (home / name).absolute()
        name = str(path)
    with reading(path):
        text = path.read_text(encoding="utf-8-sig")
    try:
        fields = read_fields(text)
        if of == "file":
            _check_alone(text, path)
    except ValueError as error:
        raise StudyError(f"model.{of}: {path}: {error}; {WANTED}") from None
    keys = _values(fields, own)
    digest = assets.add(np.frombuffer(text.encode(), dtype=np.uint8))
    return Layer(digest=digest, name=fields.name, keys=tuple(sorted(keys.items()))), {of: name}


def read_fields(text: str) -> Fields:
    """The class of a file and its keys.

    Raises:
        ValueError: it is not Python, does not have exactly one such class, or its keys are invalid.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        raise ValueError(
            f"not valid Python{'' if line is None else f': line {line}'}: "
            f"{getattr(error, 'msg', error)}"
        ) from None
    found: list[ast.ClassDef] = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and (_is_layer(node) or _is_of(node, found)):
            found.append(node)
    if len(found) != 1:
        names = ", ".join(node.name for node in found)
        said = f"several classes are layers: {names}" if found else "no class is a layer"
        raise ValueError(
            f"{said}; one has the methods {' and '.join(METHODS)}, or is a torch module whose "
            "__init__ takes d_model, h and d_k"
        )
    (layer,) = found
    if not _has(layer, METHODS):
        return _fields_of_module(layer)
    fields = [node for node in layer.body if isinstance(node, ast.AnnAssign)]
    kinds = {node.target.id: node for node in fields if isinstance(node.target, ast.Name)}
    if tuple(kinds)[:3] != SIZES or any(kinds[size].value is not None for size in SIZES):
        raise ValueError(
            f"the first fields of {layer.name} are not d_model: int, h: int, d_k: int, "
            "each without a default"
        )
    own = {name: node for name, node in kinds.items() if name not in SIZES}
    return _keys(layer, {name: (node.annotation, node.value) for name, node in own.items()})


def _fields_of_module(layer: ast.ClassDef) -> Fields:
    """The keys of a torch module, which its ``__init__`` takes after the sizes."""
    arguments = _init_of(layer)
    defaults = [None] * (len(arguments.args) - len(arguments.defaults)) + arguments.defaults
    own = list(zip(arguments.args, defaults, strict=True))[1 + len(SIZES) :]
    own += zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return _keys(layer, {one.arg: (one.annotation, default) for one, default in own})


def _keys(
    layer: ast.ClassDef, own: Mapping[str, tuple[ast.expr | None, ast.expr | None]]
) -> Fields:
    """A layer's keys, from the type and the default of each."""
    types = {name: _text(kind) if kind else "unknown" for name, (kind, _) in own.items()}
    for name, kind in types.items():
        if kind not in KINDS:
            raise ValueError(f"the key {name} is of type {kind}; give {', '.join(KINDS)}")
        if name in ("file", "zoo", "cached", "loss", *METHODS):
            raise ValueError(f"the key {name} has the name of one of ours; give another")
    defaults = {
        name: _default(name, types[name], default)
        for name, (_, default) in own.items()
        if default is not None
    }
    return Fields(layer.name, types, defaults)


def _is_layer(node: ast.ClassDef) -> bool:
    """Whether a class has a layer's methods, or is a module that takes the sizes."""
    if _has(node, METHODS):
        return True
    if not _has(node, ("__init__", "forward")):
        return False
    return tuple(one.arg for one in _init_of(node).args[1 : 1 + len(SIZES)]) == SIZES


def _is_of(node: ast.ClassDef, layers: Sequence[ast.ClassDef]) -> bool:
    """Whether a class is derived from one of these layers."""
    bases = {base.id for base in node.bases if isinstance(base, ast.Name)}
    return not bases.isdisjoint(layer.name for layer in layers)


def _has(node: ast.ClassDef, methods: Sequence[str]) -> bool:
    return {one.name for one in node.body if isinstance(one, ast.FunctionDef)}.issuperset(methods)


def _init_of(node: ast.ClassDef) -> ast.arguments:
    """What the ``__init__`` of a class takes."""
    functions = [one for one in node.body if isinstance(one, ast.FunctionDef)]
    return [one.args for one in functions if one.name == "__init__"][-1]  # Python takes the last


def _default(name: str, kind: str, node: ast.expr) -> Key:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError):
        raise ValueError(
            f"the default of {name} is {_text(node)}; give a number, text, True or False"
        ) from None
    return _as(name, kind, value)


def _text(node: ast.expr) -> str:
    try:
        text = ast.unparse(node)
    except RecursionError:
        text = ""
    return text if 0 < len(text) <= 80 else "a long expression"


def _as(name: str, kind: str, value: Any) -> Key:
    """The value of a key, converted to its type.

    Raises:
        ValueError: the value is of another type.
    """
    try:
        known: Key = KINDS[kind].validate_python(value)
    except ValidationError as error:
        said = error.errors()[0]["msg"].lower()
        shown = repr(value)
        shown = shown if len(shown) <= 60 else f"{shown[:57]}…"
        told = f"{name}: {shown} is not valid; give one of type {kind} ({said})"
        raise ValueError(told) from None
    if isinstance(known, str) and not known.isprintable():
        raise ValueError(f"{name}: {known!r} is not valid; give text that can be printed")
    return known


def _values(fields: Fields, own: Mapping[str, Any]) -> dict[str, Key]:
    """Every key of a layer: as written, or its default.

    Raises:
        StudyError: a key is not one of the layer's, is missing, or has a value of another type.
    """
    for key in own:
        if key not in fields.kinds:
            valid = nearest(key, fields.kinds) if fields.kinds else "it has no keys of its own"
            raise StudyError(f"model.{key}: unknown key of {fields.name}; {valid}")
    for key in fields.kinds:
        if key not in own and key not in fields.defaults:
            raise StudyError(f"model.{key}: missing; it has no default")
    try:
        values = {**fields.defaults, **own}
        return {key: _as(key, kind, values[key]) for key, kind in fields.kinds.items()}
    except ValueError as error:
        raise StudyError(f"model.{error}") from None


def _check_alone(text: str, path: Path) -> None:
    """Make sure that a file imports none of the files next to it, which its digest leaves out.

    Raises:
        ValueError: it imports one.
    """
    for node in ast.walk(ast.parse(text)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = ["." if node.level else str(node.module)]
        for name in names:
            first = name.partition(".")[0]
            beside = (path.parent / f"{first}.py", path.parent / first / "__init__.py")
            if not first or any(one.exists() for one in beside):
                raise ValueError(
                    f"it imports {name} from a file beside it, which workers do not have; copy "
                    "that code into the layer's file"
                )
