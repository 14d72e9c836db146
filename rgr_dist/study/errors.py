"""Explains what is wrong with a study, in one line: what, where, and what would be valid."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from rgr_dist.faults import UserError
from rgr_dist.study.spec import nearest

MOST_FAULTS = 3
"""Faults of a study that are reported at once."""
WANTED = {
    "tuple_type": "input should be a list",
    "too_short": "give at least one",
    "string_pattern_mismatch": "give letters, digits, '.', '_' and '-', a letter or digit first",
} | dict.fromkeys(("dict_type", "model_type"), "input should be a mapping of keys to values")
"""What would be valid, by kind of error, where pydantic would use Python's words."""

AnySpec = TypeVar("AnySpec", bound="BaseModel")


class StudyError(UserError, ValueError):
    """The study cannot be used as written; the message says what, where and what would be valid."""


@contextmanager
def within(place: str) -> Iterator[None]:
    """Put the place of a fault in front of its message."""
    try:
        yield
    except StudyError as error:
        raise StudyError(f"{place}{error}") from None


def validated(spec: type[AnySpec], value: Any, prefix: str | Mapping[str, str] = "") -> AnySpec:
    """A spec from plain values.

    Args:
        prefix: the dotted path to ``value`` in the study, or one for each of its keys.

    Raises:
        StudyError: naming the faults of the value, one for each key.
    """
    try:
        return spec.model_validate(value)
    except ValidationError as error:
        faults = [_explain(fault, value) for fault in error.errors()]
    found: dict[str, str] = {}
    lists = {path[: at.start()] for path, _ in faults for at in re.finditer(r"\[", path)}
    for path, said in faults:
        if path not in lists:  # if an item of a list is at fault, the list itself is not
            key = re.split(r"[.\[]", path)[0]
            place = prefix if isinstance(prefix, str) else prefix.get(key, "")
            found.setdefault(path, f"{place}{path}: {said}")
    lines = list(found.values())
    more = [f"{len(lines) - MOST_FAULTS} more"] if len(lines) > MOST_FAULTS else []
    raise StudyError("; ".join([*lines[:MOST_FAULTS], *more]))


def _explain(error: Any, document: Any) -> tuple[str, str]:
    """The dotted path of a pydantic error's key, what is wrong and what would be valid."""
    path, kind, given = _path(error, document), error["type"], error["input"]
    if kind == "value_error":  # from a spec's validator: its message starts with the key
        key, _, said = str(error["ctx"]["error"]).partition(": ")
        return ".".join(filter(None, (path, key))), said
    if kind == "union_tag_not_found":
        path, kind = f"{path}.family", "missing"
    if kind == "missing":
        return path, "missing; it has no default"
    if kind == "union_tag_invalid":
        path, kind, given = f"{path}.family", "literal_error", given["family"]
        error["ctx"]["expected"] = error["ctx"]["expected_tags"]
    if kind == "literal_error":
        valid = re.findall(r"'([^']*)'", error["ctx"]["expected"])
        return path, f"{as_written(given)} is not known; {nearest(given, valid)}"
    wanted = WANTED.get(kind, error["msg"][0].lower() + error["msg"][1:])
    return path, f"{as_written(given)} is not valid: {wanted}"


def _path(error: Any, document: Any) -> str:
    """Dotted path of an error's key, without what pydantic adds to name the spec of a union."""
    path, at, loc = "", document, error["loc"]
    for i, part in enumerate(loc):
        if isinstance(part, int):
            if isinstance(at, list | tuple):  # else a single value stood for a list of one
                path, at = f"{path}[{part}]", at[part]
            continue
        is_missing = error["type"] == "missing" and i == len(loc) - 1
        if is_missing or (isinstance(at, dict) and part in at):
            path, at = f"{path}.{part}" if path else part, None if is_missing else at[part]
    return path


def as_written(given: Any) -> str:
    """A value as a study would write it, cut short."""
    try:
        text = f"'{given}'" if isinstance(given, str) else json.dumps(given, default=str)
    except ValueError:  # it contains itself
        text = str(given)
    return text if len(text) <= 60 else f"{text[:57]}…"
