"""A study as written: finds its text, parses it as YAML, and sets what ``--set`` overrides."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib import resources
from itertools import takewhile
from pathlib import Path
from typing import Any

import yaml
from yaml.resolver import Resolver

from rgr_dist.study.errors import StudyError, within
from rgr_dist.study.input_file import LONGEST, opened
from rgr_dist.study.spec import nearest

LARGEST = 1
"""MiB of the largest study file."""
MOST_VALUES = 100_000
"""Keys and values of the largest study."""
MOST_COPIED = 2**20
"""Characters of text that the aliases of a study may stand for, together."""
DEEPEST = 50
"""Times that the values of a study may be nested."""
DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9]{0,99})?(\.[0-9]{0,99})?([eE][-+][0-9]{1,3})?")


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
    """What YAML says, as JSON has it: mappings of text, lists, text, numbers, true, false, null.

    Of plain scalars only decimal numbers, true, false and null are more than text; whatever else
    YAML 1.1 would convert is refused, and so is every tag. A number such as 1e-3, which YAML 1.1
    reads as text, stays text.

    Raises:
        StudyError: it is not valid YAML, says more than JSON, or is too large or too deep.
    """
    try:
        return _Document(text).value
    except (yaml.YAMLError, UnicodeError) as error:
        mark, said = getattr(error, "problem_mark", None), str(error)
        if mark is not None:  # less the parser's excerpt
            said = f"line {mark.line + 1}: {getattr(error, 'problem', '')}"
        raise StudyError(f"not valid YAML: {' '.join(said.split())}") from None


class _Document:
    """The value of a YAML document, built from the parser's events as they come.

    Raises:
        StudyError: it says more than JSON, or is too large.
    """

    def __init__(self, text: str) -> None:
        self._events = yaml.parse(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        self._yaml_1_1: Any = Resolver()  # its types are not known
        self._named: dict[str, Any] = {}
        self._count = self._copied = 0
        starts = (one for one in self._events if isinstance(one, yaml.DocumentStartEvent))
        values = [self._value(next(self._events), 0) for _ in starts]
        if len(values) > 1:
            raise StudyError("it holds several documents; give one")
        self.value = values[0] if values else None

    def _value(self, event: Any, depth: int) -> Any:
        """The value that starts with an event."""
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._named:
                raise StudyError(f"line {line}: *{event.anchor} names nothing that ends before it")
            return self._copy(self._named[event.anchor], depth)
        if event.tag is not None:
            tag = event.tag.replace("tag:yaml.org,2002:", "!!")
            raise StudyError(f"line {line}: the tag {tag} is not read here; leave it out")
        self._count_one(depth)
        value: Any
        if isinstance(event, yaml.ScalarEvent):
            value = self._plain(event.value, line) if event.implicit[0] else event.value
        elif isinstance(event, yaml.SequenceStartEvent):
            value = [self._value(one, depth + 1) for one in self._until(yaml.SequenceEndEvent)]
        else:
            value = self._mapping(line, depth + 1)
        if event.anchor is not None:
            self._named[event.anchor] = value
        return value

    def _mapping(self, line: int, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for event in self._until(yaml.MappingEndEvent):
            key = self._value(event, depth)
            if not isinstance(key, str):
                raise StudyError(f"line {event.start_mark.line + 1}: a key is no text; quote it")
            if key in found:
                raise StudyError(f"the mapping at line {line} has '{key}' twice; write it once")
            found[key] = self._value(next(self._events), depth)
        return found

    def _plain(self, text: str, line: int) -> Any:
        """The value of a scalar without quotes."""
        kind = self._yaml_1_1.resolve(yaml.ScalarNode, text, (True, False)).rpartition(":")[2]
        if kind in ("str", "null"):
            return text if kind == "str" else None
        if kind == "bool" and text.lower() in ("true", "false"):
            return text.lower() == "true"
        if kind in ("int", "float") and DECIMAL.fullmatch(text):
            return int(text) if kind == "int" else float(text)
        raise StudyError(
            f"line {line}: {text[:LONGEST]!r} is not read here; give a decimal number of at most "
            "100 digits, true, false or null, or text in quotes"
        )

    def _copy(self, value: Any, depth: int) -> Any:
        """What an alias stands for."""
        self._count_one(depth)
        if isinstance(value, list):
            return [self._copy(one, depth + 1) for one in value]
        if isinstance(value, dict):
            return {self._copy(key, depth): self._copy(value[key], depth + 1) for key in value}
        if isinstance(value, str):  # kept once, but written out each time
            self._copied += len(value)
            if self._copied > MOST_COPIED:
                raise StudyError(f"its aliases stand for more than {MOST_COPIED:,} characters")
        return value

    def _count_one(self, depth: int) -> None:
        self._count += 1
        if self._count > MOST_VALUES:
            raise StudyError(f"it holds more than {MOST_VALUES:,} values, aliases written out")
        if depth > DEEPEST:
            raise StudyError(f"nested too deeply, more than {DEEPEST} times")

    def _until(self, end: type[yaml.Event]) -> Iterator[Any]:
        return takewhile(lambda event: not isinstance(event, end), self._events)


def _text(source: str) -> str:
    """The text of a study."""
    names, path = shipped_studies(), Path(source)
    if source in names:
        return shipped_text(source)
    if len(path.parts) == 1 and path.suffix not in {".yaml", ".yml"} and not _exists(path):
        raise StudyError(
            f"study {source!r}: unknown; {nearest(source, names)}, or a YAML file's path"
        )
    with opened(path, "give a readable YAML file", LARGEST) as file:
        return file.read().decode()


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # no file can have that name
        return False


def _is_text(given: str) -> bool:
    """Whether an argument was UTF-8; other bytes stand in it as half of a character."""
    try:
        given.encode()
    except UnicodeEncodeError:
        return False
    return True


def _override(document: dict[str, Any], override: str) -> None:
    if not _is_text(override):
        raise StudyError("not text in UTF-8")
    key, equals, value = override.partition("=")
    *path, last = key.strip().split(".")
    if not equals or not all((*path, last)) or len(path) > DEEPEST:
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
