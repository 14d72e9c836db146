"""What Optuna is asked: the space of a cell's probes, and how good each of them was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution

from rgr_dist.search.bracket import Bracket
from rgr_dist.search.probe_verdict import SeedTest
from rgr_dist.search.protocol import ProbeKey
from threshold_search.baselines import CountedRuns

Axes = Mapping[int, Sequence[int]]


def largest_cost(axes: Axes) -> int:
    """The cost of the dearest probe."""
    return max(arm * axis[-1] for arm, axis in axes.items())


def probe_space(axes: Axes) -> dict[str, BaseDistribution]:
    """An arm, and a cost within which its largest value is tried."""
    cost = IntDistribution(1, largest_cost(axes), log=True)
    return {"arm": CategoricalDistribution(list(axes)), "cost": cost}


def try_probe(
    axes: Axes, test: SeedTest, runs: CountedRuns, params: Mapping[str, Any]
) -> tuple[float, ProbeKey | None]:
    """The objective of a trial, to be minimised, and its probe if that passes.

    It is the cost of a probe that passes, and beyond every cost, by how far its mean falls short,
    of one that fails. A probe gets the seeds that its verdict takes; one tried before is free.
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


def least_by_trials(
    axes: Axes, test: SeedTest, runs: CountedRuns, trials: int, seed: int
) -> ProbeKey | None:
    """The probe of the least cost that passes in so many trials of TPE; None if none does."""
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    space, passed = probe_space(axes), []
    for _ in range(trials):
        trial = study.ask(space)
        objective, key = try_probe(axes, test, runs, trial.params)
        study.tell(trial, objective)
        passed += [key] if key else []
    return min(passed, key=lambda key: key.arm * key.value, default=None)
