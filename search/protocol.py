"""The words that the search and whatever runs its probes exchange."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal, NamedTuple

Verdict = Literal["pass", "fail"]
Status = Literal["found", "censored", "pruned", "inconsistent", "open"]
Want = Literal["verdict", "every seed", "extra seeds"]
Limit = Literal["capacity", "budget"]


class Place(NamedTuple):
    """Where a cell is probed.

    Attributes:
        h, d_k: head count and axis value.
        longer: trained with the raised step limit of a retest.
    """

    h: int
    d_k: int
    longer: bool = False


@dataclass(frozen=True)
class Need:
    """A probe that a cell's search cannot go on without.

    Attributes:
        reason: why this probe, now.
        want: enough seeds for the verdict, all of them, or the extra ones of a retest too.
    """

    place: Place
    reason: str
    want: Want = "verdict"


@dataclass(frozen=True)
class Probe:
    """What ``Portfolio.ask`` hands out: train these seeds of (cell, h, d_k).

    Attributes:
        seeds: the seeds to train; others of the same place may be trained elsewhere.
        longer: train with the raised step limit of a retest.
        speculative: an idle slot takes it ahead of need; its outcome may prove useless.
    """

    cell: str
    h: int
    d_k: int
    seeds: tuple[int, ...]
    longer: bool
    speculative: bool
    reason: str

    @property
    def place(self) -> Place:
        """Where in its cell."""
        return Place(self.h, self.d_k, self.longer)


class Signal(Enum):
    """What ``Portfolio.ask`` answers when it has no probe to give."""

    WAIT = "everything that is needed is being run"
    DONE = "every cell is finished"


@dataclass(frozen=True)
class CellPlan:
    """One cell to be searched: the smallest passing d_k of each head count.

    A search that has no heads has one entry in ``axes``, under 1.

    Attributes:
        cell: its name.
        axes: the values of d_k allowed for each head count, increasing, such as a ``range``;
            the head counts stand in the order to report.
        guess_D_K: where the search starts.
        guess_h: the head count expected to need the least; heads near it go first.
        spread: factor by which the guess may well be wrong: how far the first steps go.
        keep_within: heads whose threshold lies within this share above the best are searched
            to the end, others are pruned; None searches every head.
        intervals: probe all seeds beside the threshold for App. A.2's intervals.
        every_value: probe every value with every seed instead of searching: a grid.
        every_head: the axes hold every head count: one that has no more heads, and no wider
            ones, than a failing probe is taken to fail too, since it is a part of it.
        retest_longer: train the failing side of each certificate with a raised step limit.
    """

    cell: str
    axes: Mapping[int, Sequence[int]]
    guess_D_K: float
    guess_h: float = 1.0
    spread: float = 1.5
    keep_within: float | None = 0.10
    intervals: bool = True
    every_value: bool = False
    every_head: bool = False
    retest_longer: bool = False

    def __post_init__(self) -> None:
        """Refuse what could not be searched.

        Raises:
            ValueError: an axis is empty, or a guess is not positive.
        """
        if not all(self.axes.values()):
            raise ValueError(f"{self.cell}: axes: give every head at least one value")
        if not (self.guess_D_K > 0 and self.guess_h > 0 and self.spread > 1):
            raise ValueError(f"{self.cell}: guesses must be positive, and the spread above 1")

    def limit(self, h: int) -> int:
        """Largest d_k allowed at h heads."""
        return self.axes[h][-1]


@dataclass(frozen=True)
class ProbeResult:
    """The evidence of one probe: mean score over the seeds that ran."""

    d_k: int
    mean_score: float
    n_seeds: int


@dataclass(frozen=True)
class HeadResult:
    """What is known of one (cell, h).

    Attributes:
        d_k: the threshold; None unless found.
        D_K_low, D_K_high: found: the optimistic and conservative D_K of App. A.2, None if
            not asked for. Otherwise: the smallest D_K not excluded, and the smallest known to
            pass.
        because: what the status rests on, in words.
        passed, failed: the certificate: the probes at d_k and at the value below it on the axis.
        contradiction: the pass and the fail above it that make the evidence inconsistent.
        longer: the failing probe of the certificate, trained with a raised step limit.
        limited_by: by that retest, what the layer lacked below the threshold: capacity, if it
            fails again, or training steps.
    """

    h: int
    status: Status
    d_k: int | None
    D_K_low: int | None
    D_K_high: int | None
    because: str
    passed: ProbeResult | None = None
    failed: ProbeResult | None = None
    contradiction: tuple[ProbeResult, ProbeResult] | None = None
    longer: ProbeResult | None = None
    limited_by: Limit | None = None


@dataclass(frozen=True)
class Decision:
    """One probe of a cell's search, why it was made and what it showed."""

    h: int
    d_k: int
    longer: bool
    reason: str
    verdict: Verdict | Literal["open"]
    mean_score: float | None
    n_seeds: int
    evidence: str
