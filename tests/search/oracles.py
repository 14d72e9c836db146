"""Hypothesis strategies for cells: sharp, noisy, and with arms that never pass."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from rgr_dist.search.probe_verdict import SeedTest
from rgr_dist.search.protocol import CellPlan
from tests.search.simulated_cells import SimulatedCell, axes_to

ARMS = (1, 2, 3, 4, 6, 8, 16, 32)
KEPT = (None, 0.0, 0.1, 0.1, 0.5)


@st.composite
def plans(draw: st.DrawFn, largest: int = 120, **fixed: Any) -> CellPlan:
    """Any arms in any order, any limits, any guess however wrong, any kept margin."""
    arms = draw(st.lists(st.sampled_from(ARMS), min_size=1, max_size=5, unique=True))
    limits = {arm: draw(st.integers(1, max(1, largest // arm))) for arm in arms}
    return CellPlan(
        cell=fixed.get("cell", "cell"),
        axes=axes_to(limits),
        guess_cost=draw(st.floats(0.1, 2 * largest)),
        guess_arm=draw(st.sampled_from([1.0, 2.7, 8.0, 99.0])),
        keep_within=fixed.get("keep_within", draw(st.sampled_from(KEPT))),
        intervals=fixed.get("intervals", draw(st.booleans())),
    )


def step(thresholds: dict[int, int]) -> Callable[[int, int, int], float]:
    """A score that leaps from 0.5 to 1 at each arm's threshold."""
    return lambda arm, value, seed: 1.0 if value >= thresholds[arm] else 0.5


def drawn_cell(number: int) -> SimulatedCell:
    """A cell drawn evenly by chance, larger than those that hypothesis likes to draw."""
    chance = random.Random(number)
    arms = chance.sample(ARMS, chance.randint(1, len(ARMS)))
    limits = {arm: chance.randint(1, max(1, 120 // arm)) for arm in arms}
    thresholds = {arm: round(chance.uniform(0.2, 1.2) * limit) for arm, limit in limits.items()}
    plan = CellPlan(
        cell="cell",
        axes=axes_to(limits),
        guess_cost=chance.uniform(1, 200),
        guess_arm=chance.uniform(1, 64),
        keep_within=chance.choice(KEPT),
        intervals=False,
    )
    return SimulatedCell(plan, SeedTest(0.99, 2), step(thresholds))


@st.composite
def sharp_cells(draw: st.DrawFn, seeds: int | None = None, **fixed: Any) -> SimulatedCell:
    """Monotone in value: from a threshold on every seed passes, below it the mean fails clearly.

    A threshold beyond the arm's limit is a plateau that never passes. The seeds have their luck at
    every value, so that intervals clear the target from some value on, or at none.
    """
    plan = draw(plans(**fixed))
    test = SeedTest(0.99, seeds or draw(st.sampled_from([1, 2, 3, 10])))
    thresholds = {arm: draw(st.integers(1, axis[-1] + 3)) for arm, axis in plan.axes.items()}
    salt = draw(st.integers(0, 9))

    def score(arm: int, value: int, seed: int) -> float:
        chance = random.Random(f"{salt} {arm} {seed}")
        if value >= thresholds[arm]:
            return round(chance.uniform(0.991, 1), 4)
        return 0.9 if seed == 0 else round(chance.uniform(0.8, 1), 4)

    return SimulatedCell(plan, test, score)


@st.composite
def rising_cells(draw: st.DrawFn, **fixed: Any) -> SimulatedCell:
    """Means that rise with value through the target, with a luck of each seed that stays.

    The mean is monotone, so that the threshold is one, and the interval is wide.
    """
    plan = draw(plans(largest=60, **fixed))
    test = SeedTest(0.99, draw(st.sampled_from([2, 3, 5])))
    luck = [round(draw(st.floats(-0.02, 0.02)), 4) for _ in range(test.seeds)]
    start = {arm: draw(st.integers(0, axis[-1])) for arm, axis in plan.axes.items()}
    slope = {arm: draw(st.sampled_from([0.0, 0.0005, 0.002, 0.01, 0.1])) for arm in plan.axes}

    def score(arm: int, value: int, seed: int) -> float:
        mean = 0.985 + slope[arm] * (value - start[arm])
        return round(min(1.0, max(0.0, mean + luck[seed % test.seeds])), 4)

    return SimulatedCell(plan, test, score)


@st.composite
def lagging_cells(draw: st.DrawFn, **fixed: Any) -> SimulatedCell:
    """Most seeds score 1 at every value and the last ones rise slowly.

    A first look passes far below the threshold, and all the seeds refute it again and again.
    """
    plan = draw(plans(largest=60, **fixed))
    test = SeedTest(0.9, draw(st.integers(4, 10)))
    rises = {arm: draw(st.sampled_from([0.003, 0.01, 0.03])) for arm in plan.axes}
    late = draw(st.integers(1, 3))

    def score(arm: int, value: int, seed: int) -> float:
        lags = seed % test.seeds >= test.seeds - late
        return round(min(1.0, 0.4 + rises[arm] * value), 4) if lags else 1.0

    return SimulatedCell(plan, test, score)


@st.composite
def noisy_cells(draw: st.DrawFn, **fixed: Any) -> SimulatedCell:
    """Scores around the target at every value: verdicts in no order at all."""
    plan = draw(plans(largest=40, **fixed))
    test = SeedTest(0.99, draw(st.sampled_from([1, 2, 5, 10])))
    salt = draw(st.integers(0, 99))

    def score(arm: int, value: int, seed: int) -> float:
        chance = random.Random(f"{salt} {arm} {value} {seed}")
        return chance.choice([0.97, 0.985, 0.99, 0.99, 0.995, 1.0])

    return SimulatedCell(plan, test, score)
