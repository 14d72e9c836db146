"""The types that the search exchanges with whatever runs its probes.

A cell has arms, each named by a positive integer, and each arm has an axis of values. A probe of an
arm at a value costs arm × value, unless the plan says otherwise. The search finds the smallest
passing value of each arm, and the arm that passes at the least cost.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from functools import cached_property
from typing import Literal, NamedTuple

from rgr_dist.search.best_arm import largest_kept
from rgr_dist.search.bracket import Bracket
from rgr_dist.search.probe_verdict import Verdict, decimal

Status = Literal["found", "censored", "pruned", "inconsistent", "open"]
Want = Literal["look", "verdict", "every seed", "extra seeds", "fresh seeds", "transition"]


class ProbeKey(NamedTuple):
    """What identifies a probe within its cell."""

    arm: int
    value: int


class Words(NamedTuple):
    """The words that reasons and explanations use for a value, a cost and several arms."""

    value: str = "value"
    cost: str = "cost"
    arms: str = "arms"


class Budget(NamedTuple):
    """A plan's place among the plans of the same cell at other budgets, such as step limits.

    Attributes:
        name: the budget's name in reasons and explanations.
        shorter: the plan at a smaller budget, if it is searched first. What passes there should
            pass here, so this search starts from its thresholds.
        longer: the plan at a larger budget, if it is searched first. What fails there should
            fail here, and its runs have mostly brought the evidence.
    """

    name: str = ""
    shorter: str | None = None
    longer: str | None = None


class Transition(NamedTuple):
    """Seeds to run at every value near a threshold.

    Attributes:
        seeds: how many; 0 for none.
        window: how near, as a share of the threshold.
    """

    seeds: int = 0
    window: float = 0.5


@dataclass(frozen=True)
class Need:
    """A probe that a cell's search cannot go on without.

    Attributes:
        reason: why this probe, now.
        want: which seeds: enough for a pass for now, enough for the verdict, every seed, the extra
            ones of a retest too, the fresh ones of a confirmation, or those of a transition.
    """

    key: ProbeKey
    reason: str
    want: Want = "verdict"

    @property
    def ends_early(self) -> bool:
        """Whether a verdict on the first seeds, if only for now, spares the others."""
        return self.want in ("look", "verdict")


@dataclass(frozen=True)
class Probe:
    """What ``Portfolio.ask`` hands out: train these seeds of (cell, arm, value).

    Attributes:
        seeds: the seeds to train; others of the same probe may be trained elsewhere.
    """

    cell: str
    arm: int
    value: int
    seeds: tuple[int, ...]

    @property
    def key(self) -> ProbeKey:
        """What identifies the probe within its cell."""
        return ProbeKey(self.arm, self.value)


class Signal(Enum):
    """What ``Portfolio.ask`` answers when it has no probe to give."""

    WAIT = "everything that is needed is being run"
    DONE = "every cell is finished"


@dataclass(frozen=True)
class CellPlan:
    """One cell to be searched: the smallest passing value of each arm.

    A search without arms has one entry in ``axes``, under 1.

    Attributes:
        cell: its name.
        axes: the values allowed for each arm, increasing, such as a ``range``; the arms in the
            order to report.
        guess_cost: where the search starts.
        guess_arm: the arm expected to cost the least; arms near it go first.
        spread: factor by which the guess may well be wrong: how far the first steps go. Infinite
            where nothing is known: the axis is then bisected as a whole.
        cost: the cost of a probe of (arm, value): positive, and never falling as the value grows;
            called only with values of the axis. arm × value if not given.
        unrunnable: what it means if a probe cannot be run. ``open``: nothing, so its arm stays
            open. ``fail``: its value fails, but a pass is also looked for below it, and it
            contradicts no pass: what cannot be run may be too large rather than too small.
        keep_within: arms whose threshold lies within this share above the best, or one step of
            their value above it, are searched to the end (``best_arm.largest_kept``); others are
            pruned. None searches every arm.
        keep_arms: arms that are never pruned.
        intervals: probe all seeds next to the threshold, for App. A.2's intervals: for every arm
            near the best, or only for the best arm and ``keep_arms``.
        every_value: probe every value with every seed instead of searching: a grid.
        target: the target of the test, if it differs from the portfolio's.
        every_arm: the axes hold every arm from 1 on, and what fails at an arm and value also
            fails at smaller ones: few arms need to be tried.
        confirm_seeds: number of fresh seeds on which a threshold must pass too, if it is that of
            the best arm or of an arm that is never pruned (``is_kept``).
        transition: what is run near the thresholds.
        budget: which plans of the same cell this one follows.
        words: the words for values, costs and arms in reasons and explanations.
    """

    cell: str
    axes: Mapping[int, Sequence[int]]
    guess_cost: float
    guess_arm: float = 1.0
    spread: float = 1.5
    cost: Callable[[int, int], float] | None = None
    unrunnable: Literal["open", "fail"] = "open"
    keep_within: float | None = 0.10
    intervals: bool | Literal["best"] = True
    every_value: bool = False
    target: float | None = None
    every_arm: bool = False
    keep_arms: tuple[int, ...] = ()
    confirm_seeds: int = 0
    transition: Transition = field(default=Transition())
    budget: Budget = field(default=Budget())
    words: Words = field(default=Words())

    def __post_init__(self) -> None:
        """Refuse what could not be searched.

        Raises:
            ValueError: an axis is empty, a guess is not positive, or ``every_arm`` has a cost.
        """
        if not all(self.axes.values()):
            raise ValueError(f"{self.cell}: axes: give every arm at least one value")
        if not (self.guess_cost > 0 and self.guess_arm > 0 and self.spread > 1):
            raise ValueError(f"{self.cell}: guesses must be positive, and the spread above 1")
        if self.every_arm and self.cost is not None:
            raise ValueError(f"{self.cell}: every_arm takes a cost of arm × value")

    @cached_property
    def untried(self) -> dict[int, Bracket]:
        """The bracket of each arm before any probe."""
        return {arm: Bracket(axis) for arm, axis in self.axes.items()}

    @cached_property
    def groups(self) -> dict[tuple[float | None, float], list[tuple[int, int]]]:
        """Arms and their caps in groups, by bound and guess, kept by every replay for the next."""
        return {}

    @property
    def guides(self) -> tuple[str, ...]:
        """The plans whose searches come before this one."""
        return tuple(plan for plan in self.budget[1:] if plan is not None)

    def is_kept(self, arm: int) -> bool:
        """Whether an arm is searched to the end however far from the best it is."""
        return self.keep_within is None or arm in self.keep_arms

    def limit(self, arm: int) -> int:
        """Largest value allowed for an arm."""
        return self.axes[arm][-1]

    def cost_of(self, arm: int, value: int) -> float:
        """What a probe of this arm costs at a value of its axis."""
        return arm * value if self.cost is None else self.cost(arm, value)

    def cost_if_known(self, arm: int, value: int | None) -> float | None:
        """The same; None for no value, or for one beyond the axis if the plan has a ``cost``."""
        if value is None or (self.cost is not None and value > self.limit(arm)):
            return None
        return self.cost_of(arm, value)

    def value_at(self, arm: int, cost: float) -> float:
        """Roughly the value at which an arm has a cost; below its smallest if that costs more."""
        if self.cost is None:
            return cost / arm
        axis = self.axes[arm]
        within = self._within(arm, cost)
        if not within:
            return axis[0] * cost / self.cost(arm, axis[0])
        return axis[within - 1]

    def largest_kept(self, best_cost: float, arm: int) -> int | None:
        """The largest value at which an arm is near a best cost (``best_arm.largest_kept``).

        If ``cost`` is given, a value is near if its cost is at most ``keep_within`` above the best,
        or if it directly follows a value that costs no more than the best. 0 if none is near, one
        more than the last if all are; None if every arm is searched to the end.
        """
        if self.keep_within is None:
            return None
        if self.cost is None:
            return largest_kept(int(best_cost), arm, self.keep_within)
        share = 1 + decimal(self.keep_within)
        no_dearer = self._within(arm, best_cost)
        near = max(self._within(arm, Fraction(best_cost) * share), no_dearer and no_dearer + 1)
        axis = self.axes[arm]
        return 0 if not near else axis[near - 1] if near < len(axis) else axis[-1] + 1

    def _within(self, arm: int, cost: float | Fraction) -> int:
        """How many values of an arm, from its smallest on, cost at most that."""
        assert self.cost is not None
        price = self.cost
        return bisect_right(self.axes[arm], cost, key=lambda value: price(arm, value))


@dataclass(frozen=True)
class ProbeResult:
    """The evidence of one probe: mean score over the seeds that ran."""

    value: int
    mean_score: float
    n_seeds: int


@dataclass(frozen=True)
class ArmResult:
    """What is known of one arm of a cell.

    Attributes:
        value: the threshold; None unless found.
        cost: at the threshold; None unless found.
        cost_low, cost_high: if found, the optimistic and conservative cost of App. A.2, None where
            not determined. Otherwise, the smallest cost not excluded, and the smallest known to
            pass.
        because: what the status rests on, in words.
        passed, failed: the certificate: the probes at the threshold and at the value below it.
        contradiction: the pass and the fail above it that make the evidence inconsistent.
        confirmed: whether the threshold passes on fresh seeds; None where that was not asked.
        fresh: the threshold's probe on fresh seeds; if no threshold was found, that of the
            smallest value that fresh seeds refuted.
        first_value: the smallest value that passes on the first seeds alone.
    """

    arm: int
    status: Status
    value: int | None
    cost_low: float | None
    cost_high: float | None
    because: str
    passed: ProbeResult | None = None
    failed: ProbeResult | None = None
    contradiction: tuple[ProbeResult, ProbeResult] | None = None
    confirmed: bool | None = None
    fresh: ProbeResult | None = None
    first_value: int | None = None
    cost: float | None = None


@dataclass(frozen=True)
class Decision:
    """One probe of a cell's search, why it was made and what it showed.

    Attributes:
        want: which seeds were asked for.
        first_seed: the smallest of the seeds behind the verdict, which are consecutive.
        seeds: how many seeds there were to run at most.
    """

    arm: int
    value: int
    want: Want
    first_seed: int
    seeds: int
    reason: str
    verdict: Verdict | Literal["open"]
    mean_score: float | None
    n_seeds: int
    evidence: str
