"""How D_K* grows with the sizes: the cells that laws are fitted to, their laws, predictions.

Cells of different protocols are never pooled, nor are step limits: each has laws of its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from rgr_dist.analysis.laws import PAPERS, POWER, Law, fit, is_fittable, leave_out, predict, ranked
from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.analysis.noise import noise
from rgr_dist.analysis.tables import best, with_kinds
from rgr_dist.analysis.wording import three_digits, with_limits
from rgr_dist.paper import LAWS as PUBLISHED
from rgr_dist.paper import capacity_scale
from rgr_dist.planning.budgets import records

LEAST_CELLS = 10
"""With fewer, AICc's penalty alone would choose the law, so none is called better than another."""

ALIKE = 6.0
"""Laws whose AICc lies this close to the least are not told apart (Richards, Ecology 86, 2005)."""

LAW = (
    *("formula", "protocol", "max_steps", "n_cells", "parameters", "low", "high"),
    *("scatter", "noise", "aicc", "loo"),
)


@per_study
def cells(results: StudyResults) -> pd.DataFrame:
    """The cells that say something about D_K*, found or censored, in the study's order.

    Returns:
        ``cell_id, cell, protocol, max_steps, largest, m, d_model, degree, n_edges, D_K``;
        ``D_K_fails, D_K_passes``, between which D_K* lies at h* heads: 0 if nothing fails,
        infinite if nothing passes; ``h_star, scale, compression``; ``ratio``, D_K / scale;
        ``noise``, the standard deviation of log D_K* that seeds and whole numbers explain.
    """
    table = best(results)
    table = table[table["status"].isin(["found", "censored"])]
    table = table[table["D_K"].notna() | table["D_K_low"].notna()]
    is_found = table["D_K"].notna()
    table = table.assign(
        D_K_fails=table["D_K_fails"].where(is_found, table["D_K_low"] - 1),
        D_K_passes=table["D_K"].astype("Float64").fillna(math.inf),
        ratio=table["D_K"] / table["scale"],
        noise=table["cell_id"].map(noise(results)),
    )
    columns = ["cell_id", "cell", "protocol", "max_steps", "largest", "m", "d_model", "degree"]
    columns += ["n_edges", "D_K", "D_K_fails", "D_K_passes", "h_star", "scale", "compression"]
    table = table[[*columns, "ratio", "noise"]].reset_index(drop=True)
    return with_kinds(table, ("D_K_passes", "scale", "compression", "ratio", "noise"))


def main_cells(results: StudyResults) -> pd.DataFrame:
    """The cells that figures and findings use: of the usual protocol, at the largest step limit."""
    table = cells(results)
    return table[table["largest"] & (table["protocol"] == "")]


@dataclass(frozen=True)
class Group:
    """Cells that share a protocol, and their laws.

    Attributes:
        max_steps: their step limit; None if each stands at its largest.
        laws: the best first where ``is_ranked``; else the paper's form, then its free power.
    """

    protocol: str
    max_steps: int | None
    cells: pd.DataFrame
    laws: list[Law]

    @property
    def is_ranked(self) -> bool:
        """Whether there are cells enough to call one law better than another."""
        return len(self.cells) >= LEAST_CELLS

    @property
    def noise(self) -> float | None:
        """Root mean square of the cells' noise; None if it is not known."""
        known = self.cells["noise"].dropna().to_numpy(float)
        return math.sqrt(float((known**2).mean())) if len(known) else None

    @property
    def alike(self) -> list[Law]:
        """The laws not told from the best, with no more unknowns; unranked, the paper's form."""
        if not self.is_ranked:
            return self.laws[:1]
        best = self.laws[0]
        few = [law for law in self.laws if len(law.theta) <= len(best.theta)]
        return [law for law in few if law.aicc <= best.aicc + ALIKE]


@per_study
def groups(results: StudyResults) -> list[Group]:
    """The laws of each protocol, the usual one first: at the largest step limits, then at each."""
    return [
        Group(protocol, max_steps, own, _fitted(own))
        for protocol, max_steps, own in _pooled(cells(results))
    ]


def _pooled(table: pd.DataFrame) -> Iterator[tuple[str, int | None, pd.DataFrame]]:
    for protocol, own in sorted(table.groupby("protocol"), key=lambda group: str(group[0])):
        yield str(protocol), None, own[own["largest"]]
        limits = set() if own["largest"].all() else {*own["max_steps"]}
        for max_steps in sorted(limits):
            yield str(protocol), int(max_steps), own[own["max_steps"] == max_steps]


def _fitted(own: pd.DataFrame) -> list[Law]:
    if len(own) >= LEAST_CELLS:
        return ranked(own)
    both = own["D_K"].notna() & (own["D_K_fails"] > 0)
    forms = (PAPERS, POWER) if both.sum() > 2 else ()
    return [fit(formula, own) for formula in forms if is_fittable(formula, own)]


@per_study
def laws(results: StudyResults) -> pd.DataFrame:
    """Every law of every group, the best first where there are cells enough.

    Returns:
        ``formula, protocol, max_steps`` (null: each cell at its largest), ``n_cells``;
        ``parameters, low, high``, by the letters of the formula, with 95 % limits; ``scatter`` of
        log D_K* about the law, beside the ``noise`` that seeds and whole numbers explain; ``aicc``
        and ``loo``, the root mean square of log(D_K* / prediction from the other cells), null with
        fewer than ``LEAST_CELLS`` cells.
    """
    rows = []
    for group in groups(results):
        for law in group.laws:
            row: dict[str, Any] = {
                "formula": law.formula,
                "protocol": group.protocol,
                "max_steps": group.max_steps,
                "n_cells": law.n,
                "parameters": law.by_name(law.theta),
                "low": law.by_name(law.low),
                "high": law.by_name(law.high),
                "scatter": law.scatter,
                "noise": group.noise,
            }
            if group.is_ranked:
                loo = leave_out(law, group.cells)
                row |= {"aicc": law.aicc, "loo": loo}
            rows.append(row)
    return with_kinds(pd.DataFrame(rows, columns=[*LAW]), ("scatter", "noise", "aicc", "loo"))


@dataclass(frozen=True)
class Line:
    """D_K* = slope · m′ log₂ m / d_model as the paper fits it, with the slope's 95 % t-interval."""

    slope: float
    low: float
    high: float
    r2: float
    n: int


def papers_line(own: pd.DataFrame) -> Line | None:
    """Least squares through the origin over the cells found (Sec. 6.1); None with fewer than two.

    Args:
        own: of ``cells``; R² is uncentred, as the paper's must be to have the values it prints.
    """
    found = own[own["D_K"].notna()]
    x, y = found["scale"].to_numpy(float), found["D_K"].to_numpy(float)
    n = len(x)
    if n < 2:
        return None
    slope = float(x @ y / (x @ x))
    error = float(((y - slope * x) ** 2).sum())
    half = float(stdtrit(n - 1, 0.975)) * math.sqrt(error / (n - 1) / float(x @ x))
    return Line(slope, slope - half, slope + half, 1 - error / float(y @ y), n)


def predictions(results: StudyResults, at: pd.DataFrame) -> pd.DataFrame:
    """D_K*, h and d_k at other sizes: by each law that is not told from the best, and the paper's.

    h is that of the measured cell next in compression m′/d_model among those that are no easier,
    in it and in m′ ln m / d_model², so that no head count is advised that is proved too small for
    less; h and d_k are null beyond such cells, and in the paper's row.

    Args:
        at: ``m, d_model, n_edges``.

    Returns:
        ``m, d_model, n_edges, formula, D_K, D_K_low, D_K_high, h, d_k``; ``inside``, whether the
        sizes lie within those of the cells. Empty if there is no law.
    """
    group = next((one for one in groups(results) if one.protocol == ""), None)
    rows: list[dict[str, Any]] = []
    for law in group.alike if group else []:
        assert group is not None
        formula = with_numbers(law)
        for size, *ends in zip(records(at), *predict(law, group.cells, at), strict=True):
            D_K, low, high = (max(1, math.ceil(min(end, 1e15) - 1e-9)) for end in ends)
            h, inside = _heads(group.cells, size), _is_inside(group.cells, size)
            row = {**size, "formula": formula, "D_K": D_K, "D_K_low": low, "D_K_high": high}
            rows.append(row | {"h": h, "d_k": h and -(-D_K // h), "inside": inside})
    if rows:
        slope = PUBLISHED["D_K"].slope
        for size in records(at):
            D_K = math.ceil(slope * capacity_scale(size["m"], size["d_model"], size["n_edges"]))
            formula = f"the paper's {slope:g} · m′ log₂ m / d_model"
            rows.append({**size, "formula": formula, "D_K": D_K})
    columns = ["m", "d_model", "n_edges", "formula", "D_K", "D_K_low", "D_K_high", "h", "d_k"]
    return with_kinds(pd.DataFrame(rows, columns=[*columns, "inside"]))


def _difficulty(m: Any, edges: Any, d_model: Any) -> tuple[Any, Any]:
    """m′/d_model and m′ ln m / d_model², both of which make a cell harder for few heads."""
    return edges / d_model, edges * np.log(m) / d_model**2


def _heads(own: pd.DataFrame, size: dict[str, Any]) -> int | None:
    found = own[own["h_star"].notna()]
    sizes = (found[name].to_numpy(float) for name in ("m", "n_edges", "d_model"))
    compression, load = _difficulty(*sizes)
    least, least_load = _difficulty(size["m"], size["n_edges"], size["d_model"])
    harder = (compression >= least * (1 - 1e-9)) & (load >= least_load * (1 - 1e-9))
    if not harder.any():
        return None
    nearest = np.lexsort((load, np.where(harder, compression, np.inf)))[0]
    return int(found["h_star"].iloc[nearest])


def _is_inside(own: pd.DataFrame, size: dict[str, Any]) -> bool:
    load = own["n_edges"] / own["d_model"]
    asked = {"m": own["m"], "d_model": own["d_model"]}
    return all(known.min() <= size[name] <= known.max() for name, known in asked.items()) and bool(
        load.min() <= size["n_edges"] / size["d_model"] <= load.max()
    )


def with_numbers(law: Law, limits: str = "") -> str:
    """A law's formula with its numbers: ``0.542 · m′ log₂ m / d_model``.

    Args:
        limits: the unknown that its 95 % limits follow: ``0.542 [0.456–0.643] · …``.
    """
    told, low, high = map(law.by_name, (law.theta, law.low, law.high))
    for_each = {name: three_digits(value) for name, value in told.items()}
    if limits:
        value = told[limits]
        assert value is not None
        for_each[limits] = with_limits(value, low[limits], high[limits])
    return re.sub(r"\b[cakb]\b", lambda unknown: for_each[unknown[0]], law.formula)
