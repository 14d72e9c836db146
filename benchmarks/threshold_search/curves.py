"""Success curves to simulate a search on: recorded ones, and synthetic ones of four shapes."""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from rgr_dist.search.protocol import ProbeKey
from threshold_search.simulate import SimulatedRun

Recorded = Mapping[tuple[int, int], Mapping[int, SimulatedRun]]
Shape = Literal["sharp", "wide", "plateau", "bimodal"]
SHAPES: tuple[Shape, ...] = get_args(Shape)


@dataclass(frozen=True)
class RecordedCurve:
    """The measured runs of one cell, and what lies between them.

    A value that was not measured is interpolated between its measured neighbours of the same arm,
    in score, time and steps; below the smallest the score falls to 0, above the largest nothing
    changes. A measured seed stands in for one that was not measured, and the nearest arm, at the
    same cost, for an arm without any run.

    Attributes:
        runs: by (arm, value), then by seed.
    """

    runs: Recorded
    _values: dict[int, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.runs:
            raise ValueError("no run is recorded")
        for arm, value in sorted(self.runs):
            self._values.setdefault(arm, []).append(value)

    def run(self, key: ProbeKey, seed: int) -> SimulatedRun:
        """The run of a probe and seed."""
        arm, value = key.arm, float(key.value)
        if arm not in self._values:
            known = min(self._values, key=lambda other: (abs(math.log2(other / arm)), other))
            arm, value = known, value * arm / known
        values = self._values[arm]
        at = bisect_left(values, value)
        if at == len(values):
            return self._measured(arm, values[-1], seed)
        above = self._measured(arm, values[at], seed)
        if values[at] == value:
            return above
        low = values[at - 1] if at else 0
        below = (
            self._measured(arm, low, seed) if at else SimulatedRun(0, above.seconds, above.steps)
        )
        share = (value - low) / (values[at] - low)
        return SimulatedRun(
            score=below.score + share * (above.score - below.score),
            seconds=below.seconds + share * (above.seconds - below.seconds),
            steps=round(below.steps + share * (above.steps - below.steps)),
        )

    def _measured(self, arm: int, value: int, seed: int) -> SimulatedRun:
        by_seed = self.runs[arm, value]
        if seed in by_seed:
            return by_seed[seed]
        seeds = sorted(by_seed)
        return by_seed[seeds[seed % len(seeds)]]


@dataclass(frozen=True)
class SyntheticCurve:
    """A made-up cell: its score rises with the value through each arm's threshold.

    Attributes:
        thresholds: value at which each arm's mean score reaches 0.99.
        shape: ``sharp``: from 0.8 to 1 within a twentieth of the threshold; ``wide``: within half
            of it, each seed with a luck of its own; ``plateau``: arm 1 stays at 0.98 or below;
            ``bimodal``: each seed of arm 1 either passes or stays at 0.6 at most, at any value.
        max_steps: steps of a run that does not converge.
        seconds_per_step: seconds of a step at a cost of 1; they are proportional to the cost.
        name: determines the luck of the seeds.
    """

    thresholds: Mapping[int, float]
    shape: Shape
    max_steps: int = 20_000
    seconds_per_step: float = 1e-7
    name: str = ""

    def run(self, key: ProbeKey, seed: int) -> SimulatedRun:
        """The run of a probe and seed; the same each time."""
        score = self._score(key.arm, key.value, seed)
        share = 1.0
        if score > 0.995:  # farther above the threshold, runs converge sooner
            share = max(0.2, 0.8 * self.thresholds[key.arm] / key.value)
        steps = round(share * self.max_steps)
        return SimulatedRun(score, steps * self.seconds_per_step * key.arm * key.value, steps)

    def _score(self, arm: int, value: int, seed: int) -> float:
        chance = random.Random(f"{self.name} {arm} {seed}")
        luck, is_low = chance.uniform(-1, 1), chance.random() < 0.3
        threshold = self.thresholds[arm]
        width = threshold * (0.5 if self.shape == "wide" else 0.05)
        if self.shape == "wide":
            threshold += luck * width / 4
        # A logistic curve that is 0.99 at the threshold.
        score = (
            1 / (1 + math.exp(-math.log(99) - 6 * (value - threshold) / width)) if width else 1.0
        )
        if arm == 1 and self.shape == "plateau":
            return min(score, 0.98)
        if arm == 1 and self.shape == "bimodal" and is_low:
            return min(score, 0.6)
        return 1.0 if score > 0.9975 else score
