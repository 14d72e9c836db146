"""A logistic curve through shares of passing seeds: its middle and width, with their limits.

The share at x = log₂ D_K is 1 / (1 + exp(-(x - middle) / width)), fitted by binomial maximum
likelihood within bounds on the width. Limits are by profile likelihood (Wilks), which treats the
probes as independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import chdtrc, chdtri, expit, gammaln, log_expit, xlogy

from rgr_dist.analysis.laws.interval_likelihood import Array
from rgr_dist.search.confidence_interval import CONFIDENCE

LEAST_WIDTH, LARGEST_WIDTH = 1e-3, 20.0
"""Bounds on a transition's width, in doublings of D_K."""

WIDTHS = np.geomspace(LEAST_WIDTH, LARGEST_WIDTH, 500)
"""Widths that are searched for the best one at a given middle."""

CUT = float(chdtri(1, 1 - CONFIDENCE))
"""Deviance above the least at which a 95 % limit lies."""

Limits = tuple[float | None, float | None]


@dataclass(frozen=True)
class Curve:
    """A logistic curve in log₂ D_K, and the deviance of the shares from it."""

    middle: float
    width: float
    deviance: float


@dataclass(frozen=True)
class Shares:
    """What a curve is fitted to: passing and failing seeds, at least one of each.

    Attributes:
        x: log₂ D_K of each probe.
        good, bad: how many of its seeds pass and fail.
    """

    x: Array
    good: Array
    bad: Array

    def fit(self) -> Curve:
        """The curve of least deviance.

        Where only one x has both, all seeds below it fail and all above it pass, a narrower curve
        is always better, so the curve has ``LEAST_WIDTH``.
        """
        if self.x[self.bad > 0].max() == self.x[self.good > 0].min():
            return self.at_width(LEAST_WIDTH)
        best = minimize_scalar(
            lambda log_width: self.at_width(math.exp(log_width)).deviance,
            bounds=np.log([LEAST_WIDTH, LARGEST_WIDTH]),
            options={"xatol": 1e-7},
        )
        return self.at_width(math.exp(best.x))

    def at_width(self, width: float) -> Curve:
        """The best curve of this width: the one that expects as many passing seeds as there are."""
        total, passing = self.good + self.bad, self.good.sum()

        def too_many(middle: float) -> float:
            return float(expit((self.x - middle) / width) @ total - passing)

        beyond = 40 * width  # there all shares are 0 or 1
        middle = brentq(too_many, self.x.min() - beyond, self.x.max() + beyond)
        return Curve(middle, width, float(self.deviance(middle, np.array([width]))[0]))

    def deviance(self, middle: float, widths: Array) -> Array:
        """Twice the gap of each curve's log-likelihood to that of the observed shares, by width."""
        total = self.good + self.bad
        seen = (xlogy(self.good, self.good / total) + xlogy(self.bad, self.bad / total)).sum()
        z = (self.x - middle) / widths[:, None]
        return np.asarray(2 * (seen - log_expit(z) @ self.good - log_expit(-z) @ self.bad))

    def expected(self, curve: Curve) -> float:
        """The mean deviance of shares drawn from a curve, about the curve then fitted to them.

        A probe of n seeds contributes its mean over the numbers of seeds that may pass: near 0, not
        the 1 of χ², where the curve says that all must pass or all must fail. The fit takes away 1
        for each unknown; a width at its lower bound is not one.
        """
        return self._moments(curve)[0] - (1 if curve.width == LEAST_WIDTH else 2)

    def p_value(self, curve: Curve) -> float | None:
        """How likely a deviance this large is for independent seeds that follow the curve.

        The deviance is taken for a multiple of a χ², of its mean and variance (Satterthwaite). None
        where less than 1 is expected.
        """
        expected, (mean, variance) = self.expected(curve), self._moments(curve)
        if expected < 1:
            return None
        spread = variance / mean  # 2 for a χ²
        return float(chdtrc(2 * expected / spread, 2 * curve.deviance / spread))

    def _moments(self, curve: Curve) -> tuple[float, float]:
        """Mean and variance of the deviance, from a curve, of shares drawn from it."""
        n, z = self.good + self.bad, (self.x - curve.middle) / curve.width
        k = np.arange(n.max() + 1)[:, None]
        fails = np.maximum(n - k, 0)
        found = k * log_expit(z) + fails * log_expit(-z)
        chance = np.exp(found + gammaln(n + 1) - gammaln(k + 1) - gammaln(fails + 1)) * (k <= n)
        each = 2 * (xlogy(k, k / n) + xlogy(fails, fails / n) - found)
        mean = (chance * each).sum(axis=0)
        return float(mean.sum()), float((chance * (each - mean) ** 2).sum())

    def middle_limits(self, best: Curve) -> Limits:
        """95 % profile-likelihood limits of the middle.

        A limit that lies beyond the probes, where they say nothing, is None.
        """
        ends = min(self.x.min(), best.middle), max(self.x.max(), best.middle)
        return profile_limits(
            lambda at: self.deviance(at, WIDTHS).min(), best.middle, best.deviance, ends
        )

    def width_limits(self, best: Curve) -> Limits:
        """95 % profile-likelihood limits of the width, in doublings; None where there is none."""
        return profile_limits(
            lambda at: self.at_width(at).deviance,
            best.width,
            best.deviance,
            (LEAST_WIDTH, LARGEST_WIDTH),
        )


def profile_limits(
    profile: Callable[[float], float], best: float, least: float, ends: tuple[float, float]
) -> Limits:
    """Where a profile of the deviance rises to ``CUT`` above its least, on either side of it.

    None on a side where it does not before the end.
    """

    def above(at: float) -> float:
        return float(profile(at) - least - CUT)

    low, high = (
        float(brentq(above, best, end, xtol=1e-6)) if above(end) > 0 else None for end in ends
    )
    return low, high
