"""The rules of search that ``search_statistics.py`` compares: what each finds from a cell's runs.

A new rule of the package's own search is a line in ``OF_THE_CORE``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from rgr_dist.search.best_arm import rank
from rgr_dist.search.protocol import ArmResult, ProbeKey
from threshold_search.baselines import CountedRuns, adaptive, exhaustive
from threshold_search.made_up_cells import MadeUpCell
from threshold_search.noisy_bisection import Ask, expected_entropy, probabilistic_bisection
from threshold_search.optuna_asked import least_by_trials

TRIALS = 60
"""Probes that Optuna gets for a cell."""


class Outcome(NamedTuple):
    """What a rule found.

    Attributes:
        winner: h* and its d_k; None if nothing passed.
        low, high: the interval of D_K*; None where the rule gives none, or that end is open.
        heads: the head counts that may be the best ones; None where the rule does not say.
    """

    winner: ProbeKey | None
    low: float | None = None
    high: float | None = None
    heads: frozenset[int] | None = None


Rule = Callable[[MadeUpCell, CountedRuns, int], Outcome]
"""Takes a cell, its runs and the number of the repeat, which seeds what the rule itself draws."""


@dataclass(frozen=True)
class CoreRule:
    """The package's own search, with changes to the plan and the test that ``base-grid`` makes."""

    plan: Mapping[str, Any] = field(default_factory=dict)
    test: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, cell: MadeUpCell, runs: CountedRuns, repeat: int) -> Outcome:
        """Search until it is done."""
        plan, test = replace(cell.plan, **self.plan), replace(cell.test, **self.test)
        return _of_results(adaptive(plan, test, runs), has_intervals=bool(plan.intervals))


def exhaustive_grid(seeds: int, cell: MadeUpCell, runs: CountedRuns, repeat: int) -> Outcome:
    """So many seeds at every d_k of every head count, with App. A.2's interval of each of these."""
    axes, test = cell.plan.axes, replace(cell.test, seeds=seeds)
    results = exhaustive(axes, test, runs)
    for h, result in results.items():
        scores = {
            d_k: {seed: runs.score(ProbeKey(h, d_k), seed) for seed in test.in_order}
            for d_k in axes[h]
        }
        low = next((h * d_k for d_k in axes[h] if test.may_reach(scores[d_k])), None)
        high = next((h * d_k for d_k in axes[h] if test.surely_reaches(scores[d_k])), None)
        results[h] = replace(result, cost_low=low or result.cost_low, cost_high=high)
    return _of_results(results, has_intervals=True)


def bisection(complete: bool, cell: MadeUpCell, runs: CountedRuns, repeat: int) -> Outcome:
    """Halve the axis of every head count, with all seeds of a probe or those its verdict takes."""

    def passes(h: int, d_k: int) -> bool:
        key = ProbeKey(h, d_k)
        return cell.test.verdict(runs.verdict_scores(key, cell.test, complete)) == "pass"

    return _least(
        {h: bisect_left(axis, True, key=partial(passes, h)) for h, axis in cell.plan.axes.items()},
        cell,
    )


def by_single_seeds(
    search: Callable[[int, Ask], int], cell: MadeUpCell, runs: CountedRuns, repeat: int
) -> Outcome:
    """A search that asks one more seed of a value each time, on every head count."""
    asked: Counter[ProbeKey] = Counter()

    def ask(h: int, at: int) -> bool:
        key = ProbeKey(h, cell.plan.axes[h][at])
        asked[key] += 1
        return cell.test.reaches(runs.score(key, asked[key] - 1))

    places = {h: search(len(axis), partial(ask, h)) for h, axis in cell.plan.axes.items()}
    return _least(places, cell)


def tree_of_parzen(cell: MadeUpCell, runs: CountedRuns, repeat: int) -> Outcome:
    """Optuna's TPE, asked for the least D_K that passes."""
    return Outcome(least_by_trials(cell.plan.axes, cell.test, runs, TRIALS, repeat))


def _least(places: Mapping[int, int], cell: MadeUpCell) -> Outcome:
    """The least D_K of thresholds given as places on the axes; beyond the last place is none."""
    axes = cell.plan.axes
    keys = [ProbeKey(h, axes[h][at]) for h, at in places.items() if at < len(axes[h])]
    return Outcome(min(keys, key=lambda key: (key.arm * key.value, key.arm), default=None))


def _of_results(results: Mapping[int, ArmResult], has_intervals: bool) -> Outcome:
    """The best head count's threshold and interval, and the head counts that may be as good.

    Those are the ones whose interval, or bound, begins no higher than any interval ends.
    """
    found = [result for result in results.values() if result.status == "found"]
    best = min(found, key=_rank, default=None)
    if best is None or best.value is None:
        return Outcome(None)
    winner = ProbeKey(best.arm, best.value)
    if not has_intervals:
        return Outcome(winner)
    ends = [result.cost_high for result in found if result.cost_high is not None]
    least = min(ends, default=None)
    heads = frozenset(
        result.arm
        for result in results.values()
        if least is None or result.cost_low is None or result.cost_low <= least
    )
    return Outcome(winner, best.cost_low, best.cost_high, heads)


def _rank(result: ArmResult) -> tuple[float, float, int]:
    assert result.cost is not None
    return rank(result.cost, result.passed and result.passed.mean_score, result.arm)


OF_THE_CORE = {
    "today": CoreRule(),
    "bare": CoreRule(plan={"confirm_seeds": 0, "intervals": False}),
}
"""The package's search, as ``base-grid`` plans it and otherwise."""
RULES: dict[str, Rule] = {
    "grid": partial(exhaustive_grid, 10),
    "bisection": partial(bisection, True),
    "curtailed": partial(bisection, False),
    "probabilistic": partial(by_single_seeds, probabilistic_bisection),
    "entropy": partial(by_single_seeds, expected_entropy),
    "tpe": tree_of_parzen,
    **OF_THE_CORE,
}
"""Every rule, by its name in the tables."""
