"""A published number tested as it is printed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize
from statsmodels.regression.linear_model import OLS
from statsmodels.tools import add_constant

from rgr_dist.analysis.laws.published import line_test, proportional_test, rounding
from rgr_dist.paper import PublishedLaw
from tests.analysis.laws.made_up_cells import LOG_SCALE, SIZES, table

SCALE = np.exp(LOG_SCALE)


def test_what_rounds_to_a_printed_number() -> None:
    assert rounding(1.19) == pytest.approx((1.185, 1.195))
    assert rounding(-6.64) == pytest.approx((-6.645, -6.635))
    assert rounding(0.966) == pytest.approx((0.9655, 0.9665))


def test_the_nearest_value_that_rounds_to_it_is_tested() -> None:
    y = 1.4 * SCALE + np.random.default_rng(5).normal(0, 25, len(SCALE))
    test = line_test("D_K", PublishedLaw(1.19, 0.0, None, "here"), SCALE, y)
    expected = OLS(y, SCALE[:, None]).fit().f_test(f"x1 = {rounding(1.19)[1]}")
    assert test.statistic == pytest.approx(float(expected.fvalue), rel=1e-6)
    assert test.p_value == pytest.approx(float(expected.pvalue), rel=1e-6)


def test_a_slope_within_its_rounding_agrees_perfectly() -> None:
    y = 1.192 * SCALE
    test = line_test("D_K", PublishedLaw(1.19, 0.0, None, "here"), SCALE, y)
    assert (test.p_value, test.compatible) == (1.0, True)


@pytest.mark.parametrize("seed", [1, 2, 4, 5, 7])  # of others the line has no noise
def test_the_nearest_line_is_that_of_a_bounded_least_squares(seed: int) -> None:
    """scipy's ``lsq_linear`` over the box of what rounds to slope and intercept."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 32, 8)
    y = 1.65 * x - 6.64 + rng.normal(0, 0.3 * (seed % 3), 8)
    test = line_test("h", PublishedLaw(1.7, -6.6, None, "here"), x, y)
    X = np.column_stack([x, np.ones(8)])
    ols = OLS(y, X).fit()
    root = np.linalg.cholesky(X.T @ X).T
    ends = list(zip(rounding(1.7), rounding(-6.6), strict=True))
    nearest = optimize.lsq_linear(root, root @ ols.params, bounds=ends, method="bvls", tol=1e-14)
    expected = 2 * nearest.cost / 2 / ols.mse_resid
    assert test.statistic == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_the_error_of_theirs_makes_a_test_milder() -> None:
    y = 1.4 * SCALE + np.random.default_rng(5).normal(0, 25, len(SCALE))
    test = line_test("D_K", PublishedLaw(1.19, 0.0, 0.944, "here", n=12), SCALE, y)
    assert (test.p_value_with_theirs or 0) > (test.p_value or 1)


@pytest.mark.parametrize(("slope", "seed"), [(0.5, 6), (0.6, 7), (0.4, 8)])
def test_its_statistic_is_that_of_least_squares(slope: float, seed: int) -> None:
    """With intervals that are next to points: the F test of intercept and power together."""
    noise = np.random.default_rng(seed).normal(0, 0.15, len(LOG_SCALE))
    y = np.log(0.5) + 1.05 * LOG_SCALE + noise
    test = proportional_test("D_K", PublishedLaw(slope, 0.0, None, "x"), table(y - 5e-5, y + 5e-5))
    nearest = np.clip((y - LOG_SCALE).mean(), *np.log(rounding(slope)))
    ols = OLS(y, add_constant(LOG_SCALE)).fit()
    expected = ols.f_test(f"const = {nearest}, x1 = 1")
    assert test.exponent == pytest.approx(ols.params[1], abs=1e-4)
    assert test.statistic == pytest.approx(float(expected.fvalue), rel=1e-3)
    assert test.p_value == pytest.approx(float(expected.pvalue), rel=2e-3)
    assert test.compatible == (expected.pvalue > 0.05)
    assert (test.name, test.scale, test.n) == ("D_K", "log", len(y))


def test_too_few_cells_are_not_tested() -> None:
    law = PublishedLaw(1.19, 0.0, 0.944, "here", n=12)
    assert line_test("D_K", law, SCALE[:1], SCALE[:1]).p_value is None
    cells = table(LOG_SCALE - 0.1, LOG_SCALE + 0.1).iloc[:2]
    assert proportional_test("D_K", law, cells).p_value is None
    assert len(SIZES) == 12
