"""Does the passage from failing to passing get sharper with the size of a cell?"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import chdtrc

from analysis.fitting import logistic
from analysis.transitions import share_fit


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

EXPONENTS = np.linspace(-4, 4, 1601)


def narrowing(table: pd.DataFrame, best: pd.DataFrame) -> Narrowing | None:
    """The power of m by which the transitions at h* narrow; None below three sizes.

    Cells whose seeds all pass or all fail at every D_K, or switch all at one, have no width and are
    left out.

    Args:
        table: of ``analysis.transitions.probes``.
        best: of ``analysis.thresholds.best``.
    """
    profiles, rows = [], []
    for _, cell in best[best["D_K"].notna()].iterrows():
        own = table[(table["cell_id"] == cell["cell_id"]) & (table["h"] == cell["h_star"])]
        found = share_fit(own) if len(own) else {"share_status": "never"}
        if found["share_status"] != "fitted" or found["share_width_low"] is None:
            continue
        x = np.log2(own["D_K"].to_numpy(dtype=np.float64))
        good = own["passing"].to_numpy(dtype=np.float64)
        bad = own["n_seeds"].to_numpy(dtype=np.float64) - good
        profiles.append(logistic.width_profile(x, good, bad, logistic.fit(x, good, bad)))
        first = own.iloc[0]
        rows.append(
            {name: first[name] for name in ("cell_id", "m", "d_model", "degree", "h")}
            | {"width": found["share_width"], "width_low": found["share_width_low"]}
            | {"width_high": found["share_width_high"], "n_probes": len(own)}
            | {"n_runs": int(own["n_seeds"].sum())}
        )
    if len({row["m"] for row in rows}) < CELLS_OF_A_POWER:
        return None
    log_m = np.log(np.array([row["m"] for row in rows], dtype=np.float64))
    offset = log_m - log_m.mean()
    own_widths = np.log([row["width"] for row in rows])
    levels = np.linspace(own_widths.min() - 1, own_widths.max() + 1, 401)
    total = np.zeros((len(EXPONENTS), len(levels)))
    for at, (log_widths, deviance) in zip(offset, profiles, strict=True):
        asked = levels[None, :] + EXPONENTS[:, None] * at
        # Beyond the profile its end counts and a slope: no interior point is as good.
        beyond = np.maximum(log_widths[0] - asked, 0) + np.maximum(asked - log_widths[-1], 0)
        total += np.interp(asked, log_widths, deviance) + 100 * beyond
    i, j = np.unravel_index(int(total.argmin()), total.shape)
    by_exponent = total.min(axis=1)
    inside = EXPONENTS[by_exponent <= total.min() + logistic.CUT]
    return Narrowing(
        cells=pd.DataFrame(rows),
        exponent=float(EXPONENTS[i]),
        exponent_low=float(inside.min()),
        exponent_high=float(inside.max()),
        width=float(np.exp(levels[j])),
        excess=float(total.min() - sum(deviance.min() for _, deviance in profiles)),
        degrees=len(rows) - 2,
    )
