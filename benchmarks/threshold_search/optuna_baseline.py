"""Optuna asked for the smallest cost that passes: the baseline that does not use order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ray.tune.search import Searcher

from rgr_dist.search.probe_verdict import SeedTest
from rgr_dist.tuning.optuna_trials import OptunaTrials
from threshold_search.baselines import CountedRuns
from threshold_search.optuna_asked import probe_space, try_probe


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
    axes: Mapping[int, Sequence[int]],
    test: SeedTest,
    runs: CountedRuns,
    goal: int,
    trials: int,
    seed: int,
) -> OptunaResult:
    """Let TPE minimise the cost that passes, until it has reached a goal or used up its trials.

    A trial is a probe, with the seeds that its verdict takes, as in the adaptive search. Only the
    caller knows the goal: Optuna could not tell that it has arrived, and has no failing probe
    below to show.

    Args:
        goal: the smallest cost that passes.
        trials: most trials; what was found by then is returned.
    """
    search = OptunaTrials(probe_space(axes), "min", trials, seed, lambda params, best: params)
    found: int | None = None
    for number in range(1, trials + 1):
        params = search.suggest(f"{number}")
        if params == Searcher.FINISHED:
            break
        objective, key = try_probe(axes, test, runs, params)
        if key is not None:
            cost = key.arm * key.value
            found = min(cost, found or cost)
        search.on_trial_complete(f"{number}", {"score": objective})
        if found is not None and found <= goal:
            return OptunaResult(found, number, runs.steps)
    return OptunaResult(found, trials, runs.steps)
