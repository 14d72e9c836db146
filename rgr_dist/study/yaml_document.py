"""A study as written: finds its text, parses it as YAML, and sets what ``--set`` overrides."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from itertools import takewhile
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import yaml
from yaml.resolver import Resolver

from rgr_dist.study.errors import StudyError, within
from rgr_dist.study.spec import EXPONENT, nearest
from rgr_dist.study.tables import LONGEST, reading

MOST_VALUES = 100_000
"""Keys and values of the largest study."""
DEEPEST = 50
"""How many levels deep the values of a study may be nested."""
MOST_BITS = 10_000
"""Bits of a whole number, some 3,000 digits; Python prints up to 4,300."""
DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9]{0,99})?(\.[0-9]{0,99})?([eE][-+]?[0-9]{1,3})?")


class _Kinds(Resolver):
    """What kind of value a scalar without quotes is."""


class _Dumper(yaml.SafeDumper):
    """Puts text in quotes that would be read as something else."""


_NUMBER = "tag:yaml.org,2002:float", re.compile(f"{EXPONENT}$"), [*"-+.0123456789"]
for _class in (_Kinds, _Dumper):
    _class.add_implicit_resolver(*_NUMBER)


def shipped_studies() -> list[str]:
    """The names of the studies that come with the package."""
    folder = resources.files("rgr_dist") / "studies"
    return sorted(p.name[:-5] for p in folder.iterdir() if p.name.endswith(".yaml"))


def shipped_text(name: str) -> str:
    """The text of a shipped study's file."""
    return (resources.files("rgr_dist") / "studies" / f"{name}.yaml").read_text(encoding="utf-8")


def read_document(source: str, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """The keys of a shipped study, by name, or of a study file, by path, with overrides.

    Raises:
        StudyError: the source is unknown or unreadable, or an override is not ``a.b=c``.
    """
    text = _text(source)
    with within(f"{source}: "):
        document = load_yaml(text)
        if document is None:
            raise StudyError("it holds no key; rgr init NAME writes a study to begin with")
        if not isinstance(document, dict):
            raise StudyError("a study is a mapping with the keys name, cells, search, …")
    for override in overrides:
        with within(f"--set {override}: "):
            _override(document, override)
    return document


def load_yaml(text: str) -> Any:
    """A YAML text as JSON values: mappings with text keys, lists, text, numbers, true, false, null.

    Among plain scalars, only decimal numbers, true, false and null are not text; whatever else
    YAML 1.1 would convert is refused, and so are tags, anchors and aliases.

    Raises:
        StudyError: it is not valid YAML, goes beyond JSON, or is too large or nested too deeply.
    """
    try:
        events = _checked(text)
        values = [_value(event, events) for event in events]
    except (yaml.YAMLError, UnicodeError) as error:
        mark, said = getattr(error, "problem_mark", None), str(error)
        if mark is not None:  # without the parser's excerpt
            said = f"line {mark.line + 1}: {getattr(error, 'problem', '')}"
        raise StudyError(f"not valid YAML: {' '.join(said.split())}") from None
    return values[0] if values else None


def yaml_of(document: Mapping[str, Any]) -> str:
    """JSON values as the YAML text from which ``load_yaml`` reads them again."""
    text: str = yaml.dump(document, Dumper=_Dumper, sort_keys=False)
    return text


def plain(value: Any, deep: int = DEEPEST) -> Any:
    """A value as ``load_yaml`` would give it: converts numpy's values, tuples, ranges and paths.

    A whole number that Python would not print becomes infinite, which no key takes.

    Args:
        deep: how many more levels to convert; deeper ones stay as they are.
    """
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, PathLike):
        return fspath(value)
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        return math.inf if value > 0 else -math.inf
    if isinstance(value, Mapping) and deep:
        return {
            plain(key) if isinstance(key, int) else key: plain(one, deep - 1)
            for key, one in value.items()
        }
    if isinstance(value, list | tuple | range) and deep:
        return [plain(one, deep - 1) for one in value]
    return value


def _checked(text: str) -> Iterator[Any]:
    """The parser's events for a document's values, one at a time.

    Raises:
        StudyError: the values go beyond JSON, are too many, or are nested too deeply.
    """
    documents = values = depth = 0
    event: Any  # one of the parser's kinds
    for event in yaml.parse(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        documents += isinstance(event, yaml.DocumentStartEvent)
        values += isinstance(event, yaml.NodeEvent)
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if documents > 1:
            raise StudyError("it holds several documents; give one")
        if values > MOST_VALUES:
            raise StudyError(f"it holds more than {MOST_VALUES:,} values")
        if depth > DEEPEST:
            raise StudyError(f"nested too deeply, more than {DEEPEST} times")
        for kind in ("tag", "anchor"):  # an alias names its anchor
            if (name := getattr(event, kind, None)) is not None:
                name = name.replace("tag:yaml.org,2002:", "!!")
                line = event.start_mark.line + 1
                raise StudyError(f"line {line}: the {kind} {name} is not read here; leave it out")
        if isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent):
            yield event


def _value(event: Any, events: Iterator[Any]) -> Any:
    """The value that starts with an event; consumes the further events that it consists of."""
    line = event.start_mark.line + 1
    if isinstance(event, yaml.ScalarEvent):
        return _plain(event.value, line) if event.implicit[0] else event.value
    inner = takewhile(lambda one: not isinstance(one, yaml.CollectionEndEvent), events)
    if isinstance(event, yaml.SequenceStartEvent):
        return [_value(one, events) for one in inner]
    found: dict[str, Any] = {}
    for one in inner:
        key = _value(one, events)
        if not isinstance(key, str):
            raise StudyError(f"line {one.start_mark.line + 1}: a key is no text; quote it")
        if key in found:
            raise StudyError(f"the mapping at line {line} has '{key}' twice; write it once")
        found[key] = _value(next(events), events)
    return found


def _plain(text: str, line: int) -> Any:
    """The value of a scalar without quotes."""
    kinds: Any = _Kinds()  # has no type hints
    kind = kinds.resolve(yaml.ScalarNode, text, (True, False)).rpartition(":")[2]
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


def is_known(source: str) -> bool:
    """Whether a source is a shipped study or a file, or looks like a path."""
    path = Path(source)
    is_path = len(path.parts) != 1 or path.suffix in {".yaml", ".yml"}
    return source in shipped_studies() or is_path or path.exists()


def _text(source: str) -> str:
    """The text of a study."""
    if not source.strip():
        raise StudyError(f"study {source!r}: no name; give a shipped study, or a YAML file's path")
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
    if not (equals and key.isprintable() and all((*path, last))) or len(path) > DEEPEST:
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
