"""Ordinary least squares with its t-intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysis.laws.interval_likelihood import Array
from search.confidence_interval import t_quantile


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
    inverse = np.linalg.pinv(design)
    beta = inverse @ y
    residual = y - design @ beta
    square_sum = float(residual @ residual)
    degrees = len(y) - design.shape[1]
    sigma = float(np.sqrt(square_sum / degrees))
    half = t_quantile(degrees) * sigma * np.sqrt((inverse**2).sum(axis=1))
    return LeastSquares(beta, beta - half, beta + half, square_sum, sigma)
