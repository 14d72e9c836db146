"""A study as written: finds its text, parses it as YAML, and sets what ``--set`` overrides."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib import resources
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import yaml

from rgr_dist.study.errors import StudyError, reading, within
from rgr_dist.study.spec import nearest


class _Loader(yaml.SafeLoader):
    """Safe YAML in which a mapping has each key once, and 1e-3 is a number as in YAML 1.2."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        """The mapping of a node.

        Raises:
            ConstructorError: a key is there twice.
        """
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for at, key in enumerate(keys):
            if key in keys[:at] and key != "<<":
                place = node.value[at][0].start_mark
                raise yaml.constructor.ConstructorError(
                    None, None, f"'{key}' is there twice", place
                )
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+$"),
    [*"-+.0123456789"],
)


STUDIES = Path(str(resources.files("rgr_dist"))) / "studies"
"""The folder of the studies that come with the package, and of their data."""


def shipped_studies() -> list[str]:
    """The names of the studies that come with the package."""
    return sorted(path.stem for path in STUDIES.glob("*.yaml"))


def shipped_text(name: str) -> str:
    """The text of a shipped study's file."""
    return (STUDIES / f"{name}.yaml").read_text(encoding="utf-8")


def load_yaml(text: str) -> Any:
    """The value of a YAML text, by ``yaml.safe_load``, but that no key may be there twice.

    Raises:
        StudyError: it is not valid YAML.
    """
    try:
        return yaml.load(text, _Loader)  # a safe loader
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        mark, said = getattr(error, "problem_mark", None), str(error)
        if mark is not None:  # without the parser's excerpt
            said = f"line {mark.line + 1}: {getattr(error, 'problem', '')}"
        raise StudyError(f"not valid YAML: {said}") from None


def read_document(source: str, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """The keys of a shipped study, by name, or of a study file, by path, with overrides.

    Raises:
        StudyError: the source is unknown or unreadable, or an override is not ``a.b=c``.
    """
    text = _text(source)
    with within(f"{source}: "):
        document = load_yaml(text)
        if not isinstance(document, dict):
            raise StudyError("a study is a mapping with the keys name, cells, search, …")
    for override in overrides:
        with within(f"--set {override}: "):
            _override(document, override)
    return document


def plain(value: Any) -> Any:
    """A value as YAML would give it: converts numpy's values, tuples, ranges and paths."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, PathLike):
        return fspath(value)
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list | tuple | range) else value


def is_known(source: str) -> bool:
    """Whether a source is a shipped study or a file, or looks like a path."""
    path = Path(source)
    is_path = len(path.parts) != 1 or path.suffix in {".yaml", ".yml"}
    return source in shipped_studies() or is_path or path.exists()


def _text(source: str) -> str:
    """The text of a study."""
    names, path = shipped_studies(), Path(source)
    if source in names:
        return shipped_text(source)
    if not is_known(source):
        raise StudyError(
            f"study {source!r}: unknown; {nearest(source, names)}, or a YAML file's path"
        )
    with reading(path):
        return path.read_text(encoding="utf-8")


def _override(document: dict[str, Any], override: str) -> None:
    key, equals, value = override.partition("=")
    *path, last = key.strip().split(".")
    if not (equals and all((*path, last))):
        raise StudyError("not of the form key.subkey=value")
    items = document.get("cells")
    for item in items if isinstance(items, list) else ():
        # The override holds in every cell, even if a cell has its own value.
        own = item if not path else item.get(path[0]) if isinstance(item, dict) else None
        if len(path) < 2 and isinstance(own, dict):
            own.pop(last, None)
    keys = document
    for part in path:
        keys = keys.setdefault(part, {})
        if not isinstance(keys, dict):
            raise StudyError(f"'{part}' has no keys below it")
    keys[last] = load_yaml(value)
