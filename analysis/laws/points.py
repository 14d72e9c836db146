"""The cells of a study as the fits see them: an interval of D_K* and one of h* for each."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from rgr_dist.analysis.laws.interval_likelihood import Array
from rgr_dist.analysis.records import parse_certificate
from rgr_dist.paper import capacity_scale, compression, is_narrow
from rgr_dist.study.study import Study

POINT_KINDS = {
    "cell_id": "object", "m": "int64", "d_model": "int64", "degree": "int64", "n_edges": "int64",
    "max_steps": "Int64", "status": "object", "D_K": "float64", "D_K_fails": "float64",
    "D_K_passes": "float64", "h_star": "float64", "h_above": "float64", "h_below": "float64",
    "scale": "float64", "compression": "float64", "ratio": "float64", "narrow": "bool",
}  # fmt: skip

Heads = Sequence[int] | Literal["all"]


def points(best: pd.DataFrame, heads: Heads) -> pd.DataFrame:
    """One row per cell that a law can be fitted to, in the order of ``best``.

    A found cell's D_K* lies in (D_K_fails, D_K_passes], the two sides of its certificate: the
    failing and the passing D_K at h* heads. Fails at other head counts are left out, so that the
    interval does not depend on what was pruned. A censored cell's interval is open above.
    Cells that are open or inconsistent have no row: their D_K* may still fall.

    h* is one of the listed heads, so a real-valued optimum lies between the geometric means with
    its neighbours, (h_above, h_below]: open below at the fewest heads listed, where h is clipped,
    and open above at the most. Where all head counts are searched, it lies within 1/2 of h*.

    Args:
        best: the table of ``rgr_dist.analysis.thresholds.best_heads.best_of``.

    Returns:
        ``cell_id, m, d_model, degree, n_edges, max_steps, status, D_K, D_K_fails, D_K_passes,
        h_star, h_above, h_below``; ``scale``, m′ log₂ m / d_model; ``compression``, m′ / d_model;
        ``ratio``, D_K* / scale; ``narrow``, whether d_model = 16 and m > 64.
    """
    cells = best[best["status"].isin(["found", "censored"])]
    cells = cells[cells["D_K"].notna() | cells["D_K_low"].notna()].reset_index(drop=True)
    sizes = list(cells[["m", "d_model", "n_edges"]].itertuples(index=False, name=None))
    D_K, h_star, low = (cells[name].astype("float64") for name in ("D_K", "h_star", "D_K_low"))
    fails = h_star * cells["certificate"].map(_failing).astype("float64")
    between = [_between_heads(h, heads) for h in h_star]
    scale = np.array([capacity_scale(*size) for size in sizes], dtype=np.float64)
    cells = cells.assign(
        D_K_fails=fails.where(D_K.notna(), low - 1),
        D_K_passes=D_K.fillna(math.inf),
        h_above=[above for above, _ in between],
        h_below=[below for _, below in between],
        scale=scale,
        compression=[compression(*size) for size in sizes],
        ratio=D_K / scale,
        narrow=[is_narrow(m, d_model) for m, d_model, _ in sizes],
    )
    return cells[list(POINT_KINDS)].astype(POINT_KINDS)


def with_protocols(best: pd.DataFrame, study: Study) -> pd.DataFrame:
    """The rows with ``largest`` and ``protocol``, which say what cells a law pools.

    ``largest``: whether no cell that differs in the step limit alone has a larger one.
    ``protocol``: how model, contexts and training differ from those of most cells, such as
    ``learning_rate = 0.01``, the step limit aside; empty for most cells.
    """
    largest = {family[-1].cell_id for family in study.budgets.values()}
    names = best["cell_id"]
    return best.assign(largest=names.isin(largest), protocol=names.map(_protocols(study)))


def _protocols(study: Study) -> dict[str, str]:
    """How each cell's protocol differs from the most frequent one, or the first of several such.

    Cells that differ in the step limit alone count once.
    """
    own = {}
    for cell in study.cells:
        keys = study.keys_of(cell)
        own[cell.cell_id] = {
            key: value
            for key, value in keys.items()
            if key.startswith(("model", "context.", "training.")) and key != "training.max_steps"
        }
    families = {family[-1].cell_id: family for family in study.budgets.values()}
    ((most, _),) = Counter(tuple(own[cell_id].items()) for cell_id in families).most_common(1)
    usual = dict(most)
    return {
        cell_id: ", ".join(
            f"{key.split('.')[-1]} = {f'{value:g}' if isinstance(value, float) else value}"
            for key, value in keys.items()
            if value != usual.get(key, value)
        )
        for cell_id, keys in own.items()
    }


def _failing(certificate: Any) -> int:
    """The largest d_k known to fail at h* heads; 0 if nothing narrower was tried."""
    failed = (parse_certificate(certificate) or {}).get("fail")
    return int(failed["d_k"]) if failed else 0


def _between_heads(h: float, heads: Heads) -> tuple[float, float]:
    if math.isnan(h):
        return math.nan, math.nan
    if heads == "all":
        return (h - 0.5 if h > 1 else 0.0), h + 0.5
    listed = sorted({*heads, h})
    at = listed.index(h)
    below = math.sqrt(listed[at - 1] * h) if at else 0.0
    above = math.sqrt(listed[at + 1] * h) if at + 1 < len(listed) else math.inf
    return below, above


def log_ends(lower: Any, upper: Any) -> tuple[Array, Array]:
    """The ends of intervals as logarithms; -∞ at 0."""
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(lower, dtype=np.float64)), np.log(
            np.asarray(upper, dtype=np.float64)
        )
