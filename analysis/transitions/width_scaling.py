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
from rgr_dist.analysis.transitions.transition_fits import rejected_of, transitions_of
from rgr_dist.analysis.wording import number
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


CELLS_OF_A_POWER = 3
"""Fewest sizes m that a power is fitted to."""


@per_study
def width_scaling_of(results: StudyResults) -> WidthScaling | None:
    """The power of m by which the transitions at h* narrow; None with fewer than three sizes.

    Of cells that differ in the step limit alone, only the one with the largest counts, and cells
    with an unusual protocol do not: several cells of one size would not make it more certain.

    Cells whose width has no lower limit are left out: those whose seeds all pass or all fail at
    every D_K, or all switch at one, and those where a sudden switch fits about as well as the best
    curve. So are those whose shares reject their curve (``rejected_of``). Sudden switches are the
    sharpest, so without them the power may be too small.
    """
    fits, best = transitions_of(results), with_protocols(best_of(results), results.study)
    is_taken = best["D_K"].notna() & best["largest"] & (best["protocol"] == "")
    stars = best.loc[is_taken, ["cell_id", "h_star"]]
    stars = stars.rename(columns={"h_star": "h"}).astype({"h": "int64"})
    rejected = rejected_of(results)
    keys = zip(fits["cell_id"], fits["h"], strict=True)
    is_kept = np.array([key not in rejected for key in keys], dtype=bool)
    cells = stars.merge(fits[fits["share_width_low"].notna() & is_kept], on=["cell_id", "h"])
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


def sentence(widths: WidthScaling) -> str:
    """Whether transitions get sharper with m, or may with h*, and by which power of m."""
    said, other = "No trend of sharpness with m", ", while h* differs too"
    if (is_sharper := widths.exponent_high < 0) or widths.exponent_low > 0:
        said = f"Transitions get {'sharper' if is_sharper else 'less sharp'} with m"
        other = ", or with h*, which differs too"
    power, low, high = (
        number(value, "z.2f")
        for value in (widths.exponent, widths.exponent_low, widths.exponent_high)
    )
    m = widths.cells["m"]
    return (
        f"{said}{other if len(widths.heads) > 1 else ''}: their width, in doublings of D_K, scales "
        f"as m^{power} [{low} to {high}] over {len(m)} cells of m = {m.min()} to {m.max()}."
    )
