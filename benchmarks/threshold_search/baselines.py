"""What the adaptive search is compared with, every probe with every seed; and what both cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from rgr_dist.search.old_portfolio import Portfolio
from rgr_dist.search.probe_verdict import SeedTest
from rgr_dist.search.protocol import ArmResult, CellPlan, Probe, ProbeKey, ProbeResult
from threshold_search.simulate import SimulatedRun


class CountedRuns:
    """Runs of one cell, each made once, and the training steps they took.

    Args:
        run: makes a probe's run from its seed.
    """

    def __init__(self, run: Callable[[ProbeKey, int], SimulatedRun]) -> None:
        self._run = run
        self._made: dict[tuple[ProbeKey, int], SimulatedRun] = {}

    @property
    def trainings(self) -> int:
        """How many runs so far."""
        return len(self._made)

    @property
    def steps(self) -> int:
        """Training steps of every run so far."""
        return sum(run.steps for run in self._made.values())

    def score(self, key: ProbeKey, seed: int) -> float:
        """The score of a run, made now unless it was made before."""
        if (key, seed) not in self._made:
            self._made[key, seed] = self._run(key, seed)
        return self._made[key, seed].score

    def verdict_scores(
        self, key: ProbeKey, test: SeedTest, complete: bool = False
    ) -> dict[int, float]:
        """Scores by seed: as many as the verdict of a probe takes, or those of all its seeds."""
        scores: dict[int, float] = {}
        while wave := test.next_wave(scores, complete):
            scores |= {seed: self.score(key, seed) for seed in wave}
        return scores


def exhaustive(
    axes: Mapping[int, Sequence[int]], test: SeedTest, runs: CountedRuns
) -> dict[int, ArmResult]:
    """The smallest passing value of each arm by trying every value with every seed.

    Returns:
        By arm: ``found`` with its certificate, or ``censored``. It does not matter if a larger
        value fails: the threshold is the smallest that passes.
    """
    return {arm: _smallest_passing(arm, axis, test, runs) for arm, axis in axes.items()}


def _smallest_passing(
    arm: int, axis: Sequence[int], test: SeedTest, runs: CountedRuns
) -> ArmResult:
    scores = {
        value: {seed: runs.score(ProbeKey(arm, value), seed) for seed in range(test.seeds)}
        for value in axis
    }
    probes = {
        value: ProbeResult(value, test.mean(known), test.seeds) for value, known in scores.items()
    }
    found = next((value for value in axis if test.verdict(scores[value]) == "pass"), None)
    if found is None:
        last = axis[-1]
        because = f"no pass up to the largest value allowed, {last}"
        return ArmResult(
            arm, "censored", None, arm * (last + 1), None, because, failed=probes[last]
        )
    below = next((low for low, high in pairwise(axis) if high == found), None)
    because = f"passes at value = {found}" + (f", fails at {below}" if below else "")
    failed = probes[below] if below else None
    passed, cost = probes[found], arm * found
    return ArmResult(
        arm, "found", found, None, None, because, passed=passed, failed=failed, cost=cost
    )


def adaptive(plan: CellPlan, test: SeedTest, runs: CountedRuns) -> dict[int, ArmResult]:
    """What the search of this package finds, one probe at a time."""
    portfolio = Portfolio([plan], test)
    while isinstance(probe := portfolio.ask(), Probe):
        for seed in probe.seeds:
            score = runs.score(probe.key, seed)
            portfolio.tell(probe.cell, probe.arm, probe.value, seed, score)
        portfolio.release(probe)
    return {arm: portfolio.state(plan.cell).result(arm) for arm in plan.axes}


def least_cost(results: Mapping[int, ArmResult]) -> int | None:
    """The smallest cost found over all arms."""
    found = [arm * result.value for arm, result in results.items() if result.value is not None]
    return min(found, default=None)
