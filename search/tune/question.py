"""What a threshold search is asked: its arguments, checked; each refusal is one line."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import pairwise, product
from numbers import Real
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    model_validator,
)

from rgr_dist.search.probe_verdict import SeedTest
from rgr_dist.search.tune.one_line import one_line, quoted

Cost = Callable[[int, dict[str, Any]], float]
COSTS_CHECKED = 10_000
"""Up to this many values, the user's cost is computed for all of them beforehand."""


def _integer(value: Any) -> int:
    if not isinstance(value, bool):
        with suppress(TypeError):  # an array has ``__index__``, which works for a single number
            return operator.index(value)
    raise ValueError(f"{quoted(value)} is no integer")


def _number(value: Any) -> float:
    with suppress(OverflowError):  # of an integer that no float can hold
        if isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
    raise ValueError(f"give a finite number, not {quoted(value)}")


def _increasing(values: Any) -> Sequence[int]:
    """A range as it is, anything else as a tuple of Python's integers."""
    wanted = "give positive integers in increasing order, such as range(1, 65)"
    is_list = isinstance(values, Collection) and getattr(values, "shape", True) != ()
    if isinstance(values, str) or not is_list:
        raise ValueError(f"{wanted}, not {quoted(values)}")
    axis = values if isinstance(values, range) else tuple(map(_integer, values))
    if not axis or axis[0] < 1:
        raise ValueError(f"{wanted}; {f'{axis[0]} is not positive' if axis else 'there is none'}")
    for one, following in pairwise(axis[:2] if isinstance(axis, range) else axis):
        if following <= one:
            raise ValueError(f"{wanted}; {following} follows {one}")
    if axis[-1] > sys.maxsize:
        raise ValueError(f"{wanted}; {axis[-1]} is larger than {sys.maxsize}")
    return axis


def _lists(over: Any) -> dict[str, list[Any]]:
    """Names, each with the values that it takes."""
    if not isinstance(over, Mapping) or not all(isinstance(key, str) for key in over):
        raise ValueError(f"give names and lists of their values, not {quoted(over)}")
    lists = {}
    for key, values in over.items():
        if isinstance(values, str | Mapping) or not isinstance(values, Collection):
            raise ValueError(f"give a list of values for {key!r}, not {quoted(values)}")
        lists[key] = list(values)
        if not lists[key]:
            raise ValueError(f"{key!r} has no value")
        for value in _repeated(lists[key]):
            raise ValueError(f"{key!r} has {quoted(value)} twice")
    return lists


def _repeated(values: Iterable[Any]) -> Iterator[Any]:
    """Each value that equals an earlier one."""
    known, unhashable = set[Any](), list[Any]()
    for value in values:
        try:
            is_known = value in known
            known.add(value)
        except TypeError:  # it cannot be hashed
            is_known = any(value is other or value == other for other in unhashable)
            unhashable.append(value)
        if is_known:
            yield value


def check_slots(name: str, slots: int | None) -> None:
    """Make sure that a number of trials that run at once is one, if it is given.

    Raises:
        ValueError: it is not a positive integer.
    """
    with suppress(ValueError):
        if slots is None or _integer(slots) >= 1:
            return
    raise ValueError(f"{name}: give a positive integer, not {' '.join(repr(slots).split())}")


Name = Annotated[str, Field(strict=True, min_length=1)]
Integer = Annotated[int, BeforeValidator(_integer)]
Number = Annotated[float, PlainValidator(_number)]


class Question(BaseModel):
    """What a search asks: at which value of an axis is a trainable good enough, in each setting?

    The fields are the arguments of ``rgr_dist.ThresholdSearch``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    axis: Name
    values: Annotated[Any, PlainValidator(_increasing)]
    target: Number
    metric: Name = ""
    mode: Literal["max", "min"] = "max"
    bounds: tuple[Number | None, Number | None] = (None, None)
    seeds: Annotated[Integer, Field(gt=0, le=10_000)] = 3
    confirm_seeds: Annotated[Integer, Field(ge=0, le=10_000)] = 0
    over: Annotated[Any, PlainValidator(_lists)] = {}
    cost: Callable[..., Any] | None = None
    keep_within: Annotated[Number, Field(ge=0)] | None = None
    guess: Integer | None = None
    on_error: Literal["stop", "fail"] = "stop"
    seed_key: Name = "seed"

    @classmethod
    def checked(cls, **arguments: Any) -> Question:
        """The question that these arguments ask; those that are None are left out.

        Raises:
            ValueError: an argument is not valid; the message says which, and what it may be.
        """
        try:
            return cls(**{name: one for name, one in arguments.items() if one is not None})
        except ValidationError as faults:
            fault = faults.errors()[0]
        said, named = str(fault.get("ctx", {}).get("error", "")), [str(one) for one in fault["loc"]]
        if fault["type"] == "missing":
            said = "missing"
        said = said or f"{fault['msg'].removeprefix('Input ')}, not {quoted(fault['input'])}"
        raise ValueError(one_line(": ".join([*named[:1], said])))

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        low, high = self.bounds
        if low is not None and high is not None and low >= high:
            raise ValueError(f"bounds: {low:g} is not below {high:g}")
        if (low is not None and self.target < low) or (high is not None and self.target > high):
            ends = ("" if low is None else f"{low:g}"), ("" if high is None else f"{high:g}")
            raise ValueError(f"target: {self.target:g} lies outside the bounds {'…'.join(ends)}")
        if self.target == (high if self.mode == "min" else low):
            raise ValueError(f"target: {self.target:g} is reached by every score within the bounds")
        if self.axis == self.seed_key:
            raise ValueError(f"axis: {self.axis!r} is set by the search; name another")
        self._check_names("over", self.over, (self.axis, self.seed_key))
        first, last = self.values[0], self.values[-1]
        if not first <= self.start <= last:
            raise ValueError(f"guess: {self.guess} lies outside the values {first}…{last}")
        if self.keep_within is not None and self.cost is None:
            raise ValueError("keep_within: give a cost too; it is a share of the best one")
        _ = self.costs  # an invalid cost is refused here
        return self

    def check_config(self, config: Mapping[str, Any]) -> None:
        """Make sure that the config that all trials share sets nothing that the search sets.

        Raises:
            ValueError: it sets the axis, the seed or a name of ``over``, or has a search space.
        """
        if not isinstance(config, Mapping) or not all(isinstance(key, str) for key in config):
            raise ValueError(f"config: give names and their values, not {quoted(config)}")
        self._check_names("config", config, (self.axis, self.seed_key, *self.over))
        for key, value in config.items():
            if _is_search_space(value):
                raise ValueError(
                    f"config: {key!r} is a search space, and the search draws nothing; give one "
                    f"value, or list values as over={{{key!r}: […]}}"
                )

    @staticmethod
    def _check_names(what: str, names: Iterable[str], taken: Iterable[str]) -> None:
        for key in taken:
            if key in names:
                raise ValueError(f"{what}: {key!r} is set by the search")

    @property
    def start(self) -> int:
        """The value where the search starts."""
        return self.values[len(self.values) // 2] if self.guess is None else self.guess

    @cached_property
    def test(self) -> SeedTest:
        """The test of a value."""
        low, high = self.bounds
        return SeedTest(self.target, self.seeds, minimise=self.mode == "min", low=low, high=high)

    @cached_property
    def settings(self) -> list[dict[str, Any]]:
        """Every combination of what ``over`` lists; one empty setting for a single search."""
        return [dict(zip(self.over, one, strict=True)) for one in product(*self.over.values())]

    @cached_property
    def costs(self) -> list[Callable[[int], float]]:
        """The cost as a function of the value, for each setting; empty where none was asked for."""
        cost = self.cost
        return [] if cost is None else [_priced(cost, one, self.values) for one in self.settings]

    @property
    def given(self) -> dict[str, Any]:
        """The arguments that were given, from which the question can be rebuilt."""
        return {key: getattr(self, key) for key in self.model_fields_set}

    @property
    def described(self) -> dict[str, str]:
        """The question in words: what a search must share to go on from saved scores."""
        left_out = {"cost", "guess", "over"}
        return {k: repr(getattr(self, k)) for k in type(self).model_fields if k not in left_out}


def _priced(cost: Cost, setting: dict[str, Any], values: Sequence[int]) -> Callable[[int], float]:
    """The cost of each value of a setting, computed beforehand unless there are many values."""

    def price(value: int) -> float:
        given = cost(value, dict(setting))
        try:
            paid = _number(given)
        except ValueError as fault:
            raise ValueError(f"cost: at {value} of {setting}: {fault}") from None
        if paid <= 0:
            raise ValueError(f"cost: give positive ones; {given!r} at {value} of {setting}")
        return paid

    asked = values if len(values) <= COSTS_CHECKED else (values[0], values[-1])
    known = {value: price(value) for value in asked}
    for one, following in pairwise(asked):
        if known[following] < known[one]:
            raise ValueError(
                f"cost: give one that does not fall as the value grows; {known[one]:g} at {one} "
                f"and {known[following]:g} at {following} of {setting}"
            )
    return lambda value: known[value] if value in known else price(value)


def _is_search_space(value: Any) -> bool:
    """Whether Tune would draw a value from this; checked without importing Ray."""
    if isinstance(value, Mapping):
        return "grid_search" in value or any(map(_is_search_space, value.values()))
    bases = {f"{base.__module__}.{base.__name__}" for base in type(value).__mro__}
    return "ray.tune.search.sample.Domain" in bases
