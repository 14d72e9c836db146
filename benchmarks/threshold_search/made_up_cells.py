"""Cells whose true mean scores are known, made up from a few numbers read off stored runs.

The loss 1 - F1 of a run is lognormal about its mean: a seed's luck is a factor, so scores are
skewed to the left, and spread less the nearer their mean is to 1. That spread, the slope of
the mean, and the steps of runs that end early were read off the base grid's runs.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from rgr_dist.paper import capacity_scale
from rgr_dist.search.seed_test import SeedTest
from rgr_dist.search.threshold import Key, Plan

SEEDS = 64
"""Seeds for which a draw has runs, at every head count and width."""
NARROWS_AT = 0.04
"""Mean loss at which the seeds' spread is half of what it is far above the threshold."""
SOONER_BELOW, SOONER_BY, SHORTEST = 0.005, 0.2, 0.4
"""Loss below which runs end early, the power of it that sets their steps, and the least share."""
MAX_STEPS = 20_000
"""Steps of a run that does not end early."""
TEST = SeedTest(target=0.99, seeds=10)
"""The paper's test of a probe."""


@dataclass(frozen=True)
class MadeUpCell:
    """A cell with known truth.

    Attributes:
        name: what the tables call it; it also determines what is drawn.
        size: m and d_model, which set the axes as a study does.
        thresholds: d_k at which the mean of each head count is 0.99, a real number.
        slope: how fast the logit of the mean rises with ln d_k.
        spread: standard deviation of ln(1 - F1) over seeds, far above the threshold.
        across, along: shares of that variance (the square of ``spread``) that a seed has in common
            everywhere, since it has one graph; and at every d_k of a head count, the former
            included.
        means: mean scores that depart from the slope, by (h, d_k).
        moves: how far apart the thresholds of two repeats may be, in steps of d_k: what is hard
            about a threshold depends on whether it lies just below a whole number or just above.
    """

    name: str
    size: tuple[int, int]
    thresholds: Mapping[int, float]
    slope: float
    spread: float
    across: float = 0.05
    along: float = 0.2
    means: Mapping[tuple[int, int], float] = field(default_factory=dict)
    moves: float = 1.0

    @cached_property
    def axes(self) -> dict[int, range]:
        """Every d_k of each head count, up to the largest D_K that a study tries."""
        largest = 4 * capacity_scale(*self.size)
        return {h: range(1, math.floor(max(largest, 4 * h) / h) + 1) for h in self.thresholds}

    @cached_property
    def losses(self) -> dict[int, NDArray[np.float64]]:
        """Mean of 1 - F1 of each head count, by d_k, before it is cut off at 1."""
        losses = {}
        for h, axis in self.axes.items():
            odds = (self.thresholds[h] / np.array(axis)) ** self.slope / 99
            losses[h] = odds / (1 + odds)
        for (h, d_k), mean in self.means.items():
            losses[h][d_k - 1] = 1 - mean
        return losses

    def spreads(self, h: int) -> NDArray[np.float64]:
        """Standard deviation of ln(1 - F1) over seeds, by d_k."""
        return self.spread / (1 + self.losses[h] / NARROWS_AT)

    @cached_property
    def true_means(self) -> dict[int, NDArray[np.float64]]:
        """Mean F1 over all possible seeds, by head count and d_k."""
        means = {}
        for h, loss in self.losses.items():
            deviation = np.maximum(self.spreads(h), 1e-12)
            middle = np.log(loss) - deviation**2 / 2
            below_1 = loss * ndtr(-middle / deviation - deviation)
            means[h] = 1 - below_1 - ndtr(middle / deviation)
        return means

    @cached_property
    def best(self) -> Key:
        """h* and its d_k: the least D_K whose true mean is at least the target."""
        passing = {h: np.flatnonzero(m >= TEST.target) for h, m in self.true_means.items()}
        keys = [Key(h, int(at[0]) + 1) for h, at in passing.items() if len(at)]
        return min(keys, key=lambda key: (key.arm * key.value, key.arm))

    def plan(self, chance: np.random.Generator) -> Plan:
        """How a study searches it, from a first guess up to a factor of two off the truth."""
        off, turn = chance.uniform(-1, 1), int(chance.integers(-1, 2))
        guess = self.best.arm * 2.0**turn, self.best.arm * self.best.value * 2.0**off
        return Plan(axes=self.axes, test=TEST, guess=guess, confirm_seeds=20)

    def repeat(self, number: int) -> tuple[MadeUpCell, Draw, Plan]:
        """The cell with its thresholds moved, runs of seeds of its own, and a plan of its own."""
        key = [zlib.crc32(self.name.encode()), number]
        chance = np.random.Generator(np.random.Philox(key=key))
        moved = {
            h: d_k + self.moves * chance.uniform(-0.5, 0.5) for h, d_k in self.thresholds.items()
        }
        cell = replace(self, thresholds=moved)
        return cell, cell.draw(chance), cell.plan(chance)

    def draw(self, chance: np.random.Generator) -> Draw:
        """Draw the runs of ``SEEDS`` seeds at every head count and width."""
        everywhere = math.sqrt(self.across) * chance.standard_normal(SEEDS)
        scores = {}
        for h, loss in self.losses.items():
            luck = everywhere + math.sqrt(self.along - self.across) * chance.standard_normal(SEEDS)
            own = chance.standard_normal((len(loss), SEEDS))
            luck = luck + math.sqrt(1 - self.along) * own
            deviation = self.spreads(h)[:, None]
            drawn = loss[:, None] * np.exp(deviation * luck - deviation**2 / 2)
            scores[h] = 1 - np.minimum(drawn, 1.0)
        return Draw(scores)


class Draw:
    """The runs of ``SEEDS`` seeds at every head count and width of a cell.

    Args:
        scores: by head count, then d_k and seed.
    """

    def __init__(self, scores: Mapping[int, NDArray[np.float64]]) -> None:
        shares = {h: ((1 - own) / SOONER_BELOW) ** SOONER_BY for h, own in scores.items()}
        self._scores = {h: own.tolist() for h, own in scores.items()}
        self._steps = {
            h: np.rint(MAX_STEPS * np.clip(share, SHORTEST, 1)).astype(int).tolist()
            for h, share in shares.items()
        }

    def run(self, key: Key, seed: int) -> tuple[float, int]:
        """The score and the training steps of a probe's run."""
        at = key.value - 1
        return self._scores[key.arm][at][seed], self._steps[key.arm][at][seed]


WIDE = (256, 32)
PLATEAU = {9: 0.9850, 10: 0.9865, 11: 0.9875, 12: 0.9885, 13: 0.9895}
"""Means of four heads that hang just below the target."""
CURVES = {
    cell.name: cell
    for cell in (
        MadeUpCell(
            name="like (64, 16)",
            size=(64, 16),
            thresholds={1: 200, 2: 8.7, 4: 4.4, 8: 2.7, 16: 2.2},
            slope=8,
            spread=1.8,
        ),
        MadeUpCell(
            name="like (128, 16)",
            size=(128, 16),
            thresholds={1: 147, 2: 60.4, 4: 20.6, 8: 7.25, 16: 4.4},
            slope=7,
            spread=1.5,
        ),
        MadeUpCell(
            name="like (128, 32)",
            size=(128, 32),
            thresholds={1: 18.5, 2: 7.85, 4: 4.75, 8: 3.2, 16: 2.4},
            slope=12,
            spread=1.1,
        ),
        MadeUpCell(
            name="like (512, 64)",
            size=(512, 64),
            thresholds={1: 95.6, 2: 30.6, 4: 13.5, 8: 7.65, 16: 4.95},
            slope=7.5,
            spread=0.4,
        ),
        MadeUpCell(  # as steep as (256, 16) is at sixteen heads
            name="shallow",
            size=WIDE,
            thresholds={1: 59.6, 2: 23.6, 4: 10.6, 8: 6.3, 16: 3.6},
            slope=2.5,
            spread=0.8,
        ),
        MadeUpCell(
            name="heavy noise",
            size=WIDE,
            thresholds={1: 69.6, 2: 20.6, 4: 9.6, 8: 5.7, 16: 3.8},
            slope=6,
            spread=2.5,
        ),
        MadeUpCell(
            name="dips",
            size=WIDE,
            thresholds={1: 69.6, 2: 21.3, 4: 9.5, 8: 5.7, 16: 3.8},
            slope=6,
            spread=0.5,
            means={(4, 8): 0.9925, (4, 12): 0.985, (2, 18): 0.992, (8, 7): 0.987},
            moves=0,
        ),
        MadeUpCell(
            name="plateau",
            size=WIDE,
            thresholds={1: 89.6, 2: 29.5, 4: 8.5, 8: 7.6, 16: 4.9},
            slope=7,
            spread=0.5,
            means={(4, d_k): mean for d_k, mean in PLATEAU.items()},
            moves=0,
        ),
    )
}
"""The cells, by name: four like those of the base grid, four that a search may stumble over."""
