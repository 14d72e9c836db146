"""What each of several layers needs to hold a graph: numbers cached for each token, and parameters.

A key costs more in one layer than in another, so D_K alone does not compare them. Each layer counts
with its cheapest threshold over all head counts and learning rates, found separately for what is
cached and for what is trained.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.analysis.records import bits_of_graph, integer
from rgr_dist.analysis.rows import rows_of
from rgr_dist.analysis.thresholds.rows import thresholds_of
from rgr_dist.paper import compression
from rgr_dist.study.cell import Cell
from rgr_dist.study.study import Study

Paid = Literal["cached", "parameters"]
PAID: tuple[Paid, Paid] = ("cached", "parameters")
OF_COST = ("", "_low", "_high", "_h", "_d_k", "_learning_rate")
"""Endings, after ``cached`` or ``parameters``, of the columns about the cheapest threshold."""

SIZES = ("m", "d_model", "degree", "n_edges")

Row = dict[str, Any]


def compares_layers(study: Study) -> bool:
    """Whether a study searches the thresholds of several layers."""
    return study.search.mode == "threshold" and len({cell.model_name for cell in study.cells}) > 1


class Arm(NamedTuple):
    """The threshold of a layer at one head count and learning rate, and what it costs.

    Attributes:
        cost: null where no threshold is known.
        low, high: the costs at the ends of the threshold's interval, null if not known; where no
            threshold is known, low is the least cost that is not excluded.
    """

    cell: Cell
    h: int
    d_k: int | None
    status: str
    cost: int | None
    low: int | None
    high: int | None


@per_study
def costs_of(results: StudyResults) -> pd.DataFrame:
    """The cheapest threshold of each layer in each size and step limit, in the study's order.

    Returns:
        ``graph, m, d_model, degree, n_edges, compression, model, max_steps, status``. If a size has
        several settings, ``setting`` before compression tells them apart, as in ``length=64``: they
        are different problems, whose thresholds are not mixed. ``cached`` and ``parameters`` are
        the least costs; each has ``_low`` and ``_high``, its ends if every threshold lies in its
        interval (the least of the arms' ends, null if not known), and ``_h``, ``_d_k`` and
        ``_learning_rate`` of the threshold that has it. ``per_cached`` is relations held for each
        cached number, m′ / cached; ``bits`` is bits of the graph for each parameter. cached is null
        for a layer that does not say what it caches. status is ``open`` while any threshold is;
        ``inconsistent`` where one is that might be cheaper; ``pruned`` where a head count of larger
        D_K, not searched to its end, might be cheaper; else ``found``, or ``censored`` if none is.
    """
    groups: dict[tuple[Cell, str, int], list[Cell]] = {}
    for cell in results.study.cells:
        key = _without_layer(cell, results.study), cell.model_name, cell.training.max_steps
        groups.setdefault(key, []).append(cell)
    settings = _settings([problem for problem, *_ in groups], results.study)
    stored = {(row["cell_id"], row["h"]): row for row in rows_of(thresholds_of(results))}
    prices = _prices(results)
    rows = []
    for (of, model, max_steps), cells in groups.items():
        row: Row = {"graph": of.graph.family, "m": of.m, "d_model": of.d_model}
        row |= {"degree": of.graph.degree, "n_edges": of.n_edges, "setting": settings[of.cell_id]}
        row |= {"compression": compression(row["m"], row["d_model"], row["n_edges"])}
        row |= {"model": model, "max_steps": max_steps}
        arms = {paid: list(_arms(cells, stored, prices, paid)) for paid in PAID}
        for paid in PAID:
            row |= _cheapest(arms[paid], paid)
        row["status"] = _status(arms["parameters" if row["cached"] is None else "cached"])
        row["per_cached"] = row["n_edges"] / row["cached"] if row["cached"] else None
        row["bits"] = bits_of_graph(row) / row["parameters"] if row["parameters"] else None
        rows.append(row)
    whole = [f"{paid}{end}" for paid in PAID for end in OF_COST[:-1]]
    kinds: dict[str, Any] = {"graph": "object", **dict.fromkeys(SIZES, "Int64")}
    kinds |= {"setting": "object"} if any(settings.values()) else {}
    kinds |= {"compression": "float64", "model": "object", "max_steps": "Int64"}
    kinds |= {"status": "object"}
    kinds |= dict.fromkeys(whole, "Int64")
    kinds |= {f"{paid}_learning_rate": "float64" for paid in PAID}
    kinds |= {"per_cached": "float64", "bits": "float64"}
    return pd.DataFrame(rows, columns=list(kinds), dtype="object").astype(kinds)


def _without_layer(cell: Cell, study: Study) -> Cell:
    """The cell with the study's first layer, learning rate and step limit in place of its own."""
    first = study.cells[0]
    shared = {"learning_rate": first.training.learning_rate, "max_steps": first.training.max_steps}
    training = cell.training.model_copy(update=shared)
    own = {"model": first.model, "layer": first.layer, "training": training}
    return cell.model_copy(update=own)


def _settings(cells: Sequence[Cell], study: Study) -> dict[str, str]:
    """What tells each cell from others of its size, ``length=64`` or its file, by cell_id."""
    apart = Study(
        name=study.name, cells=tuple(dict.fromkeys(cells)), search=study.search, files=study.files
    )
    return apart.differences


Prices = Mapping[tuple[str, int, int], pd.DataFrame]
"""By layer, d_model and h: what each d_k that was tried costs."""


def _prices(results: StudyResults) -> Prices:
    """What layers from files cost, as stored with their runs; a formula has it for the paper's."""
    tried: dict[tuple[str, int, int], pd.DataFrame] = {}
    own = results.runs[results.runs["parameters"].notna()]
    for cell in results.study.cells:
        for h, runs in own[own["cell_id"] == cell.cell_id].groupby("h"):
            key = cell.model_name, cell.d_model, int(str(h))
            tried[key] = pd.concat([tried.get(key), runs[["d_k", *PAID]].astype("float64")])
    return {key: of.drop_duplicates("d_k", ignore_index=True) for key, of in tried.items()}


def _cost(cell: Cell, h: int, d_k: int, prices: Prices, paid: Paid) -> int | None:
    """What a layer costs at some width; one from a file by a parabola through the nearest tried.

    That is exact where the cost is a sum of terms in d_k², in d_k and without d_k.
    """
    if cell.layer is None:
        return h * d_k * (1 if paid == "cached" else 2 * cell.d_model)
    tried = prices.get((cell.model_name, cell.d_model, h))
    if tried is None or tried[paid].isna().any():
        return None
    nearest = tried.loc[(tried["d_k"] - d_k).abs().sort_values(kind="stable").index[:3]]
    if len(nearest) == 1:
        return round(float(nearest[paid].iloc[0]) * d_k / float(nearest["d_k"].iloc[0]))
    through = np.polyfit(nearest["d_k"], nearest[paid], len(nearest) - 1)
    return round(float(np.polyval(through, d_k)))


def _arms(
    cells: list[Cell], stored: Mapping[tuple[str, int], Row], prices: Prices, paid: Paid
) -> Iterator[Arm]:
    """Every threshold of a layer in one size and step limit."""
    ids = {cell.cell_id: cell for cell in cells}
    for (cell_id, h), row in stored.items():
        if cell_id not in ids:
            continue
        cell = ids[cell_id]
        ends = [integer(row[name]) for name in ("D_K", "D_K_low", "D_K_high")]
        cost, low, high = (
            None if D_K is None else _cost(cell, h, -(-D_K // h), prices, paid) for D_K in ends
        )
        d_k = None if row["d_k"] is None else int(row["d_k"])
        yield Arm(cell, h, d_k, row["status"], cost, low, high)


def _cheapest(arms: list[Arm], paid: Paid) -> Row:
    """The columns about the least cost and its arm."""
    found = [arm for arm in arms if arm.cost is not None]
    lows, highs = (
        [end for end in ends if end is not None]
        for ends in ([arm.low for arm in arms], [arm.high for arm in found])
    )
    row: Row = dict.fromkeys(f"{paid}{end}" for end in OF_COST)
    row[f"{paid}_low"] = min(lows, default=None) if len(lows) == len(arms) else None
    if found:
        best = min(found, key=lambda arm: (arm.cost, arm.h))
        row |= {
            paid: best.cost,
            f"{paid}_high": min(highs, default=None),
            f"{paid}_h": best.h,
            f"{paid}_d_k": best.d_k,
            f"{paid}_learning_rate": best.cell.training.learning_rate,
        }
    return row


def _status(arms: list[Arm]) -> str:
    """Whether the least cost is final."""
    found = [arm.cost for arm in arms if arm.cost is not None]
    statuses = {arm.status for arm in arms}
    if not arms or "open" in statuses:
        return "open"
    doubtful = [arm.low for arm in arms if arm.status == "inconsistent"]
    if doubtful and (not found or any(low is None or low < min(found) for low in doubtful)):
        return "inconsistent"
    pruned = [arm.low or 0 for arm in arms if arm.status == "pruned" and arm.cell.layer is not None]
    if found and any(low < min(found) for low in pruned):  # pruned by D_K, which is not the cost
        return "pruned"
    return "found" if "found" in statuses else "censored"


@per_study
def order_of(results: StudyResults) -> pd.DataFrame:
    """``order`` of a study's layers."""
    return order(costs_of(results))


def order(costs: pd.DataFrame) -> pd.DataFrame:
    """The layers ranked by relations per cached number, by setting, compression and step limit.

    Args:
        costs: of ``costs_of``.

    Returns:
        ``setting`` if the costs have it; ``compression, max_steps, model``; ``n``, the number of
        sizes of that compression, each within its largest limit up to max_steps; ``per_cached, low,
        high``, geometric means over these, low and high from the ends of the costs' intervals;
        ``bits, bits_low, bits_high``, the same for bits of the graph per parameter;
        ``inconsistent``, the number of sizes where a width passes below one that fails; ``rank``
        from 1; ``beside_best``, whether the layer's interval reaches that of the first. A layer
        without a threshold in one of the sizes has no numbers and no rank.
    """
    rows: list[Row] = []
    kinds: dict[str, Any] = {"setting": "object"} if "setting" in costs else {}
    kinds |= {"compression": "float64"}
    apart = list(kinds)
    ways = [
        (dict(zip(apart, key, strict=True)), own, int(max_steps))
        for key, own in costs.groupby(apart)
        for max_steps in sorted(set(own["max_steps"]))
    ]
    for way, own, max_steps in ways:
        group = at_largest(own[own["max_steps"] <= max_steps])
        here: list[Row] = [
            {**way, "max_steps": max_steps, "model": model, **_means(of)}
            for model, of in group.groupby("model", sort=False)
        ]
        here.sort(key=lambda row: -(row["per_cached"] or 0))
        ranked = [row for row in here if row["per_cached"] is not None]
        for rank, row in enumerate(ranked, start=1):
            row["rank"] = rank
            row["beside_best"] = (row["high"] or math.inf) >= (ranked[0]["low"] or 0)
        rows += here
    told = ("per_cached", "low", "high", "bits", "bits_low", "bits_high")
    kinds |= {"max_steps": "int64", "model": "object", "n": "int64"}
    kinds |= dict.fromkeys(told, "float64")
    kinds |= {"inconsistent": "int64", "rank": "Int64", "beside_best": "boolean"}
    return pd.DataFrame(rows, columns=list(kinds), dtype="object").astype(kinds)


def at_largest(costs: pd.DataFrame) -> pd.DataFrame:
    """The row of the largest step limit, for each layer in each size."""
    size = [name for name in ("graph", *SIZES, "setting", "model") if name in costs]
    return costs[costs["max_steps"] == costs.groupby(size)["max_steps"].transform("max")]


def _means(of: pd.DataFrame) -> Row:
    """Geometric means over the sizes of one compression, if all of them have a threshold."""
    edges, bits = of["n_edges"].astype("float64"), of["bits"] * of["parameters"]
    told = {"per_cached": of["per_cached"], "bits": of["bits"]}
    told |= {"low": edges / of["cached_high"], "high": edges / of["cached_low"]}
    told |= {"bits_low": bits / of["parameters_high"], "bits_high": bits / of["parameters_low"]}
    known = of["cached"].notna().all()
    means = {
        name: float(np.exp(np.log(values.astype("float64")).mean()))
        if known and values.notna().all()
        else None
        for name, values in told.items()
    }
    return {"n": len(of), "inconsistent": int((of["status"] == "inconsistent").sum()), **means}
