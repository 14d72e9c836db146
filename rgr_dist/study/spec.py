"""What every part of a study is made of: frozen specs and checked numbers."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    StrictInt,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError, PydanticKnownError


def _number(value: Any) -> Any:
    """Refuse a boolean, bytes and text, which pydantic would take for numbers.

    ``1e-3`` is a number even as text: so a YAML 1.1 loader gives it to a study in Python.
    """
    is_text = isinstance(value, str) and not re.fullmatch(EXPONENT, value)
    if isinstance(value, bool | bytes) or is_text:
        raise PydanticKnownError("float_type")
    return value


def _listed(value: Any) -> Any:
    """A single value as a list of one."""
    return value if isinstance(value, list | tuple) else [value]


def _distinct(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Refuse a list that repeats a size."""
    if len(set(sizes)) < len(sizes):
        raise PydanticCustomError("repeated", "list each size once")
    return sizes


def nearest(name: Any, valid: Iterable[str]) -> str:
    """What an unknown name may have meant: ``did you mean 'm'? valid: m, d_model``."""
    valid = list(valid)
    near = difflib.get_close_matches(str(name), valid)
    hint = f"did you mean '{near[0]}'? " if near else ""
    return f"{hint}valid: {', '.join(valid)}"


def _kinds(annotation: Any) -> set[Any]:
    """All the types that the annotation of a key is made of."""
    return {annotation}.union(*map(_kinds, get_args(annotation)))


def at_most(key: str, value: float, most: float, where: str) -> None:
    """Raise ValueError if a key is above the most that other keys allow."""
    if value > most:
        raise ValueError(f"{key}: {value} is not valid {where}; give at most {most}")


EXPONENT = r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+"
"""Numbers such as 1e-3, which YAML 1.1 reads as text; YAML 1.2 and JSON read them as numbers."""
LARGEST_COUNT = 2**31 - 1
Count = Annotated[StrictInt, Field(ge=1, le=LARGEST_COUNT)]
Real = Annotated[float, BeforeValidator(_number), Field(allow_inf_nan=False)]
Share = Annotated[Real, Field(ge=0, le=1), AfterValidator(lambda share: share + 0.0)]  # no -0.0
Listed = BeforeValidator(_listed)
Some = Annotated[tuple[Count, ...], Field(min_length=1, max_length=1000)]
OneOrMore = Annotated[Some, Listed]
"""A size, or a list of them."""
Sizes = Annotated[Some, AfterValidator(_distinct)]
"""Sizes to be tried, each once."""


class Spec(BaseModel):
    """A frozen part of a study that refuses keys it does not know.

    A validator of a whole spec raises ValueError with a message that starts with the key at fault.

    Attributes:
        later: keys added after the first runs were stored. While they have their default they are
            left out of what is written, so that those runs keep their address.
        defaults: of every key; pydantic's own look-up takes longer than a check.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    later: ClassVar[frozenset[str]] = frozenset()
    defaults: ClassVar[Mapping[str, Any]] = {}

    @classmethod
    def __pydantic_init_subclass__(cls, **more: Any) -> None:
        super().__pydantic_init_subclass__(**more)
        cls.defaults = {name: field.default for name, field in cls.model_fields.items()}

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with some values changed, without what was cached from the old ones."""
        copied = super().model_copy(update=update, deep=deep)
        for name in copied.__dict__.keys() - type(self).model_fields.keys():
            del copied.__dict__[name]
        return copied

    def leaves_out(self, keys: Iterable[str], why: str) -> None:
        """Raise ValueError if any of these keys, ``part.key`` or ``key``, is not at its default."""
        for key in keys:
            part, _, name = key.rpartition(".")
            spec = getattr(self, part) if part else self
            if getattr(spec, name) != spec.defaults[name]:
                raise ValueError(f"{key}: {why}; leave it out")

    @model_validator(mode="before")
    @classmethod
    def _knows_its_keys(cls, keys: Any) -> Any:
        for key in keys if isinstance(keys, dict) else ():
            if key not in cls.model_fields:
                is_one = "family" in keys and "family" in cls.model_fields
                of = f" of family {keys['family']}" if is_one else ""
                raise ValueError(f"{key}: unknown key{of}; {nearest(key, cls.model_fields)}")
            if isinstance(keys[key], str) and keys[key] == "none":
                kinds = _kinds(cls.model_fields[key].annotation)
                if type(None) in kinds and str not in kinds:
                    keys = {**keys, key: None}
        return keys

    @model_serializer(mode="wrap")
    def _without_later_defaults(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = write(self)
        return {
            name: value
            for name, value in written.items()
            if name not in self.later or getattr(self, name) != self.defaults[name]
        }
