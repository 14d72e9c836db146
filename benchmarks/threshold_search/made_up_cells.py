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
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from rgr_dist.planning.portfolio import plan_cell, seed_test
from rgr_dist.search.probe_verdict import SeedTest
from rgr_dist.search.protocol import CellPlan, ProbeKey
from rgr_dist.study.select import cell_named
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import load_study
from threshold_search.simulate import SimulatedRun

SEEDS = 64
"""Seeds for which a draw has runs, at every head count and width."""
NARROWS_AT = 0.04
"""Mean loss at which the seeds' spread is half of what it is far above the threshold."""
SOONER_BELOW, SOONER_BY, SHORTEST = 0.005, 0.2, 0.4
"""Loss below which runs end early, the power of it that sets their steps, and the least share."""


@lru_cache
def base_grid() -> Study:
    """The study whose cells, test and plans are imitated."""
    return load_study("base-grid")


@lru_cache
def plan_like(like: str, name: str, heads: tuple[int, ...]) -> CellPlan:
    """The plan that ``base-grid`` makes for a cell, with only some of its head counts."""
    study = base_grid()
    plan = plan_cell(cell_named(study, like), study.search)
    return replace(plan, cell=name, axes={h: plan.axes[h] for h in heads})


@dataclass(frozen=True)
class MadeUpCell:
    """A cell with known truth.

    Attributes:
        name: what the tables call it; it also determines what is drawn.
        like: the cell of the base grid whose axes, first guess and step limit it has.
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
    like: str
    thresholds: Mapping[int, float]
    slope: float
    spread: float
    across: float = 0.05
    along: float = 0.2
    means: Mapping[tuple[int, int], float] = field(default_factory=dict)
    moves: float = 1.0

    @property
    def plan(self) -> CellPlan:
        """How ``base-grid`` searches it, with only the cell's head counts."""
        return plan_like(self.like, self.name, tuple(self.thresholds))

    @cached_property
    def test(self) -> SeedTest:
        """The test of a probe in ``base-grid``."""
        return seed_test(base_grid())

    @cached_property
    def losses(self) -> dict[int, NDArray[np.float64]]:
        """Mean of 1 - F1 of each head count, by d_k, before it is cut off at 1."""
        losses = {}
        for h, axis in self.plan.axes.items():
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
    def true_thresholds(self) -> dict[int, int]:
        """Smallest d_k whose true mean is at least the target, by head count, if there is one."""
        passing = {h: np.flatnonzero(m >= self.test.target) for h, m in self.true_means.items()}
        return {h: int(at[0]) + 1 for h, at in passing.items() if len(at)}

    @cached_property
    def true_D_K(self) -> int:
        """D_K*: the least total width of all those thresholds."""
        return min(h * d_k for h, d_k in self.true_thresholds.items())

    @property
    def true_heads(self) -> frozenset[int]:
        """The head counts that attain D_K*: h*."""
        return frozenset(h for h, d in self.true_thresholds.items() if h * d == self.true_D_K)

    def repeat(self, number: int) -> tuple[MadeUpCell, Draw]:
        """The cell with its thresholds moved, and runs of seeds that no other repeat has."""
        key = [zlib.crc32(self.name.encode()), number]
        chance = np.random.Generator(np.random.Philox(key=key))
        moved = {
            h: d_k + self.moves * chance.uniform(-0.5, 0.5) for h, d_k in self.thresholds.items()
        }
        cell = replace(self, thresholds=moved)
        return cell, cell.draw(chance)

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
        return Draw(scores, cell_named(base_grid(), self.like).training.max_steps)


class Draw:
    """The runs of ``SEEDS`` seeds at every head count and width of a cell.

    Args:
        scores: by head count, then d_k and seed.
        max_steps: steps of a run that does not end early.
    """

    def __init__(self, scores: Mapping[int, NDArray[np.float64]], max_steps: int) -> None:
        shares = {h: ((1 - own) / SOONER_BELOW) ** SOONER_BY for h, own in scores.items()}
        self._scores = {h: own.tolist() for h, own in scores.items()}
        self._steps = {
            h: np.rint(max_steps * np.clip(share, SHORTEST, 1)).astype(int).tolist()
            for h, share in shares.items()
        }

    def run(self, key: ProbeKey, seed: int) -> SimulatedRun:
        """The run of a probe and seed."""
        at = key.value - 1
        return SimulatedRun(self._scores[key.arm][at][seed], 0.0, self._steps[key.arm][at][seed])


WIDE = "m=256,d_model=32"
PLATEAU = {9: 0.9850, 10: 0.9865, 11: 0.9875, 12: 0.9885, 13: 0.9895}
"""Means of four heads that hang just below the target."""
CURVES = {
    cell.name: cell
    for cell in (
        MadeUpCell(
            name="like (64,16)",
            like="m=64,d_model=16",
            thresholds={1: 200, 2: 8.7, 4: 4.4, 8: 2.7, 16: 2.2},
            slope=8,
            spread=1.8,
        ),
        MadeUpCell(
            name="like (128,16)",
            like="m=128,d_model=16",
            thresholds={1: 147, 2: 60.4, 4: 20.6, 8: 7.25, 16: 4.4},
            slope=7,
            spread=1.5,
        ),
        MadeUpCell(
            name="like (128,32)",
            like="m=128,d_model=32",
            thresholds={1: 18.5, 2: 7.85, 4: 4.75, 8: 3.2, 16: 2.4},
            slope=12,
            spread=1.1,
        ),
        MadeUpCell(
            name="like (512,64)",
            like="m=512,d_model=64",
            thresholds={1: 95.6, 2: 30.6, 4: 13.5, 8: 7.65, 16: 4.95},
            slope=7.5,
            spread=0.4,
        ),
        MadeUpCell(  # as steep as (256, 16) is at sixteen heads
            name="shallow",
            like=WIDE,
            thresholds={1: 59.6, 2: 23.6, 4: 10.6, 8: 6.3, 16: 3.6},
            slope=2.5,
            spread=0.8,
        ),
        MadeUpCell(
            name="heavy noise",
            like=WIDE,
            thresholds={1: 69.6, 2: 20.6, 4: 9.6, 8: 5.7, 16: 3.8},
            slope=6,
            spread=2.5,
        ),
        MadeUpCell(
            name="dips",
            like=WIDE,
            thresholds={1: 69.6, 2: 21.3, 4: 9.5, 8: 5.7, 16: 3.8},
            slope=6,
            spread=0.5,
            means={(4, 8): 0.9925, (4, 12): 0.985, (2, 18): 0.992, (8, 7): 0.987},
            moves=0,
        ),
        MadeUpCell(
            name="plateau",
            like=WIDE,
            thresholds={1: 89.6, 2: 29.5, 4: 8.5, 8: 7.6, 16: 4.9},
            slope=7,
            spread=0.5,
            means={(4, d_k): mean for d_k, mean in PLATEAU.items()},
            moves=0,
        ),
    )
}
"""The cells, by name: four like those of the base grid, four that a search may stumble over."""
