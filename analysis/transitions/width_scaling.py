"""Does the passage from failing to passing get sharper with the size of a cell?"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.optimize import minimize, minimize_scalar
from scipy.special import chdtrc

from rgr_dist.analysis.laws.interval_likelihood import Array
from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.analysis.thresholds.best import best_of
from rgr_dist.analysis.transitions.logistic import profile_limits
from rgr_dist.analysis.transitions.probes import probes_of
from rgr_dist.analysis.transitions.transition_fits import shares_of, transitions_of


@dataclass(frozen=True, kw_only=True)
class WidthScaling:
    """How a transition's width at h* changes with the size of a cell: width ∝ m^exponent.

    Binomial maximum likelihood: every cell has a middle of its own, and one power of m gives all
    widths. Limits are 95 % ones by profile likelihood, which takes the probes for independent.

    Attributes:
        cells: ``cell_id, m, d_model, degree, h, width, width_low, width_high, n_probes, n_runs``:
            the cells it is fitted to, each with a width of its own, in doublings.
        width: at the geometric mean of the m.
        excess: deviance above that of a width of its own for every cell, on ``degrees`` degrees of
            freedom.
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
        """How often chance gives so much excess under one power, by the chi-square distribution."""
        return float(chdtrc(self.degrees, self.excess))


CELLS_OF_A_POWER = 3
"""Fewest sizes m that a power is fitted to."""

STEEPEST = 4.0
"""Largest exponent considered, of either sign."""


@per_study
def width_scaling_of(results: StudyResults) -> WidthScaling | None:
    """How a study's transitions at h* narrow with the size of a cell."""
    return width_scaling(probes_of(results), transitions_of(results), best_of(results))


def width_scaling(
    table: pd.DataFrame, fits: pd.DataFrame, best: pd.DataFrame
) -> WidthScaling | None:
    """The power of m by which the transitions at h* narrow; None below three sizes.

    Cells whose seeds all pass or all fail at every D_K, or switch all at one, have no width and are
    left out.

    Args:
        table: of ``rgr_dist.analysis.transitions.probes.probes``.
        fits: of ``rgr_dist.analysis.transitions.transition_fits.transitions``.
        best: of ``rgr_dist.analysis.thresholds.best.best``.
    """
    stars = best.loc[best["D_K"].notna(), ["cell_id", "h_star"]]
    stars = stars.rename(columns={"h_star": "h"}).astype({"h": "int64"})
    cells = stars.merge(fits[fits["share_width_low"].notna()], on=["cell_id", "h"])
    cells = cells.rename(columns=lambda name: name.removeprefix("share_"))
    if cells["m"].nunique() < CELLS_OF_A_POWER:
        return None
    by_head = dict(list(table.groupby(["cell_id", "h"])))
    shares = [shares_of(by_head[key]) for key in zip(cells["cell_id"], cells["h"], strict=True)]
    log_m = np.log(cells["m"].to_numpy(dtype=np.float64))
    offset = log_m - log_m.mean()
    own = np.log(cells["width"].to_numpy(dtype=np.float64))

    def lost(level: float, exponent: float) -> float:
        """Deviance of all cells, each at its own best middle."""
        widths = np.exp(level + exponent * offset)
        return sum(one.at_width(width).deviance for one, width in zip(shares, widths, strict=True))

    def profile(exponent: float) -> float:
        ends = own.min() - 1, own.max() + 1
        return float(minimize_scalar(lost, bounds=ends, args=(exponent,)).fun)

    def both(unknowns: Array) -> float:
        return lost(*unknowns)

    slope, level = np.polyfit(offset, own, 1)
    found = minimize(both, [level, slope], method="Nelder-Mead", options={"fatol": 1e-6})
    level, exponent = found.x.tolist()
    low, high = profile_limits(profile, exponent, found.fun, (-STEEPEST, STEEPEST))
    columns = ["cell_id", "m", "d_model", "degree", "h", "width", "width_low", "width_high"]
    return WidthScaling(
        cells=cells[[*columns, "n_probes", "n_runs"]],
        exponent=exponent,
        exponent_low=-STEEPEST if low is None else low,
        exponent_high=STEEPEST if high is None else high,
        width=float(np.exp(level)),
        excess=float(found.fun) - sum(one.fit().deviance for one in shares),
        degrees=len(cells) - 2,
    )
