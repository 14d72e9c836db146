"""What the adaptive search is compared with: every probe with every seed, and what each costs.

Optuna, the other baseline, needs Ray's adapter and is in ``optuna_baseline``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from search.portfolio import Portfolio
from search.protocol import CellPlan, HeadResult, Place, Probe, ProbeResult
from search.seed_test import SeedTest
from threshold_search.simulate import SimulatedRun


class CountedRuns:
    """Runs of one cell, each made once, and the training steps they took.

    Args:
        run: makes the run of a place and seed.
    """

    def __init__(self, run: Callable[[Place, int], SimulatedRun]) -> None:
        self._run = run
        self._made: dict[tuple[Place, int], SimulatedRun] = {}

    @property
    def steps(self) -> int:
        """Training steps of every run so far."""
        return sum(run.steps for run in self._made.values())

    def score(self, place: Place, seed: int) -> float:
        """The score of a run, made now unless it was made before."""
        key = (place, seed)
        if key not in self._made:
            self._made[key] = self._run(place, seed)
        return self._made[key].score

    def verdict_scores(self, place: Place, test: SeedTest) -> dict[int, float]:
        """Scores by seed, as many as the verdict of a probe takes."""
        scores: dict[int, float] = {}
        while wave := test.next_wave(scores):
            scores |= {seed: self.score(place, seed) for seed in wave}
        return scores


def exhaustive(
    axes: Mapping[int, Sequence[int]], test: SeedTest, runs: CountedRuns
) -> dict[int, HeadResult]:
    """The smallest passing d_k of each head count by trying every value with every seed.

    Returns:
        By head count: ``found`` with its certificate, or ``censored``. A value above that fails
        does not matter: the smallest that passes is the threshold.
    """
    return {h: _smallest_passing(h, axis, test, runs) for h, axis in axes.items()}


def _smallest_passing(h: int, axis: Sequence[int], test: SeedTest, runs: CountedRuns) -> HeadResult:
    scores = {
        d_k: {seed: runs.score(Place(h, d_k), seed) for seed in range(test.seeds)} for d_k in axis
    }
    probes = {d_k: ProbeResult(d_k, test.mean(known), test.seeds) for d_k, known in scores.items()}
    found = next((d_k for d_k in axis if test.verdict(scores[d_k]) == "pass"), None)
    if found is None:
        last = axis[-1]
        because = f"no pass up to the largest width allowed, d_k = {last}"
        return HeadResult(h, "censored", None, h * (last + 1), None, because, failed=probes[last])
    below = next((low for low, high in pairwise(axis) if high == found), None)
    because = f"passes at d_k = {found}" + (f", fails at {below}" if below else "")
    failed = probes[below] if below else None
    return HeadResult(h, "found", found, None, None, because, passed=probes[found], failed=failed)


def adaptive(plan: CellPlan, test: SeedTest, runs: CountedRuns) -> dict[int, HeadResult]:
    """What the search of this package finds, one probe at a time."""
    portfolio = Portfolio([plan], test)
    while isinstance(probe := portfolio.ask(), Probe):
        for seed in probe.seeds:
            score = runs.score(probe.place, seed)
            portfolio.tell(probe.cell, probe.h, probe.d_k, seed, score, longer=probe.longer)
        portfolio.release(probe)
    return {h: portfolio.state(plan.cell).result(h) for h in plan.axes}


def least_D_K(results: Mapping[int, HeadResult]) -> int | None:
    """The smallest D_K found over all head counts."""
    found = [h * result.d_k for h, result in results.items() if result.d_k is not None]
    return min(found, default=None)
