"""What every part of a study is made of: frozen specs and checked numbers."""

from __future__ import annotations

from collections.abc import Mapping
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
)


def _number(value: Any) -> Any:
    """Refuse a boolean, which pydantic would take for 0 or 1."""
    if isinstance(value, bool):
        raise ValueError(f"{value} is not a number")
    return value


def listed(value: Any) -> Any:
    """A single value as a list of one."""
    return value if isinstance(value, list | tuple) else [value]


LARGEST_COUNT = 2**31 - 1
Count = Annotated[StrictInt, Field(ge=1, le=LARGEST_COUNT)]
Real = Annotated[float, BeforeValidator(_number), Field(allow_inf_nan=False)]
Share = Annotated[Real, Field(ge=0, le=1), AfterValidator(lambda share: share + 0.0)]  # no -0.0


class Spec(BaseModel):
    """A frozen part of a study that refuses keys it does not know.

    Attributes:
        later: keys that came after the first stored runs. Where they have their default they are
            left out of what is written, so that those runs keep their address.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    later: ClassVar[frozenset[str]] = frozenset()

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with some values changed, without what was worked out of the old ones."""
        copied = super().model_copy(update=update, deep=deep)
        for name in copied.__dict__.keys() - type(self).model_fields.keys():
            del copied.__dict__[name]
        return copied

    @model_serializer(mode="wrap")
    def _without_later_defaults(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = write(self)
        fields = type(self).model_fields
        defaults = {name for name in self.later if getattr(self, name) == fields[name].default}
        return {name: value for name, value in written.items() if name not in defaults}
