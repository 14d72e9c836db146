"""Success curves to simulate a search on: recorded ones, and synthetic ones of four shapes."""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from search.protocol import Place
from threshold_search.simulate import SimulatedRun

Recorded = Mapping[tuple[int, int], Mapping[int, SimulatedRun]]
Shape = Literal["sharp", "wide", "plateau", "bimodal"]
SHAPES: tuple[Shape, ...] = get_args(Shape)


@dataclass(frozen=True)
class RecordedCurve:
    """The measured runs of one cell, and what lies between them.

    A width that was not measured lies between its measured neighbours of the same head count,
    score, time and steps in proportion; below the smallest the score falls to 0, above the
    largest nothing changes. A seed that was not measured is played by one that was. A head count
    without any run is played by the nearest, at the same total width.

    Attributes:
        runs: by (h, d_k), then by seed.
    """

    runs: Recorded
    _widths: dict[int, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.runs:
            raise ValueError("no run is recorded")
        for h, d_k in sorted(self.runs):
            self._widths.setdefault(h, []).append(d_k)

    def run(self, place: Place, seed: int) -> SimulatedRun:
        """The run of a place and seed."""
        h, d_k = place.h, float(place.d_k)
        if h not in self._widths:
            known = min(self._widths, key=lambda other: (abs(math.log2(other / h)), other))
            h, d_k = known, d_k * h / known
        widths = self._widths[h]
        at = bisect_left(widths, d_k)
        if at == len(widths):
            return self._measured(h, widths[-1], seed)
        above = self._measured(h, widths[at], seed)
        if widths[at] == d_k:
            return above
        low = widths[at - 1] if at else 0
        below = self._measured(h, low, seed) if at else SimulatedRun(0, above.seconds, above.steps)
        share = (d_k - low) / (widths[at] - low)
        return SimulatedRun(
            score=below.score + share * (above.score - below.score),
            seconds=below.seconds + share * (above.seconds - below.seconds),
            steps=round(below.steps + share * (above.steps - below.steps)),
        )

    def _measured(self, h: int, d_k: int, seed: int) -> SimulatedRun:
        by_seed = self.runs[h, d_k]
        if seed in by_seed:
            return by_seed[seed]
        seeds = sorted(by_seed)
        return by_seed[seeds[seed % len(seeds)]]


@dataclass(frozen=True)
class SyntheticCurve:
    """A made-up cell: its score rises with d_k through each head's threshold.

    Attributes:
        thresholds: d_k at which each head's mean score reaches 0.99.
        shape: ``sharp``: from 0.8 to 1 within a twentieth of the threshold; ``wide``: within half
            of it, each seed with a luck of its own; ``plateau``: a single head stays at 0.98;
            ``bimodal``: a single head's seeds either pass or get stuck, at any width.
        max_steps: steps of a run that does not converge.
        seconds_per_step: at a total width of 1; a step takes as long as the layer is wide.
        name: draws the luck of the seeds.
    """

    thresholds: Mapping[int, float]
    shape: Shape
    max_steps: int = 20_000
    seconds_per_step: float = 1e-7
    name: str = ""

    def run(self, place: Place, seed: int) -> SimulatedRun:
        """The run of a place and seed; the same each time."""
        score = self._score(place.h, place.d_k, seed)
        share = 1.0
        if score > 0.995:  # farther above the threshold, runs converge sooner
            share = max(0.2, 0.8 * self.thresholds[place.h] / place.d_k)
        steps = round(share * self.max_steps)
        return SimulatedRun(score, steps * self.seconds_per_step * place.h * place.d_k, steps)

    def _score(self, h: int, d_k: int, seed: int) -> float:
        chance = random.Random(f"{self.name} {h} {seed}")
        luck, stuck = chance.uniform(-1, 1), chance.random() < 0.3
        threshold = self.thresholds[h]
        width = threshold * (0.5 if self.shape == "wide" else 0.05)
        if self.shape == "wide":
            threshold += luck * width / 4
        # A logistic curve that is 0.99 at the threshold.
        score = 1 / (1 + math.exp(-math.log(99) - 6 * (d_k - threshold) / width)) if width else 1.0
        if h == 1 and self.shape == "plateau":
            return min(score, 0.98)
        if h == 1 and self.shape == "bimodal" and stuck:
            return min(score, 0.6)
        return 1.0 if score > 0.9975 else score
