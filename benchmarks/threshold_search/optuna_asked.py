"""Optuna asked for the smallest cost that passes: what it may try, and what it finds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution

from rgr_dist.search.bracket import Bracket
from rgr_dist.search.probe_verdict import SeedTest
from rgr_dist.search.protocol import ProbeKey
from threshold_search.baselines import CountedRuns

Axes = Mapping[int, Sequence[int]]


def largest_cost(axes: Axes) -> int:
    """The cost of the most expensive probe."""
    return max(arm * axis[-1] for arm, axis in axes.items())


def probe_space(axes: Axes) -> dict[str, BaseDistribution]:
    """What a trial chooses: an arm, and a cost, within which the arm's largest value is tried."""
    cost = IntDistribution(1, largest_cost(axes), log=True)
    return {"arm": CategoricalDistribution(list(axes)), "cost": cost}


def try_probe(
    axes: Axes, test: SeedTest, runs: CountedRuns, params: Mapping[str, Any]
) -> tuple[float, ProbeKey | None]:
    """The objective of a trial, to be minimised, and its probe if that passes.

    If the probe passes, the objective is its cost; if it fails, the largest cost and more, by how
    far its mean falls short. A probe gets the seeds that its verdict takes; a repeated one is free.
    """
    arm, largest = params["arm"], largest_cost(axes)
    value = Bracket(axes[arm]).at_most(params["cost"] / arm)
    if not value:
        return 2.0 * largest, None
    key = ProbeKey(arm, value)
    scores = runs.verdict_scores(key, test)
    if test.verdict(scores) == "pass":
        return float(arm * value), key
    return largest * (1 + min(1.0, abs(test.mean(scores) - test.target))), None


@dataclass(frozen=True)
class OptunaResult:
    """What Optuna found.

    Attributes:
        cost: the smallest that passed; None if none did.
        trials: how many it took to find it, the repeated ones included.
        steps: training steps by then.
    """

    cost: int | None
    trials: int
    steps: int


def smallest_by_optuna(
    axes: Axes, test: SeedTest, runs: CountedRuns, goal: int, trials: int, seed: int
) -> OptunaResult:
    """Let TPE minimise the cost that passes, until it has reached a goal or used up its trials.

    A trial is a probe, with the seeds that its verdict takes, as in the adaptive search. Only the
    caller knows the goal: Optuna could not tell that it has arrived, and has no failing probe
    below to show.

    Args:
        goal: the smallest cost that passes.
        trials: most trials; what was found by then is returned.
    """
    found: int | None = None
    for number, key in enumerate(_passing(axes, test, runs, trials, seed), 1):
        if key is not None:
            cost = key.arm * key.value
            found = min(cost, found or cost)
        if found is not None and found <= goal:
            return OptunaResult(found, number, runs.steps)
    return OptunaResult(found, trials, runs.steps)


def least_by_trials(
    axes: Axes, test: SeedTest, runs: CountedRuns, trials: int, seed: int
) -> ProbeKey | None:
    """The probe of the least cost that passes in so many trials of TPE; None if none does."""
    passed = filter(None, _passing(axes, test, runs, trials, seed))
    return min(passed, key=lambda key: key.arm * key.value, default=None)


def _passing(
    axes: Axes, test: SeedTest, runs: CountedRuns, trials: int, seed: int
) -> Iterator[ProbeKey | None]:
    """The probe of each trial of TPE if it passes."""
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    space = probe_space(axes)
    for _ in range(trials):
        trial = study.ask(space)
        objective, key = try_probe(axes, test, runs, trial.params)
        study.tell(trial, objective)
        yield key
