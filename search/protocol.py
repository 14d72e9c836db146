"""The words that the search and whatever runs its probes exchange.

A cell has arms, each named by a positive integer, and each arm an axis of values. A probe of an arm
at a value costs arm × value. The search finds the smallest value of each arm that passes, and which
arm passes at the least cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal, NamedTuple

Verdict = Literal["pass", "fail"]
Status = Literal["found", "censored", "pruned", "inconsistent", "open"]
Want = Literal["verdict", "every seed", "extra seeds"]
Limit = Literal["capacity", "budget"]


class ProbeKey(NamedTuple):
    """What names a probe in its cell.

    Attributes:
        extended: trained with the extended budget of a retest.
    """

    arm: int
    value: int
    extended: bool = False


class Words(NamedTuple):
    """What reasons and explanations call a value, a cost and several arms."""

    value: str = "value"
    cost: str = "cost"
    arms: str = "arms"


STANDARD_WORDS = Words()


@dataclass(frozen=True)
class Need:
    """A probe that a cell's search cannot go on without.

    Attributes:
        reason: why this probe, now.
        want: enough seeds for the verdict, all of them, or the extra ones of a retest too.
    """

    key: ProbeKey
    reason: str
    want: Want = "verdict"


@dataclass(frozen=True)
class Probe:
    """What ``Portfolio.ask`` hands out: train these seeds of (cell, arm, value).

    Attributes:
        seeds: the seeds to train; others of the same probe may be trained elsewhere.
        extended: train with the extended budget of a retest.
        speculative: an idle slot takes it ahead of need; its outcome may prove useless.
    """

    cell: str
    arm: int
    value: int
    seeds: tuple[int, ...]
    extended: bool
    speculative: bool
    reason: str

    @property
    def key(self) -> ProbeKey:
        """What names it in its cell."""
        return ProbeKey(self.arm, self.value, self.extended)


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
        spread: factor by which the guess may well be wrong: how far the first steps go.
        keep_within: arms whose threshold lies within this share above the best are searched
            to the end, others are pruned; None searches every arm.
        intervals: probe all seeds beside the threshold for App. A.2's intervals.
        every_value: probe every value with every seed instead of searching: a grid.
        every_arm: the axes hold every arm from 1 on, and what fails at an arm and value also
            fails at smaller ones: few arms need to be tried.
        retest_extended: train the failing side of each certificate with an extended budget.
        words: what the texts call values, costs and arms.
    """

    cell: str
    axes: Mapping[int, Sequence[int]]
    guess_cost: float
    guess_arm: float = 1.0
    spread: float = 1.5
    keep_within: float | None = 0.10
    intervals: bool = True
    every_value: bool = False
    every_arm: bool = False
    retest_extended: bool = False
    words: Words = STANDARD_WORDS

    def __post_init__(self) -> None:
        """Refuse what could not be searched.

        Raises:
            ValueError: an axis is empty, or a guess is not positive.
        """
        if not all(self.axes.values()):
            raise ValueError(f"{self.cell}: axes: give every arm at least one value")
        if not (self.guess_cost > 0 and self.guess_arm > 0 and self.spread > 1):
            raise ValueError(f"{self.cell}: guesses must be positive, and the spread above 1")

    def limit(self, arm: int) -> int:
        """Largest value allowed for an arm."""
        return self.axes[arm][-1]


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
        cost_low, cost_high: found: the optimistic and conservative cost of App. A.2, None if
            not asked for. Otherwise: the smallest cost not excluded, and the smallest known to
            pass.
        because: what the status rests on, in words.
        passed, failed: the certificate: the probes at the threshold and at the value below it.
        contradiction: the pass and the fail above it that make the evidence inconsistent.
        extended: the failing probe of the certificate, trained with an extended budget.
        limited_by: what was lacking below the threshold, by that retest: capacity, if it fails
            again, or training budget.
    """

    arm: int
    status: Status
    value: int | None
    cost_low: int | None
    cost_high: int | None
    because: str
    passed: ProbeResult | None = None
    failed: ProbeResult | None = None
    contradiction: tuple[ProbeResult, ProbeResult] | None = None
    extended: ProbeResult | None = None
    limited_by: Limit | None = None

    @property
    def cost(self) -> int | None:
        """The cost at the threshold; None unless found."""
        return None if self.value is None else self.arm * self.value


@dataclass(frozen=True)
class Decision:
    """One probe of a cell's search, why it was made and what it showed."""

    arm: int
    value: int
    extended: bool
    reason: str
    verdict: Verdict | Literal["open"]
    mean_score: float | None
    n_seeds: int
    evidence: str
