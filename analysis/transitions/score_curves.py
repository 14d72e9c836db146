"""A curve through scores: top / (1 + exp(-(x - middle) / width)) in x = log₂ D_K, least squares."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares
from scipy.special import expit

from rgr_dist.analysis.laws.interval_likelihood import Array

BEYOND = 6.0
"""How far the middle may lie outside the widths that ran, in doublings of D_K."""

LEAST_WIDTH, LARGEST_WIDTH = 0.01, 6.0
"""Bounds on the width, in doublings."""


@dataclass(frozen=True)
class ScoreCurve:
    """A least-squares curve.

    Attributes:
        top: the score that the curve approaches as D_K grows, from 0 to 1.
        middle: log₂ D_K at which half of top is reached.
        width: in doublings of D_K.
    """

    top: float
    middle: float
    width: float

    def at(self, x: Array) -> Array:
        """The curve's scores."""
        return np.asarray(self.top * expit((x - self.middle) / self.width))


def fit(x: Array, y: Array, n: Array) -> ScoreCurve:
    """The curve of least Σ n · (y - curve)², from the best start of a grid.

    Args:
        x: log₂ D_K.
        y: mean score at x.
        n: number of runs at x.
    """
    root = np.sqrt(n)

    def residuals(unknowns: Array) -> Array:
        top, middle, log_width = unknowns
        return root * (ScoreCurve(top, middle, math.exp(log_width)).at(x) - y)

    log_ends = math.log(LEAST_WIDTH), math.log(LARGEST_WIDTH)
    low, high = (0.0, x.min() - BEYOND, log_ends[0]), (1.0, x.max() + BEYOND, log_ends[1])
    middles = np.linspace(x.min() - 1, x.max() + 1, 60)[:, None, None]
    widths = np.geomspace(LEAST_WIDTH, LARGEST_WIDTH, 30)[:, None]
    share = expit((x - middles) / widths)
    tops = (n * y * share).sum(axis=-1) / np.maximum((n * share**2).sum(axis=-1), 1e-300)
    tops = np.clip(tops, 0.0, 1.0)
    loss = (n * (y - tops[..., None] * share) ** 2).sum(axis=-1)
    i, j = np.unravel_index(int(loss.argmin()), loss.shape)
    start = tops[i, j], middles[i, 0, 0], math.log(widths[j, 0])
    found = least_squares(
        residuals, np.clip(start, low, high), bounds=(low, high), method="dogbox", xtol=1e-10
    )
    top, middle, log_width = found.x.tolist()
    return ScoreCurve(top, middle, math.exp(log_width))
