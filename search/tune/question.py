"""What a threshold search is asked: the arguments of its caller, checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rgr_dist.search.probe_verdict import SeedTest
from rgr_dist.search.tune import arguments
from rgr_dist.search.tune.threshold import Mode

MODES = {"max": "a larger metric is better", "min": "a smaller one is"}
ON_ERROR = {"stop": "the search ends", "fail": "the value fails"}


@dataclass(frozen=True)
class Question:
    """At which value of an axis is a trainable good enough, in each of some settings?

    Attributes:
        about: what the scores depend on, but for the setting, the value and the seed.
        settings: one empty setting for a single search.
        costs: of a value, for each setting; None where no cost was asked for.
    """

    trainable: Any
    axis: str
    values: Sequence[int]
    metric: str
    mode: Mode
    test: SeedTest
    config: dict[str, Any]
    guess: int
    on_error: Literal["fail", "stop"]
    stop: dict[str, float]
    settings: tuple[dict[str, Any], ...]
    costs: tuple[Callable[[int], float], ...] | None
    keep_within: float | None
    confirm_seeds: int

    @classmethod
    def checked(
        cls,
        trainable: Any,
        axis: str,
        values: Any,
        metric: str,
        target: float,
        mode: Mode,
        bounds: Any,
        seeds: int,
        confirm_seeds: int,
        config: Mapping[str, Any] | None,
        guess: int | None,
        on_error: Literal["fail", "stop"],
        stop: Mapping[str, float] | None,
        over: Mapping[str, Any] | None = None,
        cost: Any = None,
        keep_within: float | None = None,
    ) -> Question:
        """The question, if every argument is one that the search knows.

        Raises:
            ValueError: one is not; says which, what it is, and what it may be.
        """
        arguments.can_be_trained(trainable)
        arguments.word("axis", axis)
        arguments.word("metric", metric)
        if axis == arguments.SEED:
            raise ValueError("axis: 'seed' is set by the search; name another")
        values = arguments.integers(values)
        arguments.one_of("mode", mode, MODES)
        arguments.one_of("on_error", on_error, ON_ERROR)
        target = arguments.number("target", target)
        low, high = arguments.limits(bounds, target)
        seeds = arguments.positive_integer("seeds", seeds)
        if confirm_seeds != 0:
            confirm_seeds = arguments.positive_integer("confirm_seeds", confirm_seeds)
        taken = [axis, arguments.SEED]
        settings: list[dict[str, Any]] = [{}]
        if over is not None:
            settings = arguments.grid(arguments.mapping("over", over, taken))
            taken += settings[0]
        if guess is None:
            guess = values[len(values) // 2]
        elif not values[0] <= arguments.positive_integer("guess", guess) <= values[-1]:
            raise ValueError(f"guess: {guess} lies outside the values {values[0]}…{values[-1]}")
        if keep_within is not None:
            if cost is None:
                raise ValueError("keep_within: give a cost too; it is a share of the best one")
            if arguments.number("keep_within", keep_within) < 0:
                raise ValueError(f"keep_within: give a share of at least 0, not {keep_within}")
        stops = arguments.mapping("stop", stop or {}, [])
        return cls(
            trainable=trainable,
            axis=axis,
            values=values,
            metric=metric,
            mode=mode,
            test=SeedTest(target, seeds, minimise=mode == "min", low=low, high=high),
            config=arguments.mapping("config", config or {}, taken),
            guess=int(guess),
            on_error=on_error,
            stop={key: arguments.number(f"stop: {key}", value) for key, value in stops.items()},
            settings=tuple(settings),
            costs=None
            if cost is None
            else tuple(arguments.cost_of(cost, setting, values) for setting in settings),
            keep_within=keep_within,
            confirm_seeds=confirm_seeds,
        )

    @property
    def about(self) -> dict[str, Any]:
        """What every score depends on besides its setting, value and seed."""
        asked = {"axis": self.axis, "metric": self.metric, "config": self.config}
        return asked | {"trainable": self.trainable} | ({"stop": self.stop} if self.stop else {})
