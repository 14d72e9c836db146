"""Seeds and cells resampled: how much a threshold or an exponent depends on them.

A draw takes the study's seeds with replacement, the same ones for all probes of a cell since seeds
are paired, and finds the threshold of h* anew among the probes that ran. Cells are drawn with
replacement too. Limits are expanded percentiles (Hesterberg, The American Statistician 69, 2015,
371-386): the plain percentiles of a dozen cells are too narrow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import ndtr

from rgr_dist.analysis.laws.interval_likelihood import Array, fit, middles
from rgr_dist.analysis.laws.points import log_ends
from rgr_dist.analysis.runs import scored
from rgr_dist.search.confidence_interval import t_quantile
from rgr_dist.search.probe_verdict import passes
from rgr_dist.study.study import Study

DRAWS = 1000
SEED = 20260101
"""Seed of the generator, fixed so that the same runs give the same intervals."""
TIE = 1e-9
"""A mean this close to the target may have been rounded across it."""


@dataclass(frozen=True)
class Draws:
    """Thresholds of the same cells with their seeds resampled.

    Attributes:
        fails, passes: ends of D_K*'s interval at h* heads, shape (draws, cells); passes is infinite
            in a draw where none of the probes that ran passes.
    """

    fails: Array
    passes: Array

    @property
    def seed_sd(self) -> Array:
        """Standard deviation of log D_K* over the draws, by cell."""
        low, high = log_ends(self.fails, self.passes)
        return np.asarray(middles(low, high).std(axis=0, ddof=1))


def draw_seeds(cells: pd.DataFrame, runs: pd.DataFrame, study: Study, draws: int = DRAWS) -> Draws:
    """Resample the seeds of each cell.

    A probe that stopped early has only the seeds of a fail or of a first look; a draw counts those
    of its seeds that ran, and the probe keeps its verdict if none did. A width that passes on these
    seeds, but was refuted on fresh ones, fails in every draw. A cell that has no runs, or is
    censored, keeps its interval.

    Args:
        cells: the table of ``rgr_dist.analysis.laws.points.points``.
    """
    generator = np.random.default_rng(SEED)
    fails = np.tile(cells["D_K_fails"].to_numpy(dtype=np.float64), (draws, 1))
    passes = np.tile(cells["D_K_passes"].to_numpy(dtype=np.float64), (draws, 1))
    good = scored(runs, study)
    by_head = good.groupby(["cell_id", "h"], sort=False).indices
    d_k, seed, score = (good[name].to_numpy() for name in ("d_k", "seed", "score"))
    minimised, target, seeds = study.record.minimised, study.search.target, study.search.seeds
    for i, cell in enumerate(cells.to_dict("records")):
        at = by_head.get((cell["cell_id"], cell["h_star"]), [])
        if len(at) == 0:
            continue
        h = int(cell["h_star"])
        widths, column = np.unique(d_k[at], return_inverse=True)
        scores = np.zeros((seeds, len(widths)))
        scores[seed[at], column] = np.minimum(score[at], 1e300)  # infinite, times 0 would be nan
        known = np.zeros(scores.shape, dtype=bool)
        known[seed[at], column] = True
        counts = generator.multinomial(seeds, [1 / seeds] * seeds, size=draws)
        seen = _passing(np.ones((1, seeds), dtype=np.int64), scores, known, target, minimised)[0]
        passing = _passing(counts, scores, known, target, minimised)
        passing = np.where(counts @ known > 0, passing, seen)
        refuted = (h * widths <= cell["D_K_fails"]) & seen
        passing &= ~refuted
        fails[:, i], passes[:, i] = _brackets(passing, h * widths.astype(np.float64), h)
    return Draws(fails, passes)


def _passing(
    counts: npt.NDArray[np.int64], scores: Array, known: Array, target: float, minimise: bool
) -> npt.NDArray[np.bool_]:
    """Whether each probe passes on the seeds of each draw, shape (draws, probes).

    Only near ties are decided by exact sums: for every probe, these would take far longer than the
    fits.

    Args:
        counts: how often a draw has each seed, shape (draws, seeds).
        scores: zero where a seed has not run, shape (seeds, probes).
        known: whether a seed has run, shape (seeds, probes).
    """
    mean = counts @ scores / np.maximum(counts @ known, 1)
    good = mean <= target if minimise else mean >= target
    for draw, probe in np.argwhere(np.abs(mean - target) < TIE):
        ran = known[:, probe]
        drawn = np.repeat(scores[ran, probe], counts[draw, ran])
        good[draw, probe] = passes(drawn.tolist(), target, minimise)
    return good


def _brackets(good: npt.NDArray[np.bool_], widths: Array, h: int) -> tuple[Array, Array]:
    """Each draw's smallest passing D_K, preceded by the largest failing one below it.

    Args:
        good: whether each probe passes, shape (draws, probes).
        widths: D_K of the probes, increasing.
    """
    columns = np.arange(len(widths))
    first = np.where(good.any(axis=1), good.argmax(axis=1), len(widths))
    below = (~good & (columns < first[:, None])) * (columns + 1)
    at = below.max(axis=1)
    fails = np.where(at > 0, widths[at - 1], 0.0)
    passes = np.append(widths, np.inf)[first]
    gap = (at == 0) & (first < len(widths))  # nothing narrower ran: one step less counts as a fail
    fails = np.where(gap, np.maximum(passes - h, 0.0), fails)
    return fails, passes


def bootstrap_coefficient(draws: Draws, design: Array) -> tuple[float, float] | None:
    """95 % limits of the slope over draws of cells and of their seeds; None with too few cells.

    Args:
        draws: of the cells that the design has rows for.
        design: shape (cells, p), the slope's column second.
    """
    n, p = design.shape
    if n < p + 2:
        return None
    generator = np.random.default_rng(SEED + 1)
    count = len(draws.fails)
    weights = generator.multinomial(n, [1 / n] * n, size=count).astype(np.float64)
    enough = np.linalg.matrix_rank(design * (weights > 0)[:, :, None]) == p
    fails, passes, weights = (part[enough] for part in (draws.fails, draws.passes, weights))
    low, high = log_ends(fails, passes)
    found = fit(low, high, design, weights).coefficients[:, 1]
    quantile = t_quantile(n - p) * math.sqrt(n / (n - p))
    tail = float(ndtr(-quantile))
    low_end, high_end = np.quantile(found, [tail, 1 - tail])
    return float(low_end), float(high_end)
