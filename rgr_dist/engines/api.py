"""The interface that all engines share: an engine makes lanes, and one loop trains them all.

A lane is one run in training. All engines give the same numbers up to rounding, at very different
speeds.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt

from rgr_dist.engines.checks import Checks, StopReason
from rgr_dist.study.run import Run


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How one run ended.

    Attributes:
        steps: training steps done; if the run diverged, up to the check that noticed it.
        seconds: wall time of its training, checks and test.
        score: test micro-F1, accuracy for model ``transformer``, or mean squared error for model
            ``value``; None if the run diverged.
        val_score: the same on validation data at the last check, or the best one for model
            ``transformer``; None if the run diverged. Where relations share an embedding it is that
            of the worst, while ``score`` and ``tau`` are their means.
        tau: the learned threshold; None if the run diverged or its model has none.
        parameters, cached: how many numbers a layer from a file trains, without tau, and how many
            a decoder keeps for each token, if the layer says; None for other models.
        null_rate: share of test queries that model ``transformer`` answered with NULL.
        details: what a model with a room of its own reports beyond its score, as JSON can hold it.
    """

    steps: int
    stop_reason: StopReason
    seconds: float = 0.0
    score: float | None = None
    val_score: float | None = None
    tau: float | None = None
    null_rate: float | None = None
    details: dict[str, Any] | None = None
    parameters: int | None = None
    cached: int | None = None


def mean(outcomes: Sequence[Outcome]) -> Outcome:
    """How a run of several relations ended: their mean score and mean tau."""
    taus = [one.tau for one in outcomes if one.tau is not None]
    scores = [one.score for one in outcomes if one.score is not None]
    return replace(outcomes[0], score=fmean(scores), tau=fmean(taus))


Weights = dict[str, npt.NDArray[np.floating]]
"""Parameters of one run by name, as the reference shapes them."""


class Lane(ABC):
    """One run in training.

    Attributes:
        steps: training steps done.
    """

    steps: int

    @abstractmethod
    def advance(self, steps: int) -> None:
        """Take ``steps`` training steps."""

    @abstractmethod
    def check(self, above: float | None) -> float | None:
        """The validation score; not finite if the run has diverged.

        Args:
            above: if given, None may be returned for a score that is certainly not above it.
        """

    @abstractmethod
    def outcome(self, stop_reason: StopReason, val_score: float | None) -> Outcome:
        """How the run ended if it stops now, with its test score, without its ``seconds``."""

    @abstractmethod
    def weights(self) -> Weights:
        """A copy of the weights by name."""


class Engine(ABC):
    """Trains runs; no run affects another's numbers."""

    name: str

    def train(self, runs: Sequence[Run]) -> list[Outcome]:
        """Train every run until it stops, test it, and return the outcomes in order."""
        return [outcome for (outcome,) in self.train_through(runs, ())]

    @abstractmethod
    def train_through(self, runs: Sequence[Run], budgets: Sequence[int]) -> list[list[Outcome]]:
        """Train every run, and also report how it would have ended at smaller step limits.

        Args:
            budgets: step limits below that of the runs, increasing.

        Returns:
            For each run, its outcome at each budget, then at its own limit: bit for bit what
            separate runs would give, except for ``seconds``.
        """

    @abstractmethod
    def weights_after(self, runs: Sequence[Run], steps: int) -> list[Weights]:
        """The weights after ``steps`` steps, without checks or early stopping."""


class LaneEngine(Engine):
    """An engine that trains one lane after another, by the one training loop."""

    @abstractmethod
    def lane(self, run: Run) -> Lane:
        """A lane at the start of a run."""

    def train_through(self, runs: Sequence[Run], budgets: Sequence[int]) -> list[list[Outcome]]:
        """Train every run, and also report how it would have ended at smaller step limits."""
        return [self._train(run, budgets) for run in runs]

    def weights_after(self, runs: Sequence[Run], steps: int) -> list[Weights]:
        """The weights after ``steps`` steps, without checks or early stopping."""
        lanes = [self.lane(run) for run in runs]
        for lane in lanes:
            lane.advance(steps)
        return [lane.weights() for lane in lanes]

    def _train(self, run: Run, budgets: Sequence[int]) -> list[Outcome]:
        """Advance a run to the next check, again and again, until it has ended at every limit."""
        started = time.perf_counter()
        lane, checks = self.lane(run), Checks(run.cell, budgets)
        outcomes: list[Outcome] = []
        while checks.limits:
            lane.advance(checks.steps_to_next(lane.steps))
            val_score = lane.check(checks.above(lane.steps))
            reasons = checks.after(lane.steps, val_score)
            if not reasons:
                continue
            outcome = Outcome(steps=lane.steps, stop_reason=reasons[0])
            if reasons[0] != "diverged":
                outcome = lane.outcome(reasons[0], val_score)
            seconds = time.perf_counter() - started
            outcomes += [replace(outcome, stop_reason=why, seconds=seconds) for why in reasons]
        return outcomes
