"""The file of an attention layer: its class, its keys and their defaults, and its identity.

``models`` says what the class must have; before a study trains, the engines try it.
"""

from __future__ import annotations

import hashlib
import inspect
import io
import linecache
import sys
import tokenize
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from rgr_dist.study import assets
from rgr_dist.study.errors import StudyError, as_written, reading, within
from rgr_dist.study.layer import Key, Layer
from rgr_dist.study.spec import nearest

SIZES = ("d_model", "h", "d_k")
"""What the class of every layer takes first."""
KINDS: Mapping[str, type[Any]] = {one.__name__: one for one in (bool, int, float, str)}
"""The types that a key may have."""
WANTED = "rgr init --layer NAME writes a file to begin with"
WORDS = (tokenize.NAME, tokenize.NUMBER)
UNSEEN = (tokenize.COMMENT, tokenize.NL, tokenize.ENCODING, tokenize.ENDMARKER)
BREAKS = {tokenize.NEWLINE: "\n", tokenize.INDENT: "{", tokenize.DEDENT: "}"}


def zoo() -> list[str]:
    """The names of the layers that ship."""
    folder = resources.files("rgr_dist") / "models" / "zoo"
    names = (p.name.removesuffix(".py") for p in folder.iterdir() if p.name.endswith(".py"))
    return sorted(name for name in names if not name.startswith("_"))


def load_layer(written: Mapping[str, Any], home: Path) -> tuple[Layer, dict[str, Any]]:
    """Run a layer's file, and keep its text for this process.

    Args:
        written: ``file`` or ``zoo``, and the layer's own keys.
        home: the folder that the file's path is relative to.

    Returns:
        The layer, and the key that named its file, with the whole path.

    Raises:
        StudyError: there is no such layer, its file defines none, or a key is not one of its own.
    """
    of = "zoo" if "zoo" in written else "file"
    own = {key: value for key, value in written.items() if key != of}
    name = written[of]
    if not isinstance(name, str) or not name:
        raise StudyError(f"model.{of}: {as_written(name)} is not valid; give a name")
    if of == "zoo":
        if name not in zoo():
            raise StudyError(f"model.zoo: '{name}' is not known; {nearest(name, zoo())}")
        path = Path(str(resources.files("rgr_dist") / "models" / "zoo" / f"{name}.py"))
    else:
        path = (home / name).absolute()
        name = str(path)
    with within(f"model.{of}: "), reading(path):
        text = path.read_text(encoding="utf-8-sig")
        made = class_of(text)
    keys = _values(made, own)
    digest = hashlib.sha256(code_of(text).encode()).hexdigest()
    assets.take({digest: np.frombuffer(text.encode(), dtype=np.uint8)})
    return Layer(digest=digest, name=made.__name__, keys=tuple(sorted(keys.items()))), {of: name}


def code_of(text: str) -> str:
    """The code of a file without comments, docstrings and white space: a layer's identity.

    Raises:
        SyntaxError, tokenize.TokenError: it is not Python.
    """
    listed = tokenize.generate_tokens(io.StringIO(text).readline)
    tokens = [one for one in listed if one.type not in UNSEEN]
    told: list[str] = []
    is_unused = False
    for at, one in enumerate(tokens):
        begins = at == 0 or tokens[at - 1].type in BREAKS
        ends = at + 1 == len(tokens) or tokens[at + 1].type in BREAKS
        if is_unused := (one.type == tokenize.STRING and begins and ends) or (
            is_unused and one.type == tokenize.NEWLINE
        ):
            continue  # a docstring, or text that nothing uses
        follows = at > 0 and one.type in WORDS and tokens[at - 1].type in WORDS
        told.append(" " * follows + BREAKS.get(one.type, one.string))
    return "".join(told)


def class_of(text: str) -> type[Any]:
    """The class of a layer, from the text of its file, which is run as a module of its own.

    Raises:
        ValueError: it does not have exactly one such class.
        Exception: whatever the text raises when it is run.
    """
    name = f"rgr_layer_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name  # for torch.jit
    module = sys.modules[name] = ModuleType(name)  # where dataclasses look for it
    exec(compile(text, name, "exec"), module.__dict__)
    classes = [one for one in vars(module).values() if inspect.isclass(one)]
    found = [one for one in classes if one.__module__ == name and _is_layer(one)]
    if len(found) != 1:
        names = ", ".join(one.__name__ for one in found)
        raise ValueError(
            f"{f'several classes are layers: {names}' if found else 'no class is a layer'}; one "
            "takes d_model, h and d_k first, and has the methods parameters and scores, or is a "
            f"torch module; {WANTED}"
        )
    return found[0]


def _is_layer(made: type[Any]) -> bool:
    """Whether a class takes the sizes, and has a layer's methods or is a module."""
    is_layer = hasattr(made, "scores") and hasattr(made, "parameters")
    if not (is_layer or hasattr(made, "forward")):
        return False
    return tuple(inspect.signature(made).parameters)[:3] == SIZES


def _values(made: type[Any], own: Mapping[str, Any]) -> dict[str, Key]:
    """Every key of a layer: as written, or its default.

    Raises:
        StudyError: a key is not one of the layer's, is missing, or has a value of another type.
    """
    takes = dict([*inspect.signature(made).parameters.items()][3:])
    for key in own:
        if key not in takes:
            valid = nearest(key, takes) if takes else "it has no keys of its own"
            raise StudyError(f"model.{key}: unknown key of {made.__name__}; {valid}")
    values: dict[str, Key] = {}
    for key, one in takes.items():
        value: Any = own.get(key, one.default)
        if value is one.empty:
            raise StudyError(f"model.{key}: missing; it has no default")
        named = getattr(one.annotation, "__name__", str(one.annotation))
        kind: type[Any] = KINDS.get(named, type(one.default))
        if kind is float and type(value) is int:
            value = float(value)
        if type(value) is not kind or kind not in KINDS.values():
            names = kind.__name__ if kind in KINDS.values() else ", ".join(KINDS)
            raise StudyError(f"model.{key}: {as_written(value)} is not valid; give one of {names}")
        values[key] = value
    return values
