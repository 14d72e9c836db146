"""Capacity or training time? Thresholds as the training budget grows.

A threshold is one of a step limit T. Where a cell has several, D_K*(T) falls towards what capacity
alone would need, D_K(inf), and the gain of several heads, D_K(1) / D_K*, shows how much of it is
speed of training.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import chdtrc, chdtri

from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.analysis.records import integer
from rgr_dist.analysis.thresholds.best import best_of
from rgr_dist.planning.budgets import limited_by
from rgr_dist.study.cell import Cell
from rgr_dist.study.study import Study

Floats = npt.NDArray[np.float64]

LEAST_BUDGETS = 4
"""Budgets below which no limit is extrapolated: its curve has three parameters."""
CONFIDENCE = 0.95
"""Coverage of the interval of D_K(inf)."""
REJECTED = 0.01
"""Probability of a lack of fit below which the curve is not the one that is supposed."""
EXPONENTS = np.geomspace(0.05, 4, 60)
"""Exponents b of D_K(T) = D_K(inf) + a T^-b that are tried."""

SIZES = ["cell_id", "m", "d_model", "degree"]
WIDTHS = ["D_K", "D_K_low", "D_K_high"]
OF_ONE = ["D_K_one", "one_low", "one_high"]
HEADS = ["h_star", "h_low", "h_high"]
GAIN = ["gain", "gain_low", "gain_high"]


@per_study
def gains(results: StudyResults) -> pd.DataFrame:
    """The best head count against one head, at every step limit of every cell.

    Returns:
        ``cell_id, m, d_model, degree, max_steps, D_K, D_K_low, D_K_high, h_star, h_low, h_high,
        D_K_one, one_low, one_high, one_status, gain, gain_low, gain_high, confirmed``. D_K_one is
        the threshold of one head, with its interval and status; gain is D_K_one / D_K. gain_low and
        gain_high set the ends of both intervals against each other, so that they cover at least
        what either covers; an end that is not known is null. If no width of one head passes up to
        the largest, gain is null and gain_low is what that width would give.
    """
    thresholds = results.thresholds[results.thresholds["h"] == 1]
    of_one = dict(zip(WIDTHS, OF_ONE, strict=True)) | {"status": "one_status"}
    one = thresholds[["cell_id", *of_one]].rename(columns=of_one)
    best = best_of(results).set_index("cell_id")
    table = best.loc[[cell.cell_id for cell in results.study.cells]].reset_index()
    table = table.merge(one, on="cell_id", how="left")
    whole = [*SIZES[1:], "max_steps", *WIDTHS, *HEADS, *OF_ONE]
    table = table.astype(dict.fromkeys(whole, "Int64"))
    D_K, alone = table["D_K"], table["D_K_one"]
    table["gain"] = alone / D_K
    table["gain_low"] = table["one_low"].fillna(alone) / table["D_K_high"].fillna(D_K)
    highest = table["one_high"].fillna(alone) / table["D_K_low"].fillna(D_K)
    table["gain_high"] = highest.where(alone.notna())
    columns = [*SIZES, "max_steps", *WIDTHS, *HEADS, *OF_ONE, "one_status", *GAIN, "confirmed"]
    return table[columns].astype(dict.fromkeys(GAIN, "float64"))


def verdict(cell_gains: pd.DataFrame) -> str:
    """What becomes of the gain of several heads at one cell as its budget grows.

    Args:
        cell_gains: the rows of ``gains`` of one cell, by growing limit.

    Returns:
        ``survives``: at the largest budget the whole interval lies above 1; ``vanishes``: there it
        does not, though at a smaller one it does; ``shrinks``: it lies above 1, and below the
        whole interval at a smaller budget; ``none``: it lies above 1 nowhere; ``cannot tell``: the
        largest budget has no threshold.
    """
    last = cell_gains.iloc[-1]
    if pd.isna(last["gain_low"]):
        return "cannot tell"
    above = cell_gains["gain_low"] > 1
    if not above.iloc[-1]:
        return "vanishes" if above.any() else "none"
    before = cell_gains["gain_low"].iloc[:-1].max()
    shrank = pd.notna(last["gain_high"]) and last["gain_high"] < before
    return "shrinks" if shrank else "survives"


@dataclass(frozen=True)
class Limit:
    """D_K as the budget grows without end, from D_K(T) = D_K(inf) + a T^-b.

    Attributes:
        D_K, low, high: the estimate and its 95 % interval by the profile likelihood; None where the
            data cannot tell.
        n: thresholds behind it.
        reason: why there is none.
    """

    D_K: float | None
    low: float | None
    high: float | None
    n: int
    reason: str | None = None


def limit_of(
    steps: Sequence[float],
    D_K: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    h: Sequence[float] | None = None,
) -> Limit:
    """Extrapolate thresholds to an endless budget, up to the upper end of the last one.

    A threshold is a multiple of its head count h: what is rounded up lies (h - 1) / 2 below it in
    the mean. Each counts as normal about the curve, its standard deviation a quarter of its
    interval, and at least that of rounding, h / sqrt(12). The seeds of a cell are the same at
    every budget, so that the thresholds are not independent and the interval is rough.

    Args:
        steps, D_K: step limits, increasing, and the thresholds there.
        low, high: the ends of their 95 % intervals.
        h: the head counts of the thresholds; 1 if not given.

    Returns:
        The limit before it is rounded up to a multiple of any h.
    """
    n = len(D_K)
    if n < LEAST_BUDGETS:
        return Limit(None, None, None, n, f"fewer than {LEAST_BUDGETS} budgets have a threshold")
    x = np.asarray(steps, dtype=np.float64) / max(steps)
    step = np.ones(n) if h is None else np.asarray(h, dtype=np.float64)
    y = np.asarray(D_K, dtype=np.float64) - (step - 1) / 2
    spread = np.maximum((np.asarray(high) - np.asarray(low)) / 4.0, step / math.sqrt(12))
    tried = np.linspace(0.0, max(D_K[-1], high[-1]), 801)
    chi2 = _chi2_at(tried, x, y, spread)
    least = float(chi2.min())
    if chdtrc(max(1, n - 3), least) < REJECTED:
        return Limit(None, None, None, n, "D_K does not fall as a power of the budget")
    inside = tried[chi2 <= least + float(chdtri(1, 1 - CONFIDENCE))].tolist()
    if inside[0] == 0.0:
        return Limit(None, None, None, n, "the curve does not level off within the budgets")
    return Limit(float(tried[int(chi2.argmin())]), inside[0], inside[-1], n)


def _chi2_at(limits: Floats, x: Floats, y: Floats, spread: Floats) -> Floats:
    """Least chi-squared of the curves with each of these limits, over a >= 0 and b."""
    rest = (y - limits[:, None, None]) / spread  # [limits, 1, budgets]
    falls = x ** -EXPONENTS[:, None] / spread  # [exponents, budgets]
    factor = np.maximum(0.0, (rest * falls).sum(2) / (falls**2).sum(1))
    chi2: Floats = ((rest - factor[:, :, None] * falls) ** 2).sum(2).min(1)
    return chi2


@per_study
def limits(results: StudyResults) -> pd.DataFrame:
    """What each cell with several step limits says of an endless one.

    Returns:
        One row per cell but for its limits: ``cell_id`` of the largest, ``m, d_model, degree, D_K``
        there, ``limited_by`` (budget where D_K* still falls between the last two, else capacity),
        ``D_K_limit, limit_low, limit_high, n, reason`` of ``limit_of``, and ``gain``: what becomes
        of the gain of several heads (``verdict``).
    """
    columns = [*SIZES, "D_K", "limited_by"]
    columns += ["D_K_limit", "limit_low", "limit_high", "n", "reason", "gain"]
    whole, real = [*SIZES[1:], "D_K", "n"], ["D_K_limit", "limit_low", "limit_high"]
    rows = [_row(gains(results), family) for family in families(results.study)]
    frame = pd.DataFrame(rows, columns=columns, dtype="object")
    return frame.astype(dict.fromkeys(whole, "Int64") | dict.fromkeys(real, "float64"))


def _row(table: pd.DataFrame, family: Sequence[Cell]) -> dict[Hashable, object]:
    own = table[table["cell_id"].isin([cell.cell_id for cell in family])].sort_values("max_steps")
    found = own[own["D_K"].notna()]
    low, high = (found[name].fillna(found["D_K"]) for name in ("D_K_low", "D_K_high"))
    numbers = (found["max_steps"], found["D_K"], low, high, found["h_star"])
    limit = limit_of(*(column.astype("float64").tolist() for column in numbers))
    totals = [integer(D_K) for D_K in own["D_K"]]
    return own.iloc[-1][[*SIZES, "D_K"]].to_dict() | {
        "limited_by": limited_by(totals[-1], totals),
        "D_K_limit": limit.D_K,
        "limit_low": limit.low,
        "limit_high": limit.high,
        "n": limit.n,
        "reason": limit.reason,
        "gain": verdict(own),
    }


def families(study: Study) -> list[tuple[Cell, ...]]:
    """The cells of a study that have several step limits, each with all of them, in its order."""
    distinct = dict.fromkeys(study.budgets[cell.cell_id] for cell in study.cells)
    return [family for family in distinct if len(family) > 1]
