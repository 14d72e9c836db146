"""What an engine is: it trains runs of one (cell, h, d_k) and says how each ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from rgr_dist.study.study import Run

StopReason = Literal["converged", "max_steps", "diverged"]


@dataclass(frozen=True)
class Outcome:
    """How one run ended.

    Attributes:
        score: test micro-F1, the transformer's test accuracy, or the mean squared error of model
            ``value``; None if the run diverged.
        val_score: the same on validation at the last check, or the transformer's best; None if
            the run diverged.
        tau: the learned threshold; None if the run diverged or its model has none.
        steps: training steps done; where a run diverged, the check that saw it.
        seconds: the run's share of the wall time of the program that trained it.
        null_rate: share of the transformer's test queries that it answered with NULL.
    """

    score: float | None
    val_score: float | None
    tau: float | None
    steps: int
    stop_reason: StopReason
    seconds: float
    null_rate: float | None = None


@dataclass(frozen=True)
class Weights:
    """Parameters of one run: W_Q and W_K, [d_model, D_K], and tau, 0 if the model has none."""

    W_Q: npt.NDArray[np.floating]
    W_K: npt.NDArray[np.floating]
    tau: float


BlockWeights = dict[str, npt.NDArray[np.floating]]
"""Parameters of one transformer block, by name (``models.transformer``)."""


class Engine(Protocol):
    """Trains runs that differ in their seed alone; one run never affects another's numbers."""

    name: str

    def train(self, runs: Sequence[Run]) -> list[Outcome]:
        """Train every run until it stops, test it, and return the outcomes in order."""

    def weights_after(self, runs: Sequence[Run], steps: int) -> Sequence[Weights | BlockWeights]:
        """The weights after so many steps, without checks or stopping: to compare engines."""
