"""Logistic curves through shares of passing seeds, against scipy's optimiser."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import expit

from rgr_dist.analysis.transitions.share_curves import LEAST_WIDTH, Shares

X = np.log2([10.0, 11, 12, 13, 14, 15, 16])
GOOD = np.array([2.0, 9, 22, 41, 70, 88, 97])
BAD = 100 - GOOD


def plain_deviance(middle: float, log_width: float) -> float:
    """Twice the log-likelihood that the saturated model has above the curve's."""
    share = expit((X - middle) / math.exp(log_width))
    seen = stats.binom.logpmf(GOOD, 100, GOOD / 100).sum()
    return float(2 * (seen - stats.binom.logpmf(GOOD, 100, share).sum()))


def profile(log_width: float) -> float:
    found = optimize.minimize_scalar(
        lambda at: plain_deviance(at, log_width), bounds=(3, 4), method="bounded"
    )
    return float(found.fun)


def test_the_limits_are_where_the_profile_has_risen_by_the_quantile() -> None:
    shares = Shares(X, GOOD, BAD)
    curve = shares.fit()
    best = optimize.minimize_scalar(profile, bounds=(-4, -1), method="bounded")
    assert curve.width == pytest.approx(math.exp(best.x), rel=1e-3)
    assert curve.deviance == pytest.approx(best.fun, abs=1e-4)
    cut = best.fun + stats.chi2.ppf(0.95, 1)
    low, high = shares.width_limits(curve)
    ends = (best.x - 1, best.x), (best.x, best.x + 1)
    wanted = [math.exp(optimize.brentq(lambda at: profile(at) - cut, *end)) for end in ends]
    assert [low, high] == pytest.approx(wanted, rel=1e-3)

    def at_middle(middle: float) -> float:
        found = optimize.minimize_scalar(
            lambda width: plain_deviance(middle, width), bounds=(-4, 0), method="bounded"
        )
        return float(found.fun) - cut

    ends = (curve.middle - 0.2, curve.middle), (curve.middle, curve.middle + 0.2)
    wanted = [optimize.brentq(at_middle, *end) for end in ends]
    assert list(shares.middle_limits(curve)) == pytest.approx(wanted, abs=0.01)


@pytest.mark.parametrize("widths", [(10.0, 20, 40), (16.0, 20, 24)])
def test_one_mixed_probe_gives_no_lower_limit(widths: tuple[float, ...]) -> None:
    """As narrow a curve as one likes goes through it, between a fail and a pass."""
    x = np.log2(widths)
    good = np.array([0.0, 3, 10])
    shares = Shares(x, good, 10 - good)
    curve = shares.fit()
    assert (curve.width, curve.deviance) == (LEAST_WIDTH, pytest.approx(0, abs=1e-9))
    assert curve.middle == pytest.approx(x[1], abs=2e-3)
    low, high = shares.width_limits(curve)
    assert low is None

    def lost(log_width: float) -> float:
        def at(middle: float) -> float:
            z = (x - middle) / math.exp(log_width)
            seen = stats.binom.logpmf(good, 10, good / 10).sum()
            return float(2 * (seen - stats.binom.logpmf(good, 10, expit(z)).sum()))

        found = optimize.minimize_scalar(at, bounds=(x[1] - 1, x[1] + 1), method="bounded")
        return float(found.fun)

    wanted = optimize.brentq(lambda at: lost(at) - stats.chi2.ppf(0.95, 1), math.log(0.02), 0)
    assert high == pytest.approx(math.exp(wanted), rel=1e-3)


def test_where_nothing_passes_every_time_there_is_no_limit_above() -> None:
    x = np.log2([60.0, 68.0])
    good = np.array([0.0, 1.0])
    shares = Shares(x, good, 10 - good)
    curve = shares.fit()
    low, high = shares.middle_limits(curve)
    assert low is not None
    assert 60 < 2**low <= 68.2
    assert high is None
    assert shares.width_limits(curve) == (None, None)
