"""Scaling laws of D_K* from intervals: eleven forms, fits, limits, ranks, predictions.

A threshold lies between the D_K that fails and the one that passes; a censored one has no upper
end. With log D_K* = mean(θ) + σ ε and ε standard normal, an interval (l, u] has the likelihood
Φ((u - mean)/σ) - Φ((l - mean)/σ). Limits are those of its profile; for exact values their cut-off
would give the t-interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.optimize import brentq, minimize
from scipy.special import fdtri, log_ndtr, stdtrit

Array = npt.NDArray[np.float64]

LEAST_SIGMA = 5e-3
"""The smallest scatter: where a law meets every interval, the likelihood has no maximum."""

MANY, GROUPS = 60, 12
"""With more than ``MANY`` cells, a twelfth of them is left out at a time instead of one cell."""

LOG_ROOT = math.log(2 * math.pi) / 2

FARTHEST = 20.0
"""A logarithm or a power that is this far from its best value still fits: it has no limit."""


class Sizes:
    """The predictors of some cells, as logarithms.

    Args:
        cells: ``m, d_model, n_edges``.
    """

    def __init__(self, cells: pd.DataFrame) -> None:
        m, edges, d_model = cells[["m", "n_edges", "d_model"]].to_numpy(float).T
        self.m, self.edges, self.d_model = np.log(m), np.log(edges), np.log(d_model)
        self.load = self.edges - self.d_model
        self.log_m = np.log(np.log2(m))
        self.bits = np.log(np.maximum(np.log2(m**2 / edges), 1e-12))

    def of(self, some: npt.NDArray[np.bool_]) -> Sizes:
        """The predictors of some of the cells."""
        part = copy(self)
        vars(part).update({name: values[some] for name, values in vars(self).items()})
        return part


Mean = Callable[[Array, Sizes], Array]

FORMS: dict[str, tuple[str, Mean]] = {
    "c · m′/d_model": ("c", lambda t, x: t[0] + x.load),
    "c · m′ log₂ m / d_model": ("c", lambda t, x: t[0] + x.load + x.log_m),
    "c · m′ (log₂ m)² / d_model": ("c", lambda t, x: t[0] + x.load + 2 * x.log_m),
    "c · m′ log₂(m²/m′) / d_model": ("c", lambda t, x: t[0] + x.load + x.bits),
    "c · (m′/d_model)^a": ("ca", lambda t, x: t[0] + t[1] * x.load),
    "c · (m′ log₂ m / d_model)^a": ("ca", lambda t, x: t[0] + t[1] * (x.load + x.log_m)),
    "c · (m′ log₂(m²/m′) / d_model)^a": ("ca", lambda t, x: t[0] + t[1] * (x.load + x.bits)),
    "c · m′ log₂ m / d_model · (1 + k · m′/d_model)": (
        "ck",
        lambda t, x: t[0] + x.load + x.log_m + np.logaddexp(0, t[1] + x.load),
    ),
    "c · (m′/d_model)^a (log₂ m)^b": (
        "cab",
        lambda t, x: t[0] + t[1] * x.load + t[2] * x.log_m,
    ),
    "c · m′^a d_model^b": ("cab", lambda t, x: t[0] + t[1] * x.edges + t[2] * x.d_model),
    "c · m′^a m^b / d_model": (
        "cab",
        lambda t, x: t[0] + t[1] * x.edges + t[2] * x.m - x.d_model,
    ),
}
"""By formula: its unknowns, and log D_K* from these; of c and k, the logarithms are fitted."""

PAPERS, POWER = "c · m′ log₂ m / d_model", "c · (m′ log₂ m / d_model)^a"
APART = "c · m′^a m^b / d_model"
"""The powers of edges and of vertices apart; where m′ is a function of m it cannot be fitted."""
START = {"c": 0.0, "a": 1.0, "b": 0.0, "k": -2.0}


@dataclass(frozen=True)
class Law:
    """A form fitted to some cells.

    Attributes:
        theta: the unknowns as fitted, shape (p,).
        low, high: their 95 % limits, infinite where the cells set none, shape (p,).
        scatter: standard deviation of log D_K* about the law, with n - p degrees of freedom.
        n, n_bounded: cells, and those of them with both ends.
    """

    formula: str
    theta: Array
    low: Array
    high: Array
    scatter: float
    log_likelihood: float
    n: int
    n_bounded: int

    @property
    def aicc(self) -> float:
        """Akaike's corrected criterion; infinite with too few cells for it."""
        p = len(self.theta) + 1
        return (
            2 * p * self.n / (self.n - p - 1) - 2 * self.log_likelihood
            if self.n > p + 1
            else math.inf
        )

    def by_name(self, values: Array) -> dict[str, float | None]:
        """The unknowns by their letters, c and k as they stand in the formula; None if infinite."""
        names = FORMS[self.formula][0]
        told = [
            math.exp(v) if name in "ck" else float(v) for name, v in zip(names, values, strict=True)
        ]
        return {name: v if math.isfinite(v) else None for name, v in zip(names, told, strict=True)}


def ends(cells: pd.DataFrame) -> tuple[Array, Array]:
    """The logarithms of ``D_K_fails`` and ``D_K_passes``, infinite where open."""
    with np.errstate(divide="ignore"):
        low, high = np.log(cells[["D_K_fails", "D_K_passes"]].to_numpy(float)).T
    return low, high


def is_fittable(formula: str, cells: pd.DataFrame) -> bool:
    """Whether the cells have both ends often enough, and sizes that tell the unknowns apart."""
    names, mean = FORMS[formula]
    low, high = ends(cells)
    if int((np.isfinite(low) & np.isfinite(high)).sum()) <= len(names):
        return False
    slopes = _slopes(mean, _start(names), Sizes(cells))
    return bool(np.linalg.matrix_rank(slopes, tol=1e-6) == len(names))


def fit(formula: str, cells: pd.DataFrame) -> Law:
    """A law with its limits.

    Args:
        cells: ``m, d_model, n_edges, D_K_fails, D_K_passes``; ``is_fittable`` says whether it can.
    """
    (names, mean), x, (low, high) = FORMS[formula], Sizes(cells), ends(cells)
    bounded, p = int((np.isfinite(low) & np.isfinite(high)).sum()), len(names)
    found, best = _maximise(mean, x, low, high, np.append(_start(names), -2.0))
    theta = found[:-1]
    sigma = LEAST_SIGMA + math.exp(found[-1])
    cut = bounded * math.log1p(fdtri(1, bounded - p, 0.95) / (bounded - p)) / 2
    slopes = _slopes(mean, theta, x)
    errors = sigma * np.sqrt(np.diag(np.linalg.pinv(slopes.T @ slopes)))
    wide = np.clip(1.2 * math.sqrt(2 * cut) * errors, 0.02, 0.5)  # limits may lie within

    def limit(i: int, way: float) -> float:
        near = found

        @cache
        def fall(value: float) -> float:
            nonlocal near
            if value == theta[i]:
                return -math.sqrt(cut)
            near, held = _maximise(mean, x, low, high, near, (i, value))
            return math.sqrt(max(best - held, 0.0)) - math.sqrt(cut)

        while fall(theta[i] + way) < 0:
            way *= 2
            if abs(way) > FARTHEST:
                return way * math.inf
        near = found
        return float(brentq(fall, theta[i], theta[i] + way, xtol=1e-4))

    lows, highs = ([limit(i, way * wide[i]) for i in range(p)] for way in (-1, 1))
    scatter = sigma * math.sqrt(bounded / (bounded - p))
    return Law(formula, theta, np.array(lows), np.array(highs), scatter, best, len(cells), bounded)


def leave_out(law: Law, cells: pd.DataFrame) -> float:
    """Root mean square of log(D_K* / prediction), each cell predicted from the others.

    A censored cell counts by how far its prediction lies below its largest fail.

    Args:
        law: fitted to all the cells; where the search for the others' begins.
    """
    mean, x, (low, high), n = FORMS[law.formula][1], Sizes(cells), ends(cells), len(cells)
    group = np.arange(n) % (n if n <= MANY else GROUPS)
    errors = np.zeros(n)
    start = np.append(law.theta, math.log(max(law.scatter - LEAST_SIGMA, LEAST_SIGMA)))
    for one in range(group.max() + 1):
        rest = group != one
        theta = _maximise(mean, x.of(rest), low[rest], high[rest], start)[0][:-1]
        errors[~rest] = _middles(low, high)[~rest] - mean(theta, x.of(~rest))
    errors = np.where(np.isfinite(high), errors, np.maximum(errors, 0.0))
    return float(np.sqrt((errors**2).mean()))


def ranked(cells: pd.DataFrame) -> list[Law]:
    """Every law by AICc, the best first; one that is another one in these cells is left out."""
    laws = dict[tuple[int, float], Law]()
    for formula in FORMS:
        if is_fittable(formula, cells):
            law = fit(formula, cells)
            laws.setdefault((len(law.theta), round(law.log_likelihood, 6)), law)
    return sorted(laws.values(), key=lambda law: law.aicc)


def apart(laws: Sequence[Law]) -> Law | None:
    """Of laws of the same cells, that with powers of m′ and of m apart; None without one."""
    return next((law for law in laws if law.formula == APART), None)


def predict(law: Law, cells: pd.DataFrame, at: pd.DataFrame) -> tuple[Array, Array, Array]:
    """D_K* of one more cell, with the lower and upper end of its 95 % interval.

    The interval holds the scatter and, to first order, the error of the law itself.

    Args:
        cells: those that the law was fitted to.
        at: ``m, d_model, n_edges``.
    """
    mean, theta = FORMS[law.formula][1], law.theta
    own, new = (_slopes(mean, theta, Sizes(some)) for some in (cells, at))
    error = np.einsum("np,pq,nq->n", new, np.linalg.pinv(own.T @ own), new)
    spread = law.scatter * np.sqrt(1 + error)
    off = stdtrit(law.n_bounded - len(theta), 0.975) * spread
    centre = mean(theta, Sizes(at))
    return np.exp(centre), np.exp(centre - off), np.exp(centre + off)


def _start(names: str) -> Array:
    return np.array([START[name] for name in names])


def _slopes(mean: Mean, theta: Array, x: Sizes) -> Array:
    """The derivatives of log D_K* by the unknowns, shape (cells, p)."""
    steps = 1e-4 * np.eye(len(theta))
    return np.column_stack([(mean(theta + h, x) - mean(theta - h, x)) / 2e-4 for h in steps])


def _middles(low: Array, high: Array) -> Array:
    """A value for each interval; the end that is known where the other is open."""
    middle = np.where(np.isfinite(high), (low + high) / 2, low)
    return np.where(np.isfinite(low), middle, high)


def _maximise(
    mean: Mean, x: Sizes, low: Array, high: Array, start: Array, held: Sequence[Any] = ()
) -> tuple[Array, float]:
    """The unknowns followed by log(σ - ``LEAST_SIGMA``), and the log-likelihood at its maximum.

    Args:
        start: such unknowns, from which the search begins.
        held: the index of one of them, and the value at which it stays.
    """

    def whole(free: Array) -> Array:
        return np.insert(free, *held) if held else free

    def loss(free: Array) -> tuple[float, Array]:
        every = whole(free)
        theta, above = every[:-1], math.exp(min(every[-1], 50.0))
        sigma = LEAST_SIGMA + above
        at = mean(theta, x)
        a, b = (low - at) / sigma, (high - at) / sigma
        under, over = np.where(a + b > 0, -b, a), np.where(a + b > 0, -a, b)  # keeps its digits
        gap = np.minimum(log_ndtr(under) - log_ndtr(over), -1e-300)
        share = np.maximum(log_ndtr(over) + np.log1p(-np.exp(gap)), -1e6)
        at_a, at_b = (np.exp(-(end**2) / 2 - LOG_ROOT - share) for end in (a, b))
        by_mean = (at_a - at_b) / sigma
        by_sigma = (np.where(at_a > 0, a, 0) * at_a - np.where(at_b > 0, b, 0) * at_b) / sigma
        slope = np.append(by_mean @ _slopes(mean, theta, x), by_sigma.sum() * above)
        return float(-share.sum()), -(np.delete(slope, held[0]) if held else slope)

    first = np.delete(start, held[0]) if held else start
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        found = minimize(loss, first, jac=True, method="BFGS")
    return whole(found.x), -float(found.fun)
