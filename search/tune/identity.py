"""What a trainable is made of, as a digest: equal in every process, different if any part is.

A function is its instructions, and the globals, defaults and closure that they use; a method has
its object too, a class its members, a module all that it holds. What is installed is taken by name:
its version is not seen, and neither is what a trainable reads from files.
"""

from __future__ import annotations

import dis
import hashlib
import importlib.util
import io
import re
import sys
import sysconfig
from contextlib import suppress
from itertools import chain
from pathlib import Path
from types import CodeType, FunctionType, GetSetDescriptorType, MemberDescriptorType, ModuleType
from typing import Any

import ray
from ray.cloudpickle import CloudPickler

OURS = Path(__file__).parents[2].resolve()
INSTALLED = {Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib")}


def digest(thing: Any) -> str:
    """A digest of an object by its content: 16 hexadecimal digits.

    Raises:
        ValueError: it holds what cannot be told apart, such as a list that contains itself.
    """
    written = io.BytesIO()
    try:
        _ByValue(written).dump(_plain(thing))  # type: ignore[no-untyped-call]
    except Exception as error:
        raise ValueError(f"what it is made of cannot be told: {error}") from error
    return hashlib.sha256(written.getvalue()).hexdigest()[:16]


class _ByValue(CloudPickler):
    """Writes an object for its digest alone: it is never read."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=4)  # type: ignore[no-untyped-call]
        self.fast = True  # no memo: whether two equal strings are one object is chance
        self._met: dict[int, tuple[int, Any]] = {}  # kept alive, as an id may else be another's

    def reducer_override(self, obj: Any) -> Any:
        """What stands for an object; ``NotImplemented`` leaves that to cloudpickle."""
        if obj is str or obj is _made_of:
            return NotImplemented
        if id(obj) in self._met:
            return str, (f"number {self._met[id(obj)][0]}",)
        self._met[id(obj)] = len(self._met), obj
        if isinstance(obj, CodeType):
            return str, (_instructions(obj),)
        if isinstance(obj, FunctionType | ModuleType | type):
            if name := _installed(obj):
                return str, (name,)
            return _made_of, (type(obj).__name__,), _plain(_parts(obj))
        if (torch := sys.modules.get("torch")) and isinstance(obj, torch.Tensor):
            flat = obj.detach().cpu().contiguous().flatten().view(torch.uint8)
            return _made_of, (f"{obj.dtype} {tuple(obj.shape)}",), flat.numpy().tobytes()
        if isinstance(obj, ray.ObjectRef):
            return _made_of, ("in the object store",), _plain(ray.get(obj))
        if hasattr(obj, "__wrapped__") and _installed(type(obj)):  # by functools.lru_cache, numba
            return _made_of, (type(obj).__name__,), obj.__wrapped__
        if type(obj) in self.dispatch_table:
            return NotImplemented
        try:
            made = obj.__reduce_ex__(4)
        except Exception:  # a lock, a generator, an open connection
            return _made_of, (type(obj).__name__,), _plain(getattr(obj, "__dict__", None))
        if isinstance(made, str):
            return str, (f"{getattr(obj, '__module__', '')}.{made}",)
        return (*made[:2], *map(_plain, made[2:3]), *made[3:])


def _made_of(kind: str) -> None:
    """Stands for an object whose parts follow."""


def _parts(obj: Any) -> dict[str, Any]:
    """What a function, class or module of the user's own consists of."""
    if isinstance(obj, FunctionType):
        used = sorted(_names(obj.__code__) & obj.__globals__.keys())
        return {
            "code": obj.__code__,
            "defaults": (obj.__defaults__, obj.__kwdefaults__),
            "closure": [_content(cell) for cell in obj.__closure__ or ()],
            "globals": {name: obj.__globals__[name] for name in used},
            "imports": _imports(obj.__code__, obj.__globals__.get("__package__") or ""),
            "own": {name: one for name, one in vars(obj).items() if name != "_resources"},
        }
    written = {name: one for name, one in vars(obj).items() if _counts(name, one)}
    return written | {"bases": getattr(obj, "__bases__", ())}


def _imports(code: CodeType, package: str) -> list[Any]:
    """The modules of the user's own that code imports as it runs."""
    names = [one.argval for one in dis.get_instructions(code) if one.opname == "IMPORT_NAME"]
    found = []
    for name in [*names, *(f"{package}.{name}".strip(".") for name in names if package)]:
        with suppress(Exception):  # whatever a module of the user's raises: its trials will too
            if spec := importlib.util.find_spec(name):
                places = [spec.origin, *(spec.submodule_search_locations or ())]
                found += [] if _is_installed(name, places) else [importlib.import_module(name)]
    inner = (_imports(one, package) for one in code.co_consts if isinstance(one, CodeType))
    return [*found, *chain.from_iterable(inner)]


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty: a function that has not been defined yet
        return None


def _counts(name: str, member: Any) -> bool:
    """Whether a member of a class or module is its author's, and not Python's own record of it."""
    is_pythons = name.startswith("__") and name.endswith("__") and not callable(member)
    return not is_pythons and not isinstance(member, GetSetDescriptorType | MemberDescriptorType)


def _names(code: CodeType) -> set[str]:
    """All names that code uses, that of the functions in it included."""
    inner = (_names(one) for one in code.co_consts if isinstance(one, CodeType))
    return {*code.co_names}.union(*inner)


def _instructions(code: CodeType) -> str:
    """Code without its place: the same if it is moved, or a comment is added."""
    constants = [
        _instructions(one) if isinstance(one, CodeType) else _constant(one)
        for one in code.co_consts
    ]
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    return repr((code.co_code, code.co_exceptiontable, constants, names, counts))


def _constant(one: Any) -> str:
    return repr(sorted(map(repr, one)) if isinstance(one, frozenset) else one)


def _plain(thing: Any) -> Any:
    """A container without what differs from process to process: a set's order, an address."""
    if type(thing) is dict:
        return {_plain(key): _plain(one) for key, one in thing.items()}
    if type(thing) in (list, tuple):
        return [type(thing).__name__, *map(_plain, thing)]
    if type(thing) in (set, frozenset):
        return ["set", *sorted(map(digest, thing))]
    if type(thing) is str and " at 0x" in thing:
        return re.sub(r" at 0x[0-9a-f]+", "", thing)
    return thing


def _installed(obj: Any) -> str | None:
    """The full name of what is installed, or comes with Python or us; None for the user's own."""
    is_module = isinstance(obj, ModuleType)
    home = obj.__name__ if is_module else getattr(obj, "__module__", None)
    module = sys.modules.get(home or "")
    if module is None or home == "__main__":
        return None
    found: Any = module
    if not is_module:
        for part in obj.__qualname__.split("."):
            found = getattr(found, part, None)
    places = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
    if found is not obj or not _is_installed(module.__name__, places):
        return None
    return f"{home}.{'' if is_module else obj.__qualname__}"


def _is_installed(name: str, places: list[str | None]) -> bool:
    """Whether a module comes with Python, a package or us, by its files."""
    path = next((Path(place).resolve() for place in places if place), None)
    if path is None or name in sys.builtin_module_names or name in sys.stdlib_module_names:
        return name.partition(".")[0] in {*sys.builtin_module_names, *sys.stdlib_module_names}
    return bool({"site-packages", "dist-packages"} & {*path.parts}) or any(
        place in path.parents for place in (OURS / "search", OURS / "rgr_dist", *INSTALLED)
    )
