"""A study as written: finds its text, parses it as YAML, and sets what ``--set`` overrides."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from rgr_dist.study.errors import StudyError, within
from rgr_dist.study.input_file import reading
from rgr_dist.study.spec import nearest

LARGEST = 10 * 2**20
"""Bytes of the largest study file."""
MOST_VALUES = 1_000_000
"""Values of the largest study."""


def shipped_studies() -> list[str]:
    """The names of the studies that come with the package."""
    folder = resources.files("rgr_dist") / "studies"
    return sorted(p.name[:-5] for p in folder.iterdir() if p.name.endswith(".yaml"))


def shipped_text(name: str) -> str:
    """The file of a shipped study."""
    return (resources.files("rgr_dist") / "studies" / f"{name}.yaml").read_text(encoding="utf-8")


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


def load_yaml(text: str) -> Any:
    """Parse YAML, refusing a key that is written twice.

    Raises:
        StudyError: it is not valid YAML, or too large once its aliases are written out.
    """
    try:
        document = yaml.load(text, _OneOfEachKey)
        size = _expanded_size(document, {})
    except RecursionError:
        raise StudyError("not valid YAML: nested too deeply, or in itself") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        mark, said = getattr(error, "problem_mark", None), str(error)
        if mark is not None:  # less the parser's excerpt
            said = f"line {mark.line + 1}: {getattr(error, 'problem', '')}"
        raise StudyError(f"not valid YAML: {' '.join(said.split())}") from None
    if size > MOST_VALUES:
        raise StudyError(f"it holds more than {MOST_VALUES:,} values, aliases written out")
    return document


class _OneOfEachKey(yaml.SafeLoader):
    """Loads YAML, but refuses a key that is written twice, of which YAML keeps the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = next((key for i, key in enumerate(keys) if key in keys[:i]), None)
        if twice is not None:
            line = node.start_mark.line + 1
            raise ValueError(f"the mapping at line {line} has '{twice}' twice; write it once")
        return super().construct_mapping(node, deep)


def _expanded_size(value: Any, known: dict[int, int]) -> int:
    """How many values a document holds once its aliases are written out."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in known:
        inner = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_expanded_size(one, known) for one in inner)
    return known[id(value)]


def _text(source: str) -> str:
    """The text of a study."""
    names, path = shipped_studies(), Path(source)
    if source in names:
        return shipped_text(source)
    if len(path.parts) == 1 and path.suffix not in {".yaml", ".yml"} and not _exists(path):
        raise StudyError(
            f"study {source!r}: unknown; {nearest(source, names)}, or a YAML file's path"
        )
    with reading(path, "give a readable YAML file", LARGEST):
        return path.read_text("utf-8")


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # no file can have that name
        return False


def _override(document: dict[str, Any], override: str) -> None:
    key, equals, value = override.partition("=")
    *path, last = key.strip().split(".")
    if not equals or not all((*path, last)):
        raise StudyError("not of the form key.subkey=value")
    items = document.get("cells")
    for item in items if isinstance(items, list) else ():
        # The override holds in every cell, also where a cell has its own value.
        if len(path) == 1 and isinstance(item, dict) and isinstance(item.get(path[0]), dict):
            item[path[0]].pop(last, None)
    keys = document
    for part in path:
        keys = keys.setdefault(part, {})
        if not isinstance(keys, dict):
            raise StudyError(f"'{part}' has no keys below it")
    keys[last] = load_yaml(value)
