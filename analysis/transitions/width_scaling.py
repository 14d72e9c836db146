"""Does the passage from failing to passing get sharper with the size of a cell?"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import chdtrc

from analysis.laws.interval_likelihood import Array
from analysis.load import StudyResults, per_study
from analysis.thresholds.best import best_of
from analysis.transitions import logistic
from analysis.transitions.transition_fits import probes_of, transitions_of


@dataclass(frozen=True, kw_only=True)
class Narrowing:
    """How a transition's width at h* changes with the size of a cell: width ∝ m^exponent.

    Binomial maximum likelihood: every cell has a middle of its own, and one power of m gives all
    widths. Limits are 95 % ones by profile likelihood, which takes the probes for independent.

    Attributes:
        cells: ``cell_id, m, d_model, degree, h, width, width_low, width_high, n_probes, n_runs``:
            the cells it is fitted to, each with a width of its own, in doublings.
        width: at the geometric mean of the m.
        excess: deviance above that of a width of its own for every cell, on ``degrees`` degrees of
            freedom.
        p_value: how often chance gives so much excess under one power.
    """

    cells: pd.DataFrame = dataclasses.field(repr=False)
    exponent: float
    exponent_low: float
    exponent_high: float
    width: float
    excess: float
    degrees: int

    @property
    def p_value(self) -> float:
        """By the chi-square distribution."""
        return float(chdtrc(self.degrees, self.excess))


CELLS_OF_A_POWER = 3
"""Fewest sizes m that a power is fitted to."""

EXPONENTS, STRIDE = np.linspace(-4, 4, 1601), 16
"""Exponents that are tried; every so many first, then all near the best of these."""


@per_study
def narrowing_of(results: StudyResults) -> Narrowing | None:
    """How a study's transitions at h* narrow with the size of a cell."""
    return narrowing(probes_of(results), transitions_of(results), best_of(results))


def narrowing(table: pd.DataFrame, fits: pd.DataFrame, best: pd.DataFrame) -> Narrowing | None:
    """The power of m by which the transitions at h* narrow; None below three sizes.

    Cells whose seeds all pass or all fail at every D_K, or switch all at one, have no width and are
    left out.

    Args:
        table: of ``analysis.transitions.transition_fits.probes``.
        fits: of ``analysis.transitions.transition_fits.transitions``.
        best: of ``analysis.thresholds.best.best``.
    """
    stars = best.loc[best["D_K"].notna(), ["cell_id", "h_star"]]
    stars = stars.rename(columns={"h_star": "h"}).astype({"h": "int64"})
    fitted = stars.merge(fits, on=["cell_id", "h"])
    profiles, rows = [], []
    for row in fitted[fitted["share_width_low"].notna()].to_dict("records"):
        own = table[(table["cell_id"] == row["cell_id"]) & (table["h"] == row["h"])]
        x = np.log2(own["D_K"].to_numpy(dtype=np.float64))
        good = own["passing"].to_numpy(dtype=np.float64)
        bad = own["n_seeds"].to_numpy(dtype=np.float64) - good
        profiles.append(logistic.width_profile(x, good, bad, logistic.fit(x, good, bad)))
        rows.append(
            {name: row[name] for name in ("cell_id", "m", "d_model", "degree", "h")}
            | {name: row[f"share_{name}"] for name in ("width", "width_low", "width_high")}
            | {name: row[name] for name in ("n_probes", "n_runs")}
        )
    if len({row["m"] for row in rows}) < CELLS_OF_A_POWER:
        return None
    log_m = np.log(np.array([row["m"] for row in rows], dtype=np.float64))
    offset = log_m - log_m.mean()
    own_widths = np.log([row["width"] for row in rows])
    levels = np.linspace(own_widths.min() - 1, own_widths.max() + 1, 401)

    def lost(exponents: Array) -> Array:
        """Deviance of all cells at each exponent and level."""
        total = np.zeros((len(exponents), len(levels)))
        for at, (log_widths, deviance) in zip(offset, profiles, strict=True):
            asked = levels[None, :] + exponents[:, None] * at
            # Beyond the profile its end counts and a slope: no interior point is as good.
            beyond = np.maximum(log_widths[0] - asked, 0) + np.maximum(asked - log_widths[-1], 0)
            total += np.interp(asked, log_widths, deviance) + 100 * beyond
        return total

    coarse = lost(EXPONENTS[::STRIDE]).min(axis=1)
    near = STRIDE * np.flatnonzero(coarse <= coarse.min() + 2 * logistic.CUT)
    exponents = EXPONENTS[max(near[0] - STRIDE, 0) : near[-1] + STRIDE + 1]
    total = lost(exponents)
    i, j = np.unravel_index(int(total.argmin()), total.shape)
    by_exponent = total.min(axis=1)
    inside = exponents[by_exponent <= total.min() + logistic.CUT]
    return Narrowing(
        cells=pd.DataFrame(rows),
        exponent=float(exponents[i]),
        exponent_low=float(inside.min()),
        exponent_high=float(inside.max()),
        width=float(np.exp(levels[j])),
        excess=float(total.min() - sum(deviance.min() for _, deviance in profiles)),
        degrees=len(rows) - 2,
    )
