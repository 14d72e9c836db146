"""What tuning the training protocol means: where it is tuned, by which score, and how it is used.

The score of a protocol is the mean test score over the tuned probes and the seeds, after at most
``max_steps``; a run that diverged gets the worst possible score. Thresholds are defined by this
score, every run has one, and none is better than perfect, so a trial can be pruned exactly. The
number of steps to converge would be cheaper to obtain, but says nothing below the threshold, where
runs do not converge. Yet that is where the protocol matters: above the threshold every sensible
protocol is near perfect.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rgr_dist.planning.listing import sizes_of
from rgr_dist.planning.portfolio import check_heads
from rgr_dist.search.cell_state import CellState
from rgr_dist.search.old_portfolio import Portfolio
from rgr_dist.store.store import Store
from rgr_dist.study.address import digest
from rgr_dist.study.cell import Cell
from rgr_dist.study.errors import StudyError
from rgr_dist.study.run import Run
from rgr_dist.study.study import Study
from rgr_dist.study.training import Training

SPACE = {"learning_rate": (1e-4, 1e-1), "sharpness": (1.0, 100.0), "initial_scale": (0.1, 10.0)}
"""Keys of ``training`` that are tuned if the model uses them, each between two values, on a log
scale."""
BELOW_PREDICTED = 0.9
"""Share of the predicted D_K at which a head is tuned if its threshold is not known."""
DIGITS = 4
"""Significant digits of a tuned value, in training as in print, so that both agree."""

Protocol = Mapping[str, float]


@dataclass(frozen=True)
class TunedProbe:
    """Where a protocol is tried: (cell, h, d_k), with every seed of the study."""

    cell: Cell
    h: int
    d_k: int

    def run(self, protocol: Protocol, seed: int) -> Run:
        """The run of a seed under a protocol, trained to its end."""
        keys = {**self.cell.training.model_dump(), **protocol, "give_up_below": None}
        training = Training(**keys)
        cell = self.cell.model_copy(update={"training": training})
        return Run(cell=cell, h=self.h, d_k=self.d_k, seed=seed)


def probes_to_tune(
    portfolio: Portfolio,
    cells: Sequence[Cell],
    heads: Sequence[int] = (),
    D_K: int | None = None,
) -> list[TunedProbe]:
    """Where to tune: in each cell, at the given heads or at the one that needs the least D_K.

    Args:
        portfolio: the study's search, which knows the thresholds found so far.
        D_K: total width; by default the largest that fails, one d_k below the threshold, or
            ``BELOW_PREDICTED`` of the expected D_K where no threshold has been found.

    Raises:
        StudyError: a head does not divide D_K.
    """
    probes: dict[tuple[str, int, int], TunedProbe] = {}  # once if cells differ only in tuned keys
    for cell in cells:
        state = portfolio.state(cell.cell_id)
        check_heads(cell, state, heads)
        for h in heads or (_least_head(state),):
            if D_K is not None and D_K % h:
                raise StudyError(f"--D_K {D_K}: not a multiple of h = {h}; give one, or --heads")
            probe = TunedProbe(cell, h, _width(state, h) if D_K is None else D_K // h)
            run = probe.run(dict.fromkeys(tuned_keys(cell), 1.0), 0)
            probes.setdefault((run.cell.cell_id, h, probe.d_k), probe)
    return [*probes.values()]


def _least_head(state: CellState) -> int:
    if state.best is not None:
        return state.best.arm
    return min(state.plan.axes, key=lambda h: (abs(math.log2(h / state.plan.guess_arm)), h))


def _width(state: CellState, h: int) -> int:
    found = state.result(h).value
    if found is not None:
        return max(1, found - 1)
    return max(1, math.floor(BELOW_PREDICTED * state.plan.guess_cost / h))


def tuned_keys(cell: Cell) -> list[str]:
    """Those of ``SPACE`` that the cell's model uses."""
    return [key for key in SPACE if f"training.{key}" not in cell.record.unused_keys]


def present_protocol(cell: Cell) -> dict[str, float]:
    """The values that a cell now has for the tuned keys: the first trial."""
    return {key: float(getattr(cell.training, key)) for key in tuned_keys(cell)}


def bounds(present: Protocol) -> dict[str, tuple[float, float]]:
    """The values between which each key is tuned: ``SPACE``, widened to hold the present ones."""
    return {
        key: (min(SPACE[key][0], value), max(SPACE[key][1], value))
        for key, value in present.items()
    }


def rounded(protocol: Protocol) -> dict[str, float]:
    """A protocol as it is trained and printed, to ``DIGITS`` significant digits."""
    return {key: float(f"{protocol[key]:.{DIGITS}g}") for key in SPACE if key in protocol}


def described(study: Study, probes: Sequence[TunedProbe]) -> dict[str, Any]:
    """What the trials of one tuning have in common: probes, seeds, bounds and step limits.

    Tunings that differ in this cannot compare their trials, so each has trials of its own, named
    by the digest of this. The present values of the tuned keys affect it only through the bounds.
    """
    neutral = dict.fromkeys(tuned_keys(probes[0].cell), 1.0)
    return {
        "places": [
            {
                "m": probe.cell.m,
                "d_model": probe.cell.d_model,
                "h": probe.h,
                "d_k": probe.d_k,
                "max_steps": probe.cell.training.max_steps,
                "cell": probe.run(neutral, 0).cell.cell_id,
            }
            for probe in probes
        ],
        "seeds": study.search.seeds,
        "bounds": bounds(present_protocol(probes[0].cell)),
    }


@dataclass(frozen=True)
class Tuning:
    """What is to be tuned.

    Attributes:
        probes: where each protocol is tried; the score of a trial is the mean over all of them.
        trials: how many trials are to be finished.
        seed: seed of Optuna's sampler.
    """

    study: Study
    store: Store
    probes: Sequence[TunedProbe]
    trials: int
    seed: int = 0

    @property
    def trials_name(self) -> str:
        """Optuna's name for its trials, which differs wherever trials are not comparable."""
        return f"{self.study.name}-{digest(described(self.study, self.probes), 8)}"

    @property
    def present(self) -> dict[str, float]:
        """The present protocol of the first of its probes."""
        return present_protocol(self.probes[0].cell)


def is_hopeless(scores: Sequence[float], runs: int, perfect: float, best: float | None) -> bool:
    """Whether a trial's mean stays worse than the best one even if all its other runs are perfect.

    A pruned trial would not have been the best: pruning changes the cost, not the answer.

    Args:
        scores: scores of the trial's runs so far.
        runs: how many runs the trial has in all.
        perfect: the best possible score.
        best: mean score of the best trial so far; None before the first.
    """
    lost = math.fsum(abs(perfect - score) for score in scores)
    return best is not None and lost > runs * abs(perfect - best)


def probe_rows(study: Study, probes: Sequence[TunedProbe]) -> list[dict[str, Any]]:
    """The tuned probes as rows of a listing, with what tells their cells apart."""
    return [
        {**sizes_of(study, one.cell), "h": one.h, "d_k": one.d_k, "D_K": one.h * one.d_k}
        for one in probes
    ]


def flags(protocol: Protocol) -> list[str]:
    """A protocol as options of a study's commands: ``--set training.learning_rate=0.001 …``."""
    return [
        word
        for key, value in protocol.items()
        for word in ("--set", f"training.{key}={value:.{DIGITS}g}")
    ]
