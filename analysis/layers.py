"""What each of several layers needs to hold a graph: numbers cached for each token, parameters.

A key costs more in one layer than in another, so D_K alone does not compare them. Each layer counts
with its cheapest threshold over all head counts and learning rates, found separately for what is
cached and for what is trained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.analysis.tables import thresholds, with_kinds
from rgr_dist.planning.budgets import records
from rgr_dist.study.cell import Cell
from rgr_dist.study.study import Study

PAID = ("cached", "parameters")

Row = dict[str, Any]
Prices = Mapping[tuple[str, int, int], tuple[float, float]]
"""cached and parameters of a layer, by cell_id, h and d_k."""


def compares_layers(study: Study) -> bool:
    """Whether a study searches the thresholds of several layers."""
    trained = {cell.model_name for cell in study.cells if cell.record.task != "construction"}
    return study.search.mode == "threshold" and len(trained) > 1


@per_study
def costs(results: StudyResults) -> pd.DataFrame:
    """The cheapest threshold of each layer in each size and step limit, in the study's order.

    Returns:
        ``graph, m, d_model, degree, n_edges``; ``setting``, what tells problems of one size apart,
        as in ``length=64``; ``model, max_steps``; ``status``, ``open`` while any head count is, or
        ``censored`` if none passes; ``cached`` and ``parameters``, the least of each, with
        ``_low, _high``, its ends if the threshold lies anywhere in its interval, null where no run
        had that width, and ``_h, _d_k``, where it lies; ``learning_rate``, of the cheapest in
        ``cached``, or in parameters; ``per_cached``, m′ / cached. ``cached`` is null for a layer
        that does not say what it caches.
    """
    study, table = results.study, thresholds(results)
    prices = _prices(results)
    groups: dict[tuple[Cell, str, int], list[Cell]] = {}
    for cell in study.cells:
        problem = _without_layer(cell, study)
        groups.setdefault((problem, cell.model_name, cell.training.max_steps), []).append(cell)
    problems = tuple(dict.fromkeys(problem for problem, *_ in groups))
    apart = Study(name=study.name, cells=problems, search=study.search, files=study.files)
    rows = []
    for (problem, model, max_steps), cells in groups.items():
        rates = {cell.cell_id: cell.training.learning_rate for cell in cells}
        own = records(table[table["cell_id"].isin(rates)])
        row: Row = {"graph": problem.graph.family, "m": problem.m, "d_model": problem.d_model}
        row |= {"degree": problem.graph.degree, "n_edges": problem.n_edges, "model": model}
        row |= {"setting": apart.differences[problem.cell_id], "max_steps": max_steps}
        row["status"] = _status({threshold["status"] for threshold in own})
        for place, paid in reversed([*enumerate(PAID)]):
            row |= _cheapest(own, prices, paid, place, rates)
        if row.get("cached"):
            row["per_cached"] = problem.n_edges / row["cached"]
        rows.append(row)
    columns = ["graph", "m", "d_model", "degree", "n_edges", "setting", "model", "max_steps"]
    columns += ["status", *(f"{paid}{end}" for paid in PAID for end in ("", *ENDS))]
    table = pd.DataFrame(rows, columns=[*columns, "learning_rate", "per_cached"])
    return with_kinds(table, ("learning_rate", "per_cached"))


ENDS = ("_low", "_high", "_h", "_d_k")


def _status(statuses: set[str]) -> str:
    if not statuses or "open" in statuses:
        return "open"
    return "found" if "found" in statuses else "censored"


def _cheapest(
    own: Sequence[Row], prices: Prices, paid: str, place: int, rates: Mapping[str, float | None]
) -> Row:
    """The columns about the least cost of some thresholds."""

    def price(threshold: Row, width: str) -> float | None:
        total, h = threshold[width], int(threshold["h"])
        if total is None:
            return None
        found = prices.get((threshold["cell_id"], h, -(-total // h)))
        return None if found is None or pd.isna(found[place]) else found[place]

    costed = [(cost, one) for one in own if (cost := price(one, "D_K")) is not None]
    if not costed:
        return {}
    cost, star = min(costed, key=lambda pair: (pair[0], pair[1]["h"]))
    return {
        paid: cost,
        f"{paid}_low": price(star, "D_K_low"),
        f"{paid}_high": price(star, "D_K_high"),
        f"{paid}_h": star["h"],
        f"{paid}_d_k": star["d_k"],
        "learning_rate": rates[star["cell_id"]],
    }


def _prices(results: StudyResults) -> Prices:
    """What each layer costs at the widths that ran; a formula has it for the paper's own."""
    papers = {cell.cell_id: cell.d_model for cell in results.study.cells if cell.layer is None}
    runs = results.runs.drop_duplicates(["cell_id", "h", "d_k"])
    sizes = runs[["cell_id", "h", "d_k", "cached", "parameters"]].itertuples(index=False)
    return {
        (cell_id, h, d_k): (h * d_k, 2 * papers[cell_id] * h * d_k)
        if cell_id in papers
        else (cached, parameters)
        for cell_id, h, d_k, cached, parameters in sizes
    }


def _without_layer(cell: Cell, study: Study) -> Cell:
    """The cell with the first layer, learning rate and step limit of the study for its own."""
    first = study.cells[0]
    shared = {"learning_rate": first.training.learning_rate, "max_steps": first.training.max_steps}
    training = cell.training.model_copy(update=shared)
    update = {"model": first.model, "layer": first.layer, "training": training}
    return cell.model_copy(update=update)
