"""Optuna asked for the smallest cost that passes: the baseline that does not use order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from optuna.distributions import CategoricalDistribution, IntDistribution
from ray.tune.search import Searcher

from rgr_dist.search.bracket import Bracket
from rgr_dist.search.probe_verdict import SeedTest
from rgr_dist.search.protocol import ProbeKey
from rgr_dist.tuning.optuna_trials import OptunaTrials
from threshold_search.baselines import CountedRuns


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

    A trial is an arm and a cost, trained at the largest value within it, with the seeds that its
    verdict takes, as in the adaptive search; a probe tried before costs nothing. It scores its
    cost if it passes, and beyond every cost, by how far its mean falls short, if it fails. Only
    the caller knows the goal: Optuna could not tell that it has arrived, and has no failing probe
    below to show.

    Args:
        goal: the smallest cost that passes.
        trials: most trials; what was found by then is returned.
    """
    largest = max(arm * axis[-1] for arm, axis in axes.items())
    space = {
        "arm": CategoricalDistribution(list(axes)),
        "cost": IntDistribution(1, largest, log=True),
    }
    search = OptunaTrials(space, "min", trials, seed, lambda params, best: params)
    found: int | None = None
    for number in range(1, trials + 1):
        params = search.suggest(f"{number}")
        if params == Searcher.FINISHED:
            break
        arm = params["arm"]
        value = Bracket(axes[arm]).at_most(params["cost"] / arm)
        objective = 2.0 * largest
        if value:
            key = ProbeKey(arm, value)
            scores = runs.verdict_scores(key, test)
            if test.verdict(scores) == "pass":
                objective = float(arm * value)
                found = min(arm * value, found or largest)
            else:
                objective = largest * (1 + min(1.0, abs(test.mean(scores) - test.target)))
        search.on_trial_complete(f"{number}", {"score": objective})
        if found is not None and found <= goal:
            return OptunaResult(found, number, runs.steps)
    return OptunaResult(found, trials, runs.steps)
