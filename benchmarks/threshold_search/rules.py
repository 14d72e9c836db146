"""Rules of search that are compared: what each finds from a cell's runs, and what they cost."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import pandas as pd

from rgr_dist.search.seed_test import SeedTest
from rgr_dist.search.threshold import Key, Plan, Search

Axes = Mapping[int, Sequence[int]]


class CountedRuns:
    """Runs of one cell, each made once, and the training steps they took.

    Args:
        run: makes a probe's run from its seed: its score and its steps.
    """

    def __init__(self, run: Callable[[Key, int], tuple[float, int]]) -> None:
        self._run = run
        self._made: dict[tuple[Key, int], tuple[float, int]] = {}

    @property
    def trainings(self) -> int:
        """How many runs so far."""
        return len(self._made)

    @property
    def steps(self) -> int:
        """Training steps of every run so far."""
        return sum(steps for _, steps in self._made.values())

    def score(self, key: Key, seed: int) -> float:
        """The score of a run, made now unless it was made before."""
        if (key, seed) not in self._made:
            self._made[key, seed] = self._run(key, seed)
        return self._made[key, seed][0]

    def passes(self, key: Key, test: SeedTest, complete: bool = False) -> bool:
        """The verdict on a probe, with the seeds that it takes, or with all of them."""
        scores: dict[int, float] = {}
        while wave := test.next_wave(scores, complete):
            scores |= {seed: self.score(key, seed) for seed in wave}
        return test.verdict(scores) == "pass"


class Found(NamedTuple):
    """The winner, h* and its d_k, None if nothing passed; D_K*'s interval, if a rule has one."""

    winner: Key | None
    low: int | None = None
    high: int | None = None


def exhaustive(plan: Plan, runs: CountedRuns) -> Found:
    """Every d_k of every head count, with every seed; of what passes, the least D_K."""
    keys = (Key(h, d_k) for h, axis in plan.axes.items() for d_k in axis)
    return Found(_least([key for key in keys if runs.passes(key, plan.test, complete=True)]))


def bisection(plan: Plan, runs: CountedRuns, complete: bool = True) -> Found:
    """Halve the axis of every head count, with all seeds of a probe or those its verdict takes."""
    found = []
    for h, axis in plan.axes.items():
        at = bisect_left(
            axis, True, key=lambda d_k, h=h: runs.passes(Key(h, d_k), plan.test, complete)
        )
        found += [Key(h, axis[at])] if at < len(axis) else []
    return Found(_least(found))


def curtailed(plan: Plan, runs: CountedRuns) -> Found:
    """Bisection that spares the seeds which could not change a verdict."""
    return bisection(plan, runs, complete=False)


def adaptive(plan: Plan, runs: CountedRuns) -> Found:
    """The package's own search, one probe at a time."""
    search = search_to_its_end(plan, runs)
    if (best := search.best()) is None:
        return Found(None)
    result = search.result(best.arm)
    low, high = (end and end * best.arm for end in (result.low, result.high))
    return Found(best, low, high)


def search_to_its_end(plan: Plan, runs: CountedRuns) -> Search:
    """The package's search of a cell, finished."""
    evidence: dict[Key, dict[int, float]] = {}
    while (search := Search(plan, evidence)).needs:
        for need in search.needs:
            known = evidence.setdefault(need.key, {})
            known |= {seed: runs.score(need.key, seed) for seed in search.wave(need)}
    return search


def _least(keys: list[Key]) -> Key | None:
    return min(keys, key=lambda key: (key.arm * key.value, key.arm), default=None)


RULES: dict[str, Callable[[Plan, CountedRuns], Found]] = {
    "exhaustive": exhaustive,
    "bisection": bisection,
    "curtailed": curtailed,
    "adaptive": adaptive,
}
"""Every rule, by its name in the tables."""


Listing = Literal["table", "json"]


def listed(rows: Sequence[Mapping[str, Any]], how: Listing, shown: Sequence[str]) -> str:
    """Rows as JSON, ``{"rows": […]}``, or some of their columns as a table."""
    if how == "json":
        return json.dumps({"rows": rows}, indent=2, allow_nan=False)
    return pd.DataFrame(rows)[list(shown)].to_string(index=False, na_rep="–")
