"""The words that the search and whatever runs its probes exchange."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

Verdict = Literal["pass", "fail"]
Status = Literal["found", "censored", "pruned", "inconsistent", "open"]


@dataclass(frozen=True)
class Need:
    """A probe that a cell's search cannot go on without.

    Attributes:
        h, d_k: where to probe.
        complete: every seed is wanted, not only enough of them for the verdict.
        reason: why this probe, now.
    """

    h: int
    d_k: int
    complete: bool
    reason: str


@dataclass(frozen=True)
class Probe:
    """What ``Portfolio.ask`` hands out: train (cell, h, d_k) until its verdict is known.

    Attributes:
        scores: scores known already, by seed; these seeds are not trained again.
        complete: every seed is wanted.
        speculative: an idle slot takes it ahead of need; its outcome may prove useless.
    """

    cell: str
    h: int
    d_k: int
    scores: tuple[tuple[int, float], ...]
    complete: bool
    speculative: bool
    reason: str


class Signal(Enum):
    """What ``Portfolio.ask`` answers when it has no probe to give."""

    WAIT = "everything that is needed is being run"
    DONE = "every cell is finished"


@dataclass(frozen=True)
class CellPlan:
    """One cell to be searched.

    Attributes:
        cell: its name.
        limits: largest d_k allowed for each head count, in the order to report.
        guess_D_K: where the search starts.
        guess_h: the head count expected to need the least; heads near it go first.
        keep_within: heads whose threshold lies within this share above the best are searched
            to the end, others are pruned; None searches every head.
        intervals: probe all seeds beside the threshold for App. A.2's intervals.
        grid: train exactly these d_k of each head instead of searching.
    """

    cell: str
    limits: dict[int, int]
    guess_D_K: float
    guess_h: float
    keep_within: float | None = 0.10
    intervals: bool = True
    grid: dict[int, tuple[int, ...]] | None = None


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
        passed, failed: the certificate: the probes at d_k and at d_k - 1, or in a grid at the
            next smaller width that is listed.
        contradiction: the pass and the fail above it that make the evidence inconsistent.
    """

    h: int
    status: Status
    d_k: int | None
    D_K_low: int | None
    D_K_high: int | None
    passed: ProbeResult | None = None
    failed: ProbeResult | None = None
    contradiction: tuple[ProbeResult, ProbeResult] | None = None


@dataclass(frozen=True)
class Decision:
    """One probe of a cell's search, why it was made and what it showed."""

    h: int
    d_k: int
    reason: str
    verdict: Verdict | Literal["open"]
    mean_score: float | None
    n_seeds: int
    evidence: str
