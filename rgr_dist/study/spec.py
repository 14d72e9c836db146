"""What every part of a study is made of: frozen specs and checked numbers."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Self

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
from pydantic_core import PydanticCustomError


def listed(value: Any) -> Any:
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
    return f"{hint}valid: {', '.join(valid) or 'none'}"


def at_most(key: str, value: float, most: float, where: str) -> None:
    """Raise ValueError if a key is above the most that other keys allow."""
    if value > most:
        raise ValueError(f"{key}: {value} is not valid {where}; give at most {most}")


LARGEST_COUNT = 2**31 - 1
Count = Annotated[StrictInt, Field(ge=1, le=LARGEST_COUNT)]
Real = Annotated[float, Field(strict=True, allow_inf_nan=False)]
NotNegative = Annotated[Real, Field(ge=0), AfterValidator(lambda value: value + 0.0)]  # no -0.0
Share = Annotated[NotNegative, Field(le=1)]
Some = Annotated[tuple[Count, ...], Field(min_length=1)]
OneOrMore = Annotated[Some, BeforeValidator(listed)]
"""A size, or a list of them."""
Sizes = Annotated[Some, AfterValidator(_distinct)]
"""Sizes to be tried, each once."""


class Spec(BaseModel):
    """A frozen part of a study that refuses keys it does not know.

    A validator of a whole spec raises ValueError with a message that starts with the key at fault.

    Attributes:
        later: keys added after the first runs were stored. While they have their default they are
            left out of what is written, so that those runs keep their address.
    """

    model_config = ConfigDict(frozen=True)
    later: ClassVar[frozenset[str]] = frozenset()

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with some values changed, without what was cached from the old ones."""
        copied = super().model_copy(update=update, deep=deep)
        for name in copied.__dict__.keys() - type(self).model_fields.keys():
            del copied.__dict__[name]
        return copied

    def leaves_out(self, keys: Iterable[str], why: str) -> None:
        """Raise ValueError if any of these keys is not at its default."""
        for key in keys:
            if getattr(self, key) != type(self).model_fields[key].default:
                raise ValueError(f"{key}: {why}; leave it out")

    @model_validator(mode="before")
    @classmethod
    def _knows_its_keys(cls, keys: Any) -> Any:
        for key in keys if isinstance(keys, dict) else ():
            if key not in cls.model_fields:
                of = f" of family {keys['family']}" if "family" in keys else ""
                valid = (name for name, field in cls.model_fields.items() if not field.exclude)
                raise ValueError(f"{key}: unknown key{of}; {nearest(key, valid)}")
        return keys

    @model_serializer(mode="wrap")
    def _without_later_defaults(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = write(self)
        for name in self.later:
            if getattr(self, name) == type(self).model_fields[name].default:
                written.pop(name, None)
        return written
