"""Ordinary least squares, by statsmodels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rgr_dist.analysis.laws.interval_likelihood import Array
from rgr_dist.search.confidence_interval import t_quantile


@dataclass(frozen=True)
class LeastSquares:
    """A fit of y = X β + ε.

    Attributes:
        coefficients: β, shape (p,).
        low, high: its 95 % t-limits, at n - p degrees of freedom.
        square_sum: of the residuals.
        sigma: their standard deviation, by the degrees of freedom.
    """

    coefficients: Array
    low: Array
    high: Array
    square_sum: float
    sigma: float


def least_squares(design: Array, y: Array) -> LeastSquares:
    """The fit that has the least sum of squared residuals.

    Args:
        design: X, shape (n, p), of full column rank, with n > p.
        y: shape (n,).
    """
    from statsmodels.regression.linear_model import OLS  # half a second, for laws alone

    fitted = OLS(y, design).fit()
    sigma = float(np.sqrt(fitted.mse_resid))
    half = t_quantile(fitted.df_resid) * sigma * np.sqrt((fitted.model.pinv_wexog**2).sum(axis=1))
    beta: Array = fitted.params
    return LeastSquares(beta, beta - half, beta + half, float(fitted.ssr), sigma)
