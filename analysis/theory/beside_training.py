"""What counting requires, what training reaches and what constructions need, side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.analysis.page.section import Row
from rgr_dist.analysis.records import bits_of_graph, graph_bits_per_parameter
from rgr_dist.analysis.rows import rows_of
from rgr_dist.analysis.theory.constructions import (
    Width,
    constructed_widths,
    construction_runs,
    rates_of_algorithm_1,
)
from rgr_dist.analysis.theory.figure import BITS
from rgr_dist.analysis.theory.weight_precision import rounded_thresholds
from rgr_dist.analysis.thresholds.best_heads import best_of
from rgr_dist.study.study import Study
from rgr_dist.theory.bounds import counting_bound

LEAST_CELLS = 3
"""Fewest cells for which a family is drawn or a gap's growth is fitted."""
GAPS = {
    "trained_over_bound": "trained over the bound at 1 bit per parameter",
    "constructed_over_trained": "constructed over trained",
    "trivial_over_trained": "trivial over trained",
}
UNIT_ROWS = ("gaussian", "onehot")
"""Embeddings for which a head of width 1 for each edge is exact (``template.trivial_layer``)."""
WHOLE = ("trained", "trained_low", "trained_high", "h_star", "constructed", "constructed_h",
         "constructed_draws", "trivial")  # fmt: skip


@dataclass(frozen=True)
class Theory:
    """Tables that compare theory with training.

    Attributes:
        curves: of ``curves_table``, a row for each cell.
        rates: of ``rgr_dist.analysis.theory.constructions.rates_of_algorithm_1``.
        rounded: of ``rgr_dist.analysis.theory.weight_precision.rounded_thresholds``.
    """

    curves: pd.DataFrame
    rates: pd.DataFrame
    rounded: pd.DataFrame


@per_study
def theory(results: StudyResults) -> Theory | None:
    """The tables of a threshold study of model max; None if its store has nothing to compare."""
    study, store = results.study, results.store
    is_searched = study.cells[0].model == "max" and study.search.mode == "threshold"
    if store is None or not is_searched:
        return None
    best, runs = best_of(results), construction_runs(store)
    widths = constructed_widths(store, runs)
    rounded = rounded_thresholds(store, study, best)
    if rounded.empty and not any(cell.problem_json in widths for cell in study.cells):
        return None
    return Theory(curves_table(best, study, widths), rates_of_algorithm_1(study, runs), rounded)


def curves_table(best: pd.DataFrame, study: Study, widths: Mapping[str, Width]) -> pd.DataFrame:
    """A row for each cell: its widths, the bounds of ``BITS``, and the gaps as factors.

    Of cells that differ only in their step limit, the one with the largest is taken.

    Args:
        best: the table of ``rgr_dist.analysis.thresholds.best_heads.best_of``.
        widths: the constructed ones, by ``Cell.problem_json``.

    Returns:
        ``cell_id, m, d_model, degree, compression, trained, trained_low, trained_high, h_star,
        status, bits_per_parameter, constructed, constructed_h, constructed_draws, trivial``,
        ``bound_B`` for each B of ``BITS``, and the gaps of ``GAPS``. Unknown values are null.
    """
    cells = {family[-1].cell_id: family[-1] for family in study.budgets.values()}
    rows = []
    for row in rows_of(best[best["cell_id"].isin(cells)]):
        bits, trained = bits_of_graph(row), row["D_K"]
        cell = cells[row["cell_id"]]
        made = widths.get(cell.problem_json)
        D_K, h, draws = (made.D_K, made.h, made.draws) if made else (None, None, None)
        is_unit = cell.embedding.family in UNIT_ROWS and cell.d_model > 1
        trivial = row["n_edges"] if is_unit else None
        bounds = {f"bound_{b:g}": counting_bound(bits, row["d_model"], b) for b in BITS}
        rows.append(
            {name: row[name] for name in ("cell_id", "m", "d_model", "degree")}
            | {"compression": row["n_edges"] / row["d_model"], "trained": trained}
            | {f"trained_{end}": row[f"D_K_{end}"] for end in ("low", "high")}
            | {name: row[name] for name in ("h_star", "status")}
            | {"bits_per_parameter": graph_bits_per_parameter(row)}
            | {"constructed": D_K, "constructed_h": h, "constructed_draws": draws}
            | {"trivial": trivial, **bounds}
            | {
                "trained_over_bound": _ratio(trained, bounds["bound_1"]),
                "constructed_over_trained": _ratio(D_K, trained),
                "trivial_over_trained": _ratio(trivial, trained),
            }
        )
    return pd.DataFrame(rows).astype(dict.fromkeys(WHOLE, "Int64"))


def _ratio(one: float | None, other: float | None) -> float | None:
    return one / other if one and other else None


def growths(curves: pd.DataFrame) -> pd.DataFrame:
    """How each gap grows with m′ / d_model, by least squares on logarithms.

    Args:
        curves: rows of ``curves_table`` with one protocol: several would add no evidence.

    Returns:
        A row for each gap that enough cells have: ``gap``; ``power`` of m′ / d_model, its 95 %
        t-interval ``low`` to ``high``, which treats cells as independent, and its range ``least``
        to ``most`` with one cell left out; ``cells``, their number.
    """
    from statsmodels.regression.linear_model import OLS  # takes half a second; only needed here

    rows = []
    for name, gap in GAPS.items():
        known = curves[curves[name].notna() & (curves[name] != 0)].astype({name: "float64"})
        if len(known) >= LEAST_CELLS and known["compression"].nunique() > 1:
            x, y = np.log(known["compression"].to_numpy()), np.log(known[name].to_numpy())
            fit = OLS(y, np.column_stack([np.ones_like(x), x])).fit()
            kept = [np.arange(len(x)) != i for i in range(len(x))]
            others = [np.polyfit(x[at], y[at], 1)[0] for at in kept if np.ptp(x[at])]
            ends = min(others), max(others)
            rows.append((gap, fit.params[1], *fit.conf_int()[1], *ends, len(known)))
    return pd.DataFrame(rows, columns=["gap", "power", "low", "high", "least", "most", "cells"])


def families(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """Families of cells with one d_model, or one m / d_model: title, and rows by growing m.

    Args:
        rows: of ``curves_table``, with the ``protocol`` of ``with_protocols``, one in each family.
    """
    named: list[tuple[str, Callable[[Row], float]]] = [
        ("d_model = {}", lambda row: row["d_model"]),
        ("m = {} d_model", lambda row: row["m"] / row["d_model"]),
    ]
    drawn = []
    for title, key in named:
        for degree, protocol in sorted({(row["degree"], row["protocol"]) for row in rows}):
            alike = [row for row in rows if (row["degree"], row["protocol"]) == (degree, protocol)]
            for value in sorted({key(row) for row in alike}):
                own = sorted((r for r in alike if key(r) == value), key=lambda row: row["m"])
                more = "" if degree == 1 else f", r = {degree}"
                more += f", {protocol}" if protocol else ""
                if len({row["m"] for row in own}) >= LEAST_CELLS:
                    drawn.append((title.format(f"{value:g}") + more, own))
    return drawn
