"""The cells of a study as the fits see them: one interval of D_K and of h for each."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from rgr_dist.analysis.records import integer, parse_certificate, real
from rgr_dist.paper import capacity_scale, compression, is_narrow
from rgr_dist.study.cell import Cell
from rgr_dist.study.search import Search
from rgr_dist.study.study import Study

Array = npt.NDArray[np.float64]

POINT_KINDS = {
    "cell_id": "object", "m": "int64", "d_model": "int64", "degree": "int64", "n_edges": "int64",
    "max_steps": "Int64", "status": "object", "D_K": "float64", "D_K_fails": "float64",
    "D_K_passes": "float64", "h_star": "float64", "h_above": "float64", "h_below": "float64",
    "scale": "float64", "compression": "float64", "ratio": "float64", "narrow": "bool",
}  # fmt: skip

Heads = Sequence[int] | Literal["all"]


USUAL_HEADS = Search().heads
"""The paper's head counts."""


def points(best: pd.DataFrame, heads: Heads = USUAL_HEADS) -> pd.DataFrame:
    """One row per cell that a law can be fitted to, in the order of ``best``.

    A found cell's D_K* lies in (D_K_fails, D_K_passes], the two sides of its certificate: the
    failing and the passing D_K at h* heads. What other heads are known to fail at is left out, so
    that the interval does not depend on what was pruned. A censored cell's interval is open above.
    Cells that are open or inconsistent have no row: their D_K* may still fall.

    h* is one of the listed heads, so a real-valued optimum lies between the geometric means with
    its neighbours, (h_above, h_below]: open below at the fewest heads listed, where h is clipped,
    and open above at the most.

    Args:
        best: the table of ``rgr_dist.analysis.thresholds.best.best``; ``certificate``, ``cell_id``
            and ``max_steps`` may be missing.

    Returns:
        ``cell_id, m, d_model, degree, n_edges, max_steps, status, D_K, D_K_fails, D_K_passes,
        h_star, h_above, h_below``; ``scale``, m′ log₂ m / d_model; ``compression``, m′ / d_model;
        ``ratio``, D_K* / scale; ``narrow``, whether d_model = 16 and m > 64.
    """
    rows = []
    for row in best.astype("object").to_dict("records"):
        status = row["status"]
        if status not in ("found", "censored"):
            continue
        D_K, h = real(row["D_K"]), real(row["h_star"])
        if status == "found" and (D_K is None or h is None or D_K <= 0):
            continue
        low = integer(row.get("D_K_low"))
        if status == "censored" and low is None:
            continue
        sizes = (int(row["m"]), int(row["d_model"]), int(row["n_edges"]))
        scale = capacity_scale(*sizes)
        point: dict[str, Any] = {
            "cell_id": str(row.get("cell_id", "")),
            "m": sizes[0],
            "d_model": sizes[1],
            "degree": int(row["degree"]),
            "n_edges": sizes[2],
            "max_steps": integer(row.get("max_steps")),
            "status": status,
            "scale": scale,
            "compression": compression(*sizes),
            "narrow": is_narrow(sizes[0], sizes[1]),
        }
        if D_K is None or h is None:
            point |= {"D_K_fails": float((low or 1) - 1), "D_K_passes": math.inf}
        else:
            h = max(1.0, h)
            ends = _between_heads(h, heads)
            point |= {"D_K": D_K, "h_star": h, "ratio": D_K / scale if scale else None}
            point |= {"D_K_fails": _failing(row, D_K, h), "D_K_passes": float(D_K)}
            point |= {"h_above": ends[0], "h_below": ends[1]}
        rows.append(point)
    frame = pd.DataFrame(rows, columns=list(POINT_KINDS), dtype="object")
    return frame.astype({name: kind for name, kind in POINT_KINDS.items() if kind != "object"})


def with_budgets(best: pd.DataFrame, study: Study) -> pd.DataFrame:
    """The rows with their ``max_steps``, ``problem`` and ``protocol``.

    ``problem`` is the same for cells that differ in the step limit alone. ``protocol`` says in what
    contexts and training differ from those of most cells, ``learning_rate = 0.01``, the step limit
    aside; empty for most cells.
    """
    limits = {cell.cell_id: cell.training.max_steps for cell in study.cells}
    asked = {cell.cell_id: _without_limit(cell) for cell in study.cells}
    names = best["cell_id"]
    return best.assign(
        max_steps=names.map(limits).astype("Int64"),
        problem=names.map(asked),
        protocol=names.map(_protocols(study)),
    )


def _protocols(study: Study) -> dict[str, str]:
    """In what each cell's protocol differs from that of most, or of the first of equally many."""
    own = {}
    for cell in study.cells:
        keys = study.keys_of(cell)
        own[cell.cell_id] = {
            key: value
            for key, value in keys.items()
            if key.startswith(("context.", "training.")) and key != "training.max_steps"
        }
    ((usual, _),) = Counter(tuple(keys.items()) for keys in own.values()).most_common(1)
    return {
        cell_id: ", ".join(
            f"{key.partition('.')[2]} = {f'{value:g}' if isinstance(value, float) else value}"
            for key, value in keys.items()
            if value != dict(usual)[key]
        )
        for cell_id, keys in own.items()
    }


def _without_limit(cell: Cell) -> str:
    training = cell.training.model_copy(update={"max_steps": 1})
    return cell.model_copy(update={"training": training}).cell_id


def budgets(best: pd.DataFrame) -> list[int]:
    """The step limits, in order, if some problem was searched under several; else none."""
    if "max_steps" not in best or not best.duplicated(_problem(best)).any():
        return []
    several = best.groupby(_problem(best), dropna=False)["max_steps"].nunique()
    return sorted({int(steps) for steps in best["max_steps"].dropna()}) if several.max() > 1 else []


def of_largest_budget(best: pd.DataFrame) -> pd.DataFrame:
    """Each problem's rows at its largest step limit."""
    if not budgets(best):
        return best
    largest = best.groupby(_problem(best), dropna=False)["max_steps"].transform("max")
    return best[best["max_steps"] == largest]


def of_usual_protocol(best: pd.DataFrame) -> pd.DataFrame:
    """The rows of the protocol that most cells have; all where it is not known."""
    return best[best["protocol"] == ""] if "protocol" in best else best


def other_protocols(best: pd.DataFrame) -> list[str]:
    """The other protocols, by what differs, in the order of the rows."""
    names = list(dict.fromkeys(best["protocol"])) if "protocol" in best else []
    return [name for name in names if name]


def _problem(best: pd.DataFrame) -> list[str]:
    """The columns that say which cells are one problem under several step limits."""
    if "problem" in best:
        return ["problem"]
    names = ("model", "graph", "m", "d_model", "degree", "n_edges")
    return [name for name in names if name in best]


def _failing(row: dict[Any, Any], D_K: float, h: float) -> float:
    """The largest D_K known to fail at h heads; 0 if nothing narrower was tried."""
    certificate = parse_certificate(row.get("certificate"))
    if certificate is None:
        return max(0.0, D_K - h)
    failed = certificate.get("fail")
    return h * int(failed["d_k"]) if failed else 0.0


def _between_heads(h: float, heads: Heads) -> tuple[float, float]:
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
