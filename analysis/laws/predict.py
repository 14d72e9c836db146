"""How wide should the keys be? D_K, h and d_k for any sizes, from the fitted laws."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from rgr_dist.analysis.laws.candidates import predict
from rgr_dist.analysis.laws.fits import Fits
from rgr_dist.analysis.laws.points import log_ends
from rgr_dist.analysis.laws.profile_limits import profile_interval
from rgr_dist.analysis.laws.scaling_laws import by_name
from rgr_dist.analysis.wording import plural
from rgr_dist.paper import LAWS, capacity_scale, compression
from rgr_dist.search.confidence_interval import t_quantile


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """The predictions of every law that the data cannot tell from the best, and of the paper.

    Attributes:
        rows: ``law, formula, gap, D_K, D_K_low, D_K_high, h, h_low, h_high, d_k, d_k_low,
            d_k_high``, the best law first, ``the paper`` with its own constants last. gap is the
            AICc above the best law's, None for the paper's. D_K* has its 95 % prediction interval;
            an end is None for the paper, which prints no scatter, and where the cells set none. h
            is by the power law of h*, or by the paper's line for its own law. d_k and its ends are
            those of D_K divided by h. D_K and d_k are rounded up, since less does not pass.
        warnings: why h is not predicted, and how the size lies outside the fitted cells.
        reason: why there is no prediction; None if there is one.
    """

    rows: list[dict[str, Any]]
    warnings: list[str]
    reason: str | None = None


def predict_sizes(fits: Fits, m: int, d_model: int, n_edges: int | None = None) -> Prediction:
    """D_K, h and d_k of a cell of these sizes.

    Args:
        n_edges: relations m′; m if not given.
    """
    edges = m if n_edges is None else n_edges
    cells = fits.cells
    laws = [candidate for candidate in fits.candidates if candidate.supported]
    if not laws:
        known = int(cells["D_K"].notna().sum())
        reason = f"{plural(known, 'cell')} with a threshold, too few for a law"
        return Prediction(rows=[], warnings=[], reason=reason)
    at = pd.DataFrame({"m": [m], "d_model": [d_model], "n_edges": [edges]})
    heads = _heads(fits, compression(m, d_model, edges))
    rows = []
    for candidate in laws:
        D_K, low, high = (float(values[0]) for values in predict(candidate, cells, at))
        ends = (_up(D_K), _up(low), _up(high) if math.isfinite(high) else None)
        rows.append(_predicted(candidate.name, candidate.formula, candidate.gap, ends, heads))
    paper = LAWS["D_K"].slope * capacity_scale(m, d_model, edges)
    line = LAWS["h"].intercept + LAWS["h"].slope * compression(m, d_model, edges)
    formula = f"{LAWS['D_K'].slope:g} · m′ log₂ m / d_model"
    theirs = (max(1, round(line)), None, None)
    rows.append(_predicted("the paper", formula, None, (_up(paper), None, None), theirs))
    unknown = [] if heads[0] else [f"no law of h*: {by_name(fits.laws)['h_power'].reason}"]
    return Prediction(rows=rows, warnings=unknown + _outside(cells, m, d_model, edges))


def _up(value: float) -> int:
    return max(1, math.ceil(min(value, 1e15) - 1e-9))


Ends = tuple[int | None, int | None, int | None]


def _predicted(
    law: str,
    formula: str,
    gap: float | None,
    widths: tuple[int, int | None, int | None],
    heads: Ends,
) -> dict[str, Any]:
    h, told = heads[0], {"law": law, "formula": formula, "gap": gap}
    d_k = [None if h is None or width is None else max(1, math.ceil(width / h)) for width in widths]
    for name, ends in (("D_K", widths), ("h", heads), ("d_k", d_k)):
        told |= dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
    return told


def _heads(fits: Fits, at: float) -> Ends:
    """h* at a compression, with its 95 % prediction interval, from the power law of h*."""
    law = by_name(fits.laws)["h_power"]
    if law.factor is None or law.exponent is None or law.scatter is None:
        return None, None, None
    own = fits.cells[fits.cells["h_star"].notna()]
    lower, upper = log_ends(own["h_above"], own["h_below"])
    x, new = np.log(own["compression"].to_numpy(dtype=np.float64)), math.log(at)
    about = np.column_stack([np.ones_like(x), x - new])  # its constant is log h* at the new size
    least, most = (float(end) for end in profile_interval(lower, upper, about, 0))
    bounded = int((np.isfinite(lower) & np.isfinite(upper)).sum())
    scatter = t_quantile(bounded - 2) * law.scatter
    centre = math.log(law.factor) + law.exponent * new
    low, high = centre - math.hypot(centre - least, scatter), math.hypot(most - centre, scatter)
    ends = (_heads_at(end) for end in (centre, low, centre + high))
    h, h_low, h_high = ends
    return h, h_low or 1, h_high


def _heads_at(log_h: float) -> int | None:
    """A whole number of heads; None where it is not known."""
    return max(1, round(math.exp(min(log_h, 30.0)))) if math.isfinite(log_h) else None


def _outside(cells: pd.DataFrame, m: int, d_model: int, edges: int) -> list[str]:
    """A sentence for each way in which a size lies outside the fitted cells."""
    asked = {
        "m": (m, cells["m"]),
        "d_model": (d_model, cells["d_model"]),
        "m′/d_model": (edges / d_model, cells["n_edges"] / cells["d_model"]),
        "m′/m": (edges / m, cells["n_edges"] / cells["m"]),
    }
    told = []
    for name, (value, known) in asked.items():
        low, high = float(known.min()), float(known.max())
        if not low * (1 - 1e-9) <= value <= high * (1 + 1e-9):
            span = f"are all {low:g}" if low == high else f"go from {low:g} to {high:g}"
            told.append(f"{name} = {value:g} is outside the fitted cells, which {span}")
    return told
