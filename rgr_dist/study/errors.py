"""Explains what is wrong with a study, in one line: what, where, and what would be valid."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from rgr_dist.faults import UserError

MOST_FAULTS = 3
"""Faults of a study that are told at once."""

DEEPEST = 50
"""Lists and mappings in brackets, one in the other, of the deepest study."""

MOST_VALUES = 1_000_000
"""Values of the largest study."""

AnySpec = TypeVar("AnySpec", bound="BaseModel")


class StudyError(UserError, ValueError):
    """The study cannot be used as written; the message says what, where and what would be valid."""


def load_yaml(text: str, where: str) -> Any:
    """Parse YAML, refusing a key that is written twice.

    Raises:
        StudyError: naming the line.
    """
    try:
        document = yaml.load(text, _OneOfEachKey)
        size = _expanded_size(document, {})
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise StudyError(f"{where}: not valid YAML: {_yaml_fault(error)}") from None
    except RecursionError:
        raise StudyError(f"{where}: not valid YAML: nested too deeply, or in itself") from None
    if size > MOST_VALUES:
        raise StudyError(f"{where}: it holds more than {MOST_VALUES:,} values, aliases written out")
    return document


def _expanded_size(value: Any, known: dict[int, int]) -> int:
    """How many values a document holds once its aliases are written out."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in known:
        inner = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_expanded_size(one, known) for one in inner)
    return known[id(value)]


def validated(
    spec: type[AnySpec], value: Any, where: str, prefix: str | Mapping[str, str]
) -> AnySpec:
    """A spec from plain values.

    Args:
        where: the study's file or name.
        prefix: the dotted path to ``value`` in the file, or one for each of its keys.

    Raises:
        StudyError: naming its faults, one for each key, those of unknown keys first.
    """
    try:
        return spec.model_validate(value)
    except ValidationError as error:
        faults = sorted(error.errors(), key=lambda fault: fault["type"] != "extra_forbidden")
        at_fault = {fault["loc"][:-1][:n] for fault in faults for n in range(len(fault["loc"]))}
        faults = [  # a list whose items are at fault is not too short as well
            one for one in faults if one["type"] != "too_short" or one["loc"] not in at_fault
        ]
        found: dict[str, str] = {}
        for fault in faults:
            key = str((fault["loc"] or ("",))[0])
            path = prefix if isinstance(prefix, str) else prefix.get(key, "")
            found.setdefault(
                _locate(spec, value, fault["loc"])[0],
                path + " ".join(_explain(spec, value, fault).split()),
            )
        more = len(found) - MOST_FAULTS
        told = [*list(found.values())[:MOST_FAULTS], *([f"{more} more"] if more > 0 else [])]
        raise StudyError(f"{where}: {'; '.join(told)}") from None


def _explain(spec: type[BaseModel], value: Any, error: Any) -> str:
    """One line for a pydantic error: key, what is wrong, what would be valid."""
    key, owner = _locate(spec, value, error["loc"])
    kind, given, bounds = error["type"], error.get("input"), error.get("ctx", {})
    if kind == "extra_forbidden":
        valid = list(owner.model_fields)
        near = difflib.get_close_matches(str(error["loc"][-1]), valid, 1)
        hint = f"did you mean '{near[0]}'? " if near else ""
        family = owner.model_fields["family"].default if "family" in valid else None
        which = f"valid with the family {family}" if isinstance(family, str) else "valid"
        return f"{key}: unknown key; {hint}{which}: {', '.join(valid)}"
    if kind == "union_tag_invalid":
        key, given, kind = f"{key}.family", bounds["tag"], "literal_error"
        bounds = {"expected": bounds["expected_tags"]}
    if kind == "literal_error":
        options = re.findall(r"'([^']*)'", bounds["expected"])
        near = difflib.get_close_matches(str(given), options, 1)
        hint = f"did you mean '{near[0]}'? " if near and len(options) > 1 else ""
        return f"{key}: {_shown(given)} is not known; {hint}valid: {', '.join(options)}"
    if kind == "missing":
        return f"{key}: missing; it has no default"
    if kind == "value_error":
        # A spec's own message starts with the key it is about; a value's does not.
        separator = "." if error["loc"] == () or _is_spec(spec, error["loc"]) else ": "
        return f"{key}{separator if key else ''}{bounds['error']}"
    if error["loc"][-1:] == ("[key]",):
        return f"{key}: the key {_shown(given)} is not text"
    wanted = {
        "tuple_type": "a list, or all" if key == "search.heads" else "a list",
        "too_short": f"at least {bounds.get('min_length')} of them",
        "dict_type": "a mapping of keys to values",
        "model_type": "a mapping of keys to values",
        "int_type": "an integer",
        "float_type": "a number",
        "float_parsing": "a number",
        "finite_number": "a finite number",
        "string_type": "a text",
        "string_pattern_mismatch": "letters, digits, '.', '_' and '-', a letter or digit first",
        "string_too_long": f"at most {bounds.get('max_length')} characters",
        "greater_than": f"a value above {bounds.get('gt')}",
        "greater_than_equal": f"at least {bounds.get('ge')}",
        "less_than": f"a value below {bounds.get('lt')}",
        "less_than_equal": f"at most {bounds.get('le')}",
    }.get(kind, error["msg"])
    return f"{key}: {_shown(given)} is not valid; give {wanted}"


UNION_BRANCHES = ("tuple[constrained-int, ...]", "literal['all']")
"""What pydantic adds to the path of a key that takes one of several types."""


def _shown(given: Any) -> str:
    """A value as a study would have it, cut short."""
    try:
        text = f"'{given}'" if isinstance(given, str) else json.dumps(given, default=str)
    except ValueError:  # it holds itself
        text = str(given)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _locate(
    spec: type[BaseModel], value: Any, loc: tuple[int | str, ...]
) -> tuple[str, type[BaseModel]]:
    """Dotted path of an error's key, as written in ``value``, and the spec of its last part."""
    name, owner = "", spec
    families: dict[Any, type[BaseModel]] = {}
    for part in loc:
        if isinstance(part, int):
            if isinstance(value, list | tuple):  # else a single value stood for a list of one
                name += f"[{part}]"
                value = value[part]
            continue
        if part == "[key]" or part in UNION_BRANCHES:
            continue
        if part in families:  # which spec of a union it is; not a key
            owner, families = families[part], {}
            continue
        value = value.get(part) if isinstance(value, dict) else None
        field = owner.model_fields.get(part)
        name += f".{part}" if name else part
        families = _families_of(field.annotation) if field is not None else {}
        inner = _spec_of(field.annotation) if field is not None else None
        owner = inner or owner
    return name, owner


def _is_spec(spec: type[BaseModel], loc: tuple[int | str, ...]) -> bool:
    """Whether an error is about a whole spec, not a value in it."""
    owner: type[BaseModel] | None = spec
    for part in loc:
        if isinstance(part, str) and part not in UNION_BRANCHES and owner is not None:
            field = owner.model_fields.get(part)
            owner = _spec_of(field.annotation) if field is not None else None
    return owner is not None


def _spec_of(annotation: Any) -> type[BaseModel] | None:
    candidates = [annotation, *getattr(annotation, "__args__", ())]
    for candidate in candidates:
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None


def _families_of(annotation: Any) -> dict[Any, type[BaseModel]]:
    """The specs of a union by the family that tells them apart."""
    specs = [spec for spec in getattr(annotation, "__args__", ()) if _spec_of(spec) is not None]
    named = [spec for spec in specs if "family" in spec.model_fields]
    return {spec.model_fields["family"].default: spec for spec in named}


class _OneOfEachKey(yaml.SafeLoader):
    """Loads YAML, but refuses a key that is written twice, of which YAML keeps the last."""

    def fetch_flow_collection_start(self, token: Any) -> None:
        """Enter a list or a mapping in brackets; the parser's time grows by the depth squared."""
        if self.flow_level >= DEEPEST:
            raise ValueError(f"nested too deeply: more than {DEEPEST} levels")
        super().fetch_flow_collection_start(token)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = next((key for i, key in enumerate(keys) if key in keys[:i]), None)
        if twice is not None:
            line = node.start_mark.line + 1
            raise ValueError(f"the mapping at line {line} has '{twice}' twice; write it once")
        return super().construct_mapping(node, deep)


def _yaml_fault(error: Exception) -> str:
    """What is wrong and where, without the parser's excerpt."""
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return " ".join(str(error).split())
    return f"line {mark.line + 1}, column {mark.column + 1}: {getattr(error, 'problem', '')}"
