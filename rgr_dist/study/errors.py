"""Explains what is wrong with a study, in one line: what, where, and what would be valid."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from rgr_dist.faults import UserError, on_one_line

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


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn whatever a reader of a user's file raises into one line that begins with its path.

    Raises:
        StudyError: something was raised.
    """
    try:
        yield
    except StudyError:
        raise
    except Exception as error:  # parsers raise errors of any kind
        said = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        if isinstance(error, OSError):
            said = f"cannot be read: {error.strerror or error}"
        if isinstance(error, UnicodeDecodeError):
            said = "is not text in UTF-8"
        raise StudyError(f"{path}: {on_one_line(said)}") from None


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
        own = [one for one in error.errors() if one["type"] != "too_short" or not one["input"]]
        faults = [_explain(fault, value) for fault in own]  # else its items are at fault
    found: dict[str, str] = {}
    for path, said in faults:
        place = prefix if isinstance(prefix, str) else prefix.get(re.split(r"[.\[]", path)[0], "")
        found.setdefault(path, f"{place}{path}: {said}" if path else said)
    raise StudyError("; ".join(found.values()))


def _explain(error: Any, document: Any) -> tuple[str, str]:
    """The dotted path of a pydantic error's key, and what is wrong with it."""
    path, kind = _path(error["loc"], document), error["type"]
    if kind == "value_error":  # from a spec's validator: its message starts with the key
        key, _, said = str(error["ctx"]["error"]).partition(": ")
        return ".".join(filter(None, (path, key))), said
    if kind == "missing":
        return ".".join(filter(None, (path, str(error["loc"][-1])))), "missing; it has no default"
    given = as_written(error["input"])
    return path + ".family" * ("tag" in kind), f"{given} is not valid: {error['msg']}"


def _path(places: tuple[int | str, ...], document: Any) -> str:
    """Dotted path of an error's key, without what pydantic adds to name the spec of a union."""
    path, at = "", document
    for part in places:
        if isinstance(part, int) and isinstance(at, list | tuple):
            path, at = f"{path}[{part}]", at[part]
        elif isinstance(at, dict) and part in at:
            path, at = f"{path}.{part}" if path else str(part), at[part]
    return path


def as_written(given: Any) -> str:
    """A value as a study would write it, cut short."""
    text = f"'{given}'" if isinstance(given, str) else json.dumps(given, default=str, skipkeys=True)
    return text if len(text) <= 60 else f"{text[:57]}…"
