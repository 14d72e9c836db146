"""Hypothesis strategies for cells: sharp, noisy, and with heads that never pass."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from search.protocol import CellPlan
from search.seed_test import SeedTest
from tests.search.simulated_cells import SimulatedCell, widths

HEADS = (1, 2, 3, 4, 6, 8, 16, 32)
KEPT = (None, 0.0, 0.1, 0.1, 0.5)


@st.composite
def plans(draw: st.DrawFn, largest: int = 120, **fixed: Any) -> CellPlan:
    """Any heads in any order, any limits, any guess however wrong, any kept margin."""
    heads = draw(st.lists(st.sampled_from(HEADS), min_size=1, max_size=5, unique=True))
    limits = {h: draw(st.integers(1, max(1, largest // h))) for h in heads}
    return CellPlan(
        cell=fixed.get("cell", "cell"),
        axes=widths(limits),
        guess_D_K=draw(st.floats(0.1, 2 * largest)),
        guess_h=draw(st.sampled_from([1.0, 2.7, 8.0, 99.0])),
        keep_within=fixed.get("keep_within", draw(st.sampled_from(KEPT))),
        intervals=fixed.get("intervals", draw(st.booleans())),
    )


def step(thresholds: dict[int, int]) -> Callable[[int, int, int], float]:
    """A score that leaps from 0.5 to 1 at each head's width."""
    return lambda h, d_k, seed: 1.0 if d_k >= thresholds[h] else 0.5


def drawn_cell(number: int) -> SimulatedCell:
    """A cell drawn evenly by chance, larger than those that hypothesis likes to draw."""
    chance = random.Random(number)
    heads = chance.sample(HEADS, chance.randint(1, len(HEADS)))
    limits = {h: chance.randint(1, max(1, 120 // h)) for h in heads}
    thresholds = {h: round(chance.uniform(0.2, 1.2) * limit) for h, limit in limits.items()}
    plan = CellPlan(
        cell="cell",
        axes=widths(limits),
        guess_D_K=chance.uniform(1, 200),
        guess_h=chance.uniform(1, 64),
        keep_within=chance.choice(KEPT),
        intervals=False,
    )
    return SimulatedCell(plan, SeedTest(0.99, 2), step(thresholds))


@st.composite
def sharp_cells(draw: st.DrawFn, seeds: int | None = None, **fixed: Any) -> SimulatedCell:
    """Monotone in d_k: from a threshold on every seed passes, below it the mean fails clearly.

    A threshold beyond the head's limit is a plateau that never passes.
    """
    plan = draw(plans(**fixed))
    test = SeedTest(0.99, seeds or draw(st.sampled_from([1, 2, 3, 10])))
    thresholds = {h: draw(st.integers(1, axis[-1] + 3)) for h, axis in plan.axes.items()}
    salt = draw(st.integers(0, 9))

    def score(h: int, d_k: int, seed: int) -> float:
        chance = random.Random(f"{salt} {h} {d_k} {seed}")
        if d_k >= thresholds[h]:
            return round(chance.uniform(0.991, 1), 4)
        return 0.9 if seed == 0 else round(chance.uniform(0.8, 1), 4)

    return SimulatedCell(plan, test, score)


@st.composite
def rising_cells(draw: st.DrawFn, **fixed: Any) -> SimulatedCell:
    """Means that rise with d_k through the target, with a luck of each seed that stays.

    The mean is monotone, so that the threshold is one, and the interval is wide.
    """
    plan = draw(plans(largest=60, **fixed))
    test = SeedTest(0.99, draw(st.sampled_from([2, 3, 5])))
    luck = [round(draw(st.floats(-0.02, 0.02)), 4) for _ in range(test.seeds)]
    start = {h: draw(st.integers(0, axis[-1])) for h, axis in plan.axes.items()}
    slope = {h: draw(st.sampled_from([0.0, 0.0005, 0.002, 0.01, 0.1])) for h in plan.axes}

    def score(h: int, d_k: int, seed: int) -> float:
        mean = 0.985 + slope[h] * (d_k - start[h])
        return round(min(1.0, max(0.0, mean + luck[seed])), 4)

    return SimulatedCell(plan, test, score)


@st.composite
def noisy_cells(draw: st.DrawFn, **fixed: Any) -> SimulatedCell:
    """Scores around the target at every width: verdicts in no order at all."""
    plan = draw(plans(largest=40, **fixed))
    test = SeedTest(0.99, draw(st.sampled_from([1, 2, 5])))
    salt = draw(st.integers(0, 99))

    def score(h: int, d_k: int, seed: int) -> float:
        chance = random.Random(f"{salt} {h} {d_k} {seed}")
        return chance.choice([0.97, 0.985, 0.99, 0.99, 0.995, 1.0])

    return SimulatedCell(plan, test, score)
