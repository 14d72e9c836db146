"""Optuna asked for the smallest total width that passes: the baseline that does not use order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from optuna.distributions import CategoricalDistribution, IntDistribution
from ray.tune.search import Searcher

from search.bracket import Bracket
from search.protocol import Place
from search.seed_test import SeedTest
from search.tune.optuna import OptunaTrials
from threshold_search.baselines import CountedRuns


@dataclass(frozen=True)
class OptunaResult:
    """What Optuna found.

    Attributes:
        D_K: smallest total width that passed; None if none did.
        trials: how many it took to find it, the repeated ones included.
        steps: training steps by then.
    """

    D_K: int | None
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
    """Let TPE minimise the D_K that passes, until it has reached a goal or used up its trials.

    A trial is a head count and a total width, trained at the largest d_k within it, with the
    seeds that its verdict takes, as in the adaptive search; a probe tried before costs nothing.
    It scores its D_K if it passes, and beyond every D_K, by how far its mean falls short, if it
    fails. The goal is known to the caller alone: Optuna could not tell that it has arrived, and
    has no failing probe below to show.

    Args:
        goal: the smallest D_K that passes.
        trials: most trials; what was found by then is returned.
    """
    largest = max(h * axis[-1] for h, axis in axes.items())
    space = {
        "h": CategoricalDistribution(list(axes)),
        "D_K": IntDistribution(1, largest, log=True),
    }
    search = OptunaTrials(space, "min", trials, seed, lambda params, best: params)
    found: int | None = None
    for number in range(1, trials + 1):
        params = search.suggest(f"{number}")
        if params == Searcher.FINISHED:
            break
        h = params["h"]
        d_k = Bracket(axes[h]).at_most(params["D_K"] / h)
        value = 2.0 * largest
        if d_k:
            place = Place(h, d_k)
            scores = runs.verdict_scores(place, test)
            if test.verdict(scores) == "pass":
                value = float(h * d_k)
                found = min(h * d_k, found or largest)
            else:
                value = largest * (1 + min(1.0, abs(test.mean(scores) - test.target)))
        search.on_trial_complete(f"{number}", {"score": value})
        if found is not None and found <= goal:
            return OptunaResult(found, number, runs.steps)
    return OptunaResult(found, trials, runs.steps)
