"""What the arguments of a threshold search may be: each refusal is one line."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise, product
from numbers import Real
from typing import Any

SEED = "seed"
COSTS_CHECKED = 10_000
"""Values of a setting up to which the user's cost is asked for all of them beforehand."""


def integers(values: Any) -> Sequence[int]:
    """The values of an axis: a range as it is, anything else as a list of Python's integers.

    Raises:
        ValueError: there is none, one is no positive integer, or they do not increase.
    """
    wanted = "values: give positive integers in increasing order, such as range(1, 65)"
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ValueError(f"{wanted}, not {values!r}")
    axis: Sequence[int]
    axis = values if isinstance(values, range) else [_integer(value, wanted) for value in values]
    if not axis:
        raise ValueError(f"{wanted}; there is none")
    if axis[0] < 1:
        raise ValueError(f"{wanted}; {axis[0]} is not positive")
    for one, following in pairwise(axis[:2] if isinstance(axis, range) else axis):
        if following <= one:
            raise ValueError(f"{wanted}; {following} follows {one}")
    return axis


def _integer(value: Any, wanted: str) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise ValueError(f"{wanted}; {value!r} is no integer") from None


def positive_integer(what: str, value: Any) -> int:
    """A count.

    Raises:
        ValueError: it is no integer of at least 1.
    """
    number = _integer(value, f"{what}: give a positive integer")
    if number < 1:
        raise ValueError(f"{what}: give a positive integer, not {number}")
    return number


def one_of(what: str, value: Any, choices: Mapping[str, str]) -> None:
    """Make sure that a word is known.

    Args:
        choices: each word, and what it means.

    Raises:
        ValueError: it is none of the choices.
    """
    if not isinstance(value, str) or value not in choices:
        known = " or ".join(f"{choice!r} ({meaning})" for choice, meaning in choices.items())
        raise ValueError(f"{what}: {value!r} is not known; give {known}")


def number(what: str, value: Any) -> float:
    """A finite number.

    Raises:
        ValueError: it is none.
    """
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise ValueError(f"{what}: give a finite number, not {value!r}")
    return float(value)


def limits(bounds: Any, target: float) -> tuple[float | None, float | None]:
    """The smallest and the largest metric there can be, around the target.

    Raises:
        ValueError: they are not two numbers or None, in order, or the target lies outside.
    """
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise ValueError(f"bounds: give the smallest and the largest metric, not {bounds!r}")
    low, high = (None if bound is None else number("bounds", bound) for bound in bounds)
    if low is not None and high is not None and low >= high:
        raise ValueError(f"bounds: {low:g} is not below {high:g}")
    if (low is not None and target < low) or (high is not None and target > high):
        ends = ("" if low is None else f"{low:g}"), ("" if high is None else f"{high:g}")
        raise ValueError(f"target: {target:g} lies outside the bounds {'…'.join(ends)}")
    return low, high


def word(what: str, value: Any) -> None:
    """Make sure that a name is one.

    Raises:
        ValueError: it is no text, or an empty one.
    """
    if not isinstance(value, str) or not value:
        raise ValueError(f"{what}: give a name, not {value!r}")


def can_be_trained(trainable: Any) -> None:
    """Make sure that Tune can run it.

    Raises:
        ValueError: it is neither a function nor a class of ``ray.tune.Trainable``.
    """
    is_class = isinstance(trainable, type)
    tunes = is_class and any(
        base.__name__ == "Trainable" and base.__module__.startswith("ray.tune")
        for base in trainable.__mro__
    )
    if not callable(trainable) or (is_class and not tunes):
        raise ValueError(
            f"trainable: give a function of a config or a class of ray.tune.Trainable, "
            f"not {trainable!r}"
        )


def mapping(what: str, value: Any, taken: Iterable[str]) -> dict[str, Any]:
    """Names and what they are, none of them taken.

    Raises:
        ValueError: it is no mapping from names, or has a name that is set otherwise.
    """
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise ValueError(f"{what}: give names and their values, not {value!r}")
    for key in taken:
        if key in value:
            raise ValueError(f"{what}: {key!r} is set by the search")
    return dict(value)


def grid(over: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every combination of the values that are listed for each name.

    Raises:
        ValueError: a name has no list, an empty one, or the same value twice.
    """
    if not over:
        raise ValueError("over: give at least one name, such as over={'depth': [1, 2]}")
    lists = {}
    for key, values in over.items():
        if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
            raise ValueError(f"over: give a list of values for {key!r}, not {values!r}")
        lists[key] = list(values)
        if not lists[key]:
            raise ValueError(f"over: {key!r} has no value")
        for place, value in enumerate(lists[key]):
            if any(value is other or value == other for other in lists[key][:place]):
                raise ValueError(f"over: {key!r} has {value!r} twice")
    return [dict(zip(lists, values, strict=True)) for values in product(*lists.values())]


def cost_of(
    cost: Callable[[int, dict[str, Any]], float], setting: dict[str, Any], values: Sequence[int]
) -> Callable[[int], float]:
    """The cost of each value of a setting, asked for beforehand where the values are not many.

    Raises:
        ValueError: ``cost`` is no function, or a cost is not positive, or falls with the value.
    """
    if not callable(cost):
        raise ValueError(f"cost: give a function of a value and a setting, not {cost!r}")

    def price(value: int) -> float:
        given = cost(value, dict(setting))
        paid = number(f"cost: at {value} of {setting}", given)
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
