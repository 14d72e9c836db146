"""What a trainable is made of, as a digest: equal in every process, different if any part is.

A function is its instructions, with the globals, defaults, closure and modules that they use; a
class or module is its members; any other object is what cloudpickle would write of it. What comes
with Python, a package or us is taken by name: its version is not seen, and neither is what a
trainable reads from files.
"""

from __future__ import annotations

import dis
import importlib.util
import re
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from importlib.machinery import ModuleSpec
from itertools import chain
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import ray
from ray.cloudpickle import CloudPickler

HOMES = *Path(__file__).parents[1:3], Path(sysconfig.get_path("stdlib"))
INSTALLED = {home.resolve() for home in HOMES}
"""Where lies what is taken by name, besides the packages."""


def digest(thing: Any) -> str:
    """A digest of an object by its content: 16 hexadecimal digits.

    Raises:
        Exception: whatever an object raises that is asked for its content.
    """
    met: dict[int, tuple[int, Any]] = {}  # kept alive, as an id may else be another's

    def of(thing: Any) -> bytes:
        """A container by what it holds, any other object but once."""
        kind, parts, plain = type(thing), [], b""
        if kind is bytes:
            plain = thing
        elif thing is None or kind in (bool, int, float, complex, str):
            plain = re.sub(r" at 0x[0-9a-f]+", "", repr(thing)).encode()
        elif kind in (list, tuple):
            parts = thing
        elif kind is dict:
            parts = sorted(thing.items(), key=lambda item: str(item[0]))
        elif kind in (set, frozenset):
            parts = sorted(map(digest, thing))
        elif id(thing) in met:
            parts = [met[id(thing)][0]]
        else:
            met[id(thing)] = len(met), thing
            parts = _parts(thing)
        return sha256(b" ".join([kind.__name__.encode(), *map(of, parts), plain])).digest()

    return of(thing).hex()[:16]


def _parts(thing: Any) -> list[Any]:
    """What an object consists of."""
    if isinstance(thing, FunctionType | ModuleType | type):
        return [_installed(thing) or _written(thing)]
    if isinstance(thing, CodeType):  # without its place: it may move, and comments do not count
        names = thing.co_names, thing.co_varnames, thing.co_freevars, thing.co_cellvars
        counts = thing.co_argcount, thing.co_posonlyargcount, thing.co_kwonlyargcount
        flags = thing.co_flags, thing.co_exceptiontable
        return [thing.co_code, thing.co_consts, names, counts, flags]
    if (torch := sys.modules.get("torch")) and isinstance(thing, torch.Tensor):
        flat = thing.detach().cpu().contiguous().flatten().view(torch.uint8)
        return [thing.dtype, tuple(thing.shape), flat.numpy().tobytes()]
    if isinstance(thing, ray.ObjectRef):
        return [ray.get(thing)]
    if hasattr(thing, "__wrapped__") and _installed(type(thing)):  # by functools.cache, numba, jax
        return [thing.__wrapped__]
    try:
        special = CloudPickler.dispatch_table.get(type(thing))
        made = special(thing) if special else thing.__reduce_ex__(4)
    except Exception:  # a lock, a generator, an open connection
        return [type(thing), getattr(thing, "__dict__", None)]
    if isinstance(made, str):  # a name
        return [getattr(thing, "__module__", ""), made]
    return [list(part) if isinstance(part, Iterator) else part for part in made]


def _written(thing: FunctionType | ModuleType | type) -> dict[str, Any]:
    """The members of the user's own function, class or module."""
    if not isinstance(thing, FunctionType):
        pythons = {name for name in vars(thing) if name[:2] == name[-2:] == "__"}  # as __doc__ is
        own = {k: one for k, one in vars(thing).items() if k not in pythons or callable(one)}
        return own | {"bases": getattr(thing, "__bases__", ())}
    steps = [*_steps(thing.__code__)]
    used = {step.argval for step in steps if step.opcode in dis.hasname}
    imported = [step.argval for step in steps if step.opname == "IMPORT_NAME"]
    return {
        "code": thing.__code__,
        "defaults": (thing.__defaults__, thing.__kwdefaults__),
        "closure": thing.__closure__,
        "globals": {name: one for name, one in thing.__globals__.items() if name in used},
        "imports": _imports(imported, thing.__globals__.get("__package__") or ""),
        "own": {name: one for name, one in vars(thing).items() if name != "_resources"},  # Tune's
    }


def _steps(code: CodeType) -> Iterator[dis.Instruction]:
    """The instructions of code, and of all functions and classes in it."""
    inner = (_steps(one) for one in code.co_consts if isinstance(one, CodeType))
    return chain(dis.get_instructions(code), *inner)


def _imports(names: list[str], package: str) -> list[ModuleType]:
    """The modules of the user's own that code imports as it runs."""
    found = []
    for name in (*names, *(f"{package}.{name}".strip(".") for name in names if package)):
        with suppress(Exception):  # whatever a module of the user's raises: its trials will too
            spec = importlib.util.find_spec(name)
            if spec and not _is_installed(spec):
                found.append(importlib.import_module(name))
    return found


def _installed(thing: Any) -> str | None:
    """The full name of what is installed, or comes with Python or us; None for the user's own."""
    if isinstance(thing, ModuleType):
        return thing.__name__ if _is_installed(thing.__spec__) else None
    found: Any = sys.modules.get(thing.__module__ or "")
    if not _is_installed(getattr(found, "__spec__", None)):
        return None
    for part in thing.__qualname__.split("."):
        found = getattr(found, part, None)
    return f"{thing.__module__}.{thing.__qualname__}" if found is thing else None


def _is_installed(spec: ModuleSpec | None) -> bool:
    """Whether a module comes with Python, a package or us, by its files."""
    if spec is None:  # of a script, or a notebook
        return False
    if spec.origin in ("built-in", "frozen"):
        return True
    path = Path(spec.origin or next(iter(spec.submodule_search_locations or ()), "")).resolve()
    is_package = not {"site-packages", "dist-packages"}.isdisjoint(path.parts)
    return is_package or not INSTALLED.isdisjoint(path.parents)
