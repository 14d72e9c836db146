"""The interface that all engines share: what an engine is, and how a run ends.

An engine trains runs of one (cell, h, d_k). All engines give the same numbers up to rounding, at
very different speeds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Literal

import numpy as np
import numpy.typing as npt

from rgr_dist.study.run import Run

StopReason = Literal["converged", "max_steps", "given_up", "diverged"]

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8
"""AdamW's constants; the paper gives none, so these are the defaults of ``torch.optim.AdamW``."""


@dataclass(frozen=True)
class FactsOutcome:
    """What is kept about a trained layer of facts; L is its logits for all pairs, [|K|, |Q|, |V|].

    The largest rank of an unfolding is a lower bound on a tensor's rank (``facts.ranks``).

    Attributes:
        argmax_accuracy: share of the asked triples whose value has the largest logit.
        softmax_accuracy: share whose value has a probability of at least ``facts.tau``.
        rank_logits: largest rank of an unfolding of L.
        rank_argmax: the same for the 0/1 tensor that marks the largest logits.
        by_tau: for several increasing tau: tau, the share of the asked triples whose value has a
            probability of at least tau, and the largest rank of an unfolding of softmax≥tau(L).
    """

    argmax_accuracy: float
    softmax_accuracy: float
    rank_logits: int
    rank_argmax: int
    by_tau: tuple[tuple[float, float, int], ...]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How one run ended.

    Attributes:
        steps: training steps done; if the run diverged, up to the check that noticed it.
        seconds: the run's share of the wall time of the program that trained it.
        score: test micro-F1, accuracy for models ``transformer`` (test) and ``facts``, or mean
            squared error for model ``value`` (test); None if the run diverged.
        val_score: the same on validation data at the last check, or the best one for model
            ``transformer``; None if the run diverged.
        tau: the learned threshold; None if the run diverged or its model has none.
        parameters, cached: how many numbers a layer from a file trains, without tau, and how many
            a decoder keeps for each token, if the layer says; None for other models.
        null_rate: share of test queries that model ``transformer`` answered with NULL.
        facts: what model ``facts`` reports beyond its score; None if it diverged, and for others.
    """

    steps: int
    stop_reason: StopReason
    seconds: float = 0.0
    score: float | None = None
    val_score: float | None = None
    tau: float | None = None
    null_rate: float | None = None
    facts: FactsOutcome | None = None
    parameters: int | None = None
    cached: int | None = None


End = tuple[int, StopReason, float | None]
"""A lane of a program that has ended, the reason, and its score at the last check."""

Weights = dict[str, npt.NDArray[np.floating]]
"""Parameters of one run by name. A layer of edges has W_Q and W_K, [d_model, D_K], and tau, [],
which is 0 if the model has none; a layer from a file has its own parameters and tau."""


class Engine(ABC):
    """Trains runs that differ only in their seed; no run affects another's numbers."""

    name: str

    def train(self, runs: Sequence[Run]) -> list[Outcome]:
        """Train every run until it stops, test it, and return the outcomes in order."""
        return [outcome for (outcome,) in self.train_through(runs, ())]

    @abstractmethod
    def train_through(self, runs: Sequence[Run], budgets: Sequence[int]) -> list[list[Outcome]]:
        """Train every run, and also report how it would have ended at smaller step limits.

        Args:
            runs: at least one.
            budgets: step limits below that of the runs, increasing.

        Returns:
            For each run, its outcome at each budget, then at its own limit: bit for bit what
            separate runs would give, except for ``seconds``.
        """

    @abstractmethod
    def weights_after(self, runs: Sequence[Run], steps: int) -> list[Weights]:
        """The weights after ``steps`` steps, without checks or early stopping."""


def padded(size: int, multiple: int) -> int:
    """The size rounded up to a multiple of ``multiple``."""
    return -(-size // multiple) * multiple


def trained_apart(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Outcomes of one run at growing limits, each trained from scratch; their time adds up."""
    spent = accumulate(outcome.seconds for outcome in outcomes)
    return [replace(one, seconds=total) for one, total in zip(outcomes, spent, strict=True)]


def f1_cannot_exceed(actual: int, errors: int, value: float) -> bool:
    """Whether this many errors keep micro-F1 from exceeding a value.

    With A actual edges and E errors, F1 is at most 2A / (2A + E), because F1 = 2 TP / (2 TP + FP +
    FN) and TP <= A. Both are quotients of integers and rounded alike, so the bound also holds for
    the computed F1.
    """
    return errors > 0 and 2 * actual / (2 * actual + errors) <= value
