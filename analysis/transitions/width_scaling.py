"""Does the transition from fail to pass get sharper with the size of a cell?"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rgr_dist.analysis.laws.points import with_protocols
from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.analysis.thresholds.best_heads import best_of
from rgr_dist.analysis.transitions.transition_fits import transitions_of
from rgr_dist.analysis.wording import fixed, span
from rgr_dist.search.confidence_interval import t_quantile


@dataclass(frozen=True, kw_only=True)
class WidthScaling:
    """How a transition's width at h* changes with the size of a cell: width ∝ m^exponent.

    Least squares on the logarithms of the cells' own widths, with 95 % t-limits from the scatter of
    the widths about the line, which includes that due to seeds.

    Attributes:
        cells: ``cell_id, m, d_model, degree, h, width, width_low, width_high, n_probes, n_runs`` of
            the cells it is fitted to, each with its own width, in doublings.
        scatter: standard deviation of ln width about the line.
    """

    cells: pd.DataFrame = dataclasses.field(repr=False)
    exponent: float
    exponent_low: float
    exponent_high: float
    scatter: float

    @property
    def heads(self) -> list[int]:
        """The cells' head counts; if several, size and head count cannot be told apart."""
        return sorted(set(self.cells["h"]))

    @property
    def words(self) -> list[str]:
        """The power in a sentence, and a caveat where the cells differ in their head counts."""
        power, *ends = (fixed(x, 2) for x in (self.exponent, self.exponent_low, self.exponent_high))
        over = f"{len(self.cells)} cells of m = {span([*self.cells['m']])}"
        is_sharper = self.exponent_high < 0
        of = "Transitions sharpen with m: their width" if is_sharper else "The width of transitions"
        limits = f"95 % interval {' to '.join(ends)} over {over}"
        said = f"{of} at h*, in doublings of D_K, scales as m^{power} ({limits})."
        apart = "heads, so size and head count cannot be told apart."
        listed = ", ".join(map(str, self.heads))
        return [said, f"They have {listed} {apart}"] if len(self.heads) > 1 else [said]


CELLS_OF_A_POWER = 3
"""Fewest sizes m that a power is fitted to."""


@per_study
def width_scaling_of(results: StudyResults) -> WidthScaling | None:
    """The power of m by which the transitions at h* narrow; None with fewer than three sizes.

    Of cells that differ in the step limit alone, only the one with the largest counts, and cells
    with an unusual protocol do not: several cells of one size would not make it more certain.

    Cells whose width has no lower limit are left out: those whose seeds all pass or all fail at
    every D_K, or all switch at one, and those where a sudden switch fits about as well as the best
    curve. Sudden switches are the sharpest, so without them the power may be too small.
    """
    fits, best = transitions_of(results), with_protocols(best_of(results), results.study)
    is_taken = best["D_K"].notna() & best["largest"] & (best["protocol"] == "")
    stars = best.loc[is_taken, ["cell_id", "h_star"]]
    stars = stars.rename(columns={"h_star": "h"}).astype({"h": "int64"})
    cells = stars.merge(fits[fits["share_width_low"].notna()], on=["cell_id", "h"])
    cells = cells.rename(columns=lambda name: name.removeprefix("share_"))
    if cells["m"].nunique() < CELLS_OF_A_POWER:
        return None
    log_m, log_width = np.log(cells[["m", "width"]].to_numpy(dtype=np.float64)).T
    (exponent, _), (missed, *_) = np.polyfit(log_m, log_width, 1, full=True)[:2]
    degrees = len(cells) - 2
    scatter = math.sqrt(missed / degrees)
    off = t_quantile(degrees) * scatter / (log_m.std() * math.sqrt(len(cells)))
    columns = ["cell_id", "m", "d_model", "degree", "h", "width", "width_low", "width_high"]
    return WidthScaling(
        cells=cells[[*columns, "n_probes", "n_runs"]],
        exponent=float(exponent),
        exponent_low=float(exponent - off),
        exponent_high=float(exponent + off),
        scatter=scatter,
    )


def asks_for_sharpness(results: StudyResults) -> bool:
    """Whether the study's finding is how sharp transitions are: its sizes share one m′/d_model."""
    loads = {cell.n_edges / cell.d_model for cell in results.study.cells}
    is_asked = results.study.search.transition_seeds > 0 and len(loads) == 1
    return is_asked and width_scaling_of(results) is not None
