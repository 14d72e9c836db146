"""Whether the transition from fail to pass is the same in every cell once D_K is scaled."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rgr_dist.analysis.laws.candidates import law_at
from rgr_dist.analysis.laws.fits import fits_of
from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.analysis.transitions.probes import probes_of
from rgr_dist.analysis.transitions.transition_fits import shares_of

OWN = "own D_K*"

POINTS = (
    "cell_id", "m", "d_model", "degree", "h", "D_K", "scaled", "n_seeds", "passing", "share",
    "mean_score", "complete", "collapsed", "failed",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Collapse:
    """How well the cells' transitions lie on one curve when D_K is divided by a law.

    The curve gives the share of passing seeds at h* as a logistic function of log₂(D_K / law),
    common to all cells. ``deviance`` is twice the gap between its log-likelihood and that of the
    observed shares; ``expected`` is its mean if all cells follow this curve with independent seeds.

    Attributes:
        law: the candidate's name, or ``own D_K*``, which divides by each cell's own threshold: what
            then remains comes from transitions of different widths, and from pairing seeds.
        middle: D_K / law at which half of the seeds pass.
        width: in doublings; the curve rises from 12 % to 88 % over four of them.
        points: the columns ``POINTS``; scaled is D_K / law.
    """

    law: str
    formula: str
    n_cells: int
    deviance: float
    expected: float
    middle: float
    width: float
    points: pd.DataFrame = dataclasses.field(repr=False)

    @property
    def reduced_chi2(self) -> float | None:
        """The deviance over its expected value: near 1 where seeds explain all of it.

        None where less than 1 is expected: no probe is likely to have seeds of both kinds.
        """
        return self.deviance / self.expected if self.expected >= 1 else None


@per_study
def collapses_of(results: StudyResults) -> list[Collapse]:
    """The collapse under each cell's own threshold, then under each law that was fitted."""
    table, fits = probes_of(results), fits_of(results)
    cells = fits.cells[fits.cells["D_K"].notna()]
    keys = cells.assign(h=cells["h_star"].astype("int64"))[["cell_id", "h"]]
    own = table.merge(keys, on=["cell_id", "h"])
    if len(cells) < 2 or own.empty:
        return []
    laws = [(OWN, "each cell's own D_K*", cells["D_K"].to_numpy(dtype=np.float64))]
    laws += [
        (candidate.name, candidate.formula, np.exp(law_at(candidate, cells)))
        for candidate in fits.candidates
        if candidate.status == "fitted"
    ]
    found = []
    for law, formula, values in laws:
        by_cell = dict(zip(cells["cell_id"], values, strict=True))
        points = own.assign(
            scaled=own["D_K"] / own["cell_id"].map(by_cell), share=own["passing"] / own["n_seeds"]
        )
        one = _collapse(law, formula, points)
        if one is not None:
            found.append(one)
    return found


def _collapse(law: str, formula: str, points: pd.DataFrame) -> Collapse | None:
    shares = shares_of(points, "scaled")
    if len(points) < 3 or not shares.good.any() or not shares.bad.any() or np.ptp(shares.x) == 0:
        return None
    curve = shares.fit()
    return Collapse(
        law=law,
        formula=formula,
        n_cells=int(points["cell_id"].nunique()),
        deviance=curve.deviance,
        expected=shares.expected(curve),
        middle=2.0**curve.middle,
        width=curve.width,
        points=points[list(POINTS)].reset_index(drop=True),
    )
