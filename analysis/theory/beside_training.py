"""What counting requires, what training reaches and what constructions need, side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from analysis.load import StudyResults, per_study
from analysis.theory.constructions import (
    Width,
    constructed_widths,
    construction_runs,
    rates_of_algorithm_1,
)
from analysis.theory.weight_precision import rounded_thresholds
from analysis.thresholds.best import best_of
from analysis.wording import plural
from rgr_dist.study.cell import Cell
from rgr_dist.study.study import Study
from rgr_dist.theory.bounds import Graphs, bits_per_parameter, counting_bound, graph_bits

BITS = (2.0, 1.0, 0.5, 0.25)
"""Bits per parameter of the bound's lines: around what trained layers hold."""
LEAST_CELLS = 3
"""Cells below which a family is not drawn and growth is not fitted."""
GAPS = {
    "trained_over_bound": "trained over the bound at 1 bit per parameter",
    "constructed_over_trained": "constructed over trained",
    "trivial_over_trained": "trivial over trained",
}
WHOLE = ("trained", "trained_low", "trained_high", "h_star", "constructed", "constructed_h",
         "constructed_draws", "trivial")  # fmt: skip
LIMIT = "orthogonal"
"""Signatures that give Algorithm 1's limit d_k → ∞."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Theory:
    """Tables of theory beside training.

    Attributes:
        curves: of ``curves_table``, a row for each cell.
        rates: of ``analysis.theory.constructions.rates_of_algorithm_1``.
        rounded: of ``analysis.theory.weight_precision.rounded_thresholds``.
    """

    curves: pd.DataFrame
    rates: pd.DataFrame
    rounded: pd.DataFrame


@dataclass(frozen=True)
class Growth:
    """A gap's growth: factor ∝ (m′ / d_model)^power, by least squares on logarithms.

    Attributes:
        low, high: its 95 % t-interval over the cells, which takes them as independent.
    """

    gap: str
    power: float
    low: float
    high: float
    n: int


@per_study
def theory(results: StudyResults) -> Theory | None:
    """The tables of a study of model max; None if its store holds nothing to set beside it."""
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


def family_of(cell: Cell) -> Graphs:
    """Which count of graphs bounds a cell; of regular ones all of that many edges, an overcount."""
    return "permutations" if cell.graph.family == "permutation" else "all"


def curves_table(best: pd.DataFrame, study: Study, widths: Mapping[str, Width]) -> pd.DataFrame:
    """A row for each cell: its widths, the bounds of ``BITS``, and the gaps as factors.

    Of cells that differ in their step limit alone, that with the largest is taken.

    Args:
        best: the table of ``analysis.thresholds.best.best``.
        widths: the constructed ones, by ``Cell.problem_json``.

    Returns:
        ``cell_id, m, d_model, degree, compression, trained, trained_low, trained_high, h_star,
        status, bits_per_parameter, constructed, constructed_h, constructed_draws, trivial``,
        ``bound_B`` for each B of ``BITS``, and the gaps of ``GAPS``. What is not known is null.
    """
    cells = {family[-1].cell_id: family[-1] for family in study.budgets.values()}
    rows = []
    for row in best[best["cell_id"].isin(cells)].to_dict("records"):
        cell = cells[row["cell_id"]]
        bits = graph_bits(cell.m, cell.n_edges, family_of(cell))
        trained = _whole(row["D_K"])
        made = widths.get(cell.problem_json)
        constructed = None if made is None else made.D_K
        bound = counting_bound(bits, cell.d_model, 1.0)
        rows.append(
            {
                "cell_id": cell.cell_id,
                "m": cell.m,
                "d_model": cell.d_model,
                "degree": cell.graph.degree,
                "compression": cell.n_edges / cell.d_model,
                "trained": trained,
                "trained_low": _whole(row["D_K_low"]),
                "trained_high": _whole(row["D_K_high"]),
                "h_star": _whole(row["h_star"]),
                "status": row["status"],
                "bits_per_parameter": trained and bits_per_parameter(bits, cell.d_model, trained),
                "constructed": constructed,
                "constructed_h": None if made is None else made.h,
                "constructed_draws": None if made is None else made.draws,
                "trivial": cell.n_edges,
                **{f"bound_{b:g}": counting_bound(bits, cell.d_model, b) for b in BITS},
                "trained_over_bound": trained and bound and trained / bound,
                "constructed_over_trained": trained and constructed and constructed / trained,
                "trivial_over_trained": trained and cell.n_edges / trained,
            }
        )
    return pd.DataFrame(rows).astype(dict.fromkeys(WHOLE, "Int64"))


def _whole(value: Any) -> int | None:
    return None if pd.isna(value) else int(value)


def growths(curves: pd.DataFrame) -> list[Growth]:
    """How each gap grows with m′ / d_model, where enough cells have it."""
    fitted = []
    for gap in GAPS:
        known = curves[curves[gap].notna() & (curves[gap] != 0)]
        if len(known) < LEAST_CELLS or known["compression"].nunique() < 2:
            continue
        from scipy import stats  # which takes half a second to import

        fit = stats.linregress(
            np.log(known["compression"].astype(float)), np.log(known[gap].astype(float))
        )
        half = float(stats.t.ppf(0.975, len(known) - 2) * fit.stderr)
        power = float(fit.slope)
        fitted.append(Growth(gap, power, power - half, power + half, len(known)))
    return fitted


def families(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """Families of cells with one d_model, or one m / d_model: title, and rows by growing m."""
    named: list[tuple[str, Callable[[Row], float]]] = [
        ("d_model = {}", lambda row: row["d_model"]),
        ("m = {} d_model", lambda row: row["m"] / row["d_model"]),
    ]
    drawn = []
    for title, key in named:
        for degree in sorted({row["degree"] for row in rows}):
            alike = [row for row in rows if row["degree"] == degree]
            for value in sorted({key(row) for row in alike}):
                own = sorted((r for r in alike if key(r) == value), key=lambda row: row["m"])
                more = "" if degree == 1 else f", r = {degree}"
                if len({row["m"] for row in own}) >= LEAST_CELLS:
                    drawn.append((title.format(f"{value:g}") + more, own))
    return drawn


def words(found: Theory) -> list[str]:
    """What the tables show, in paragraphs that each say how much they rest on."""
    lines = [_held(found.curves), _constructed(found.curves), *_asymptotics(found.rates)]
    fitted = growths(found.curves)
    if fitted:
        each = "; ".join(
            f"{GAPS[one.gap]} as (m′/d_model)^{_signed(one.power)} "
            f"[{_signed(one.low)} to {_signed(one.high)}], {one.n} cells"
            for one in fitted
        )
        lines.append(
            f"With compression the gaps go as follows: {each}. Least squares on logarithms; the "
            "95 % intervals take cells as independent and leave out the thresholds’ own intervals."
        )
    return [line for line in lines if line]


def _signed(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def _held(curves: pd.DataFrame) -> str:
    held = curves["bits_per_parameter"].dropna().astype(float)
    if held.empty:
        return ""
    return (
        f"At their thresholds trained layers hold {held.min():.2f} to {held.max():.2f} bits of "
        f"the graph per parameter ({plural(len(held), 'cell')}). Each line of the bound supposes "
        "its number of bits; none of them is the bound."
    )


def _constructed(curves: pd.DataFrame) -> str:
    made = curves[curves["constructed_over_trained"].notna()]
    if made.empty:
        return ""
    factor = made["constructed_over_trained"].astype(float)
    less, trivial = int((factor < 1).sum()), int((made["constructed"] >= made["trivial"]).sum())
    no_better = (
        f" At {plural(trivial, 'cell')} it needs no less than a head for each edge."
        if trivial
        else ""
    )
    return (
        f"Alternating projections are exact on all pairs at {factor.min():.2f} to "
        f"{factor.max():.2f} times the trained width ({plural(len(made), 'cell')}, each over "
        f"{int(made['constructed_draws'].min())} draws or more), and need less than training at "
        f"{less} of them: there the trained threshold is one of training, not of what a layer of "
        f"that width can hold.{no_better} Training is judged by a mean F1 on sampled contexts, "
        "the construction by every pair of every draw."
    )


def _asymptotics(rates: pd.DataFrame) -> list[str]:
    """Where Algorithm 1 has not begun to work, from what was measured."""
    if rates.empty:
        return []
    limit, finite = rates[rates["signatures"] == LIMIT], rates[rates["signatures"] != LIMIT]
    lines = []
    if len(limit):
        none, every = limit[limit["exact"] == 0], limit[limit["exact"] == limit["draws"]]
        f1 = none["mean_f1"]
        lines.append(
            f"The theorem’s asymptotics have not begun at {len(none)} of {len(limit)} sizes: with "
            "blocks of d_model, as printed, even the limit d_k → ∞ of Algorithm 1 recovers none "
            "of its draws"
            + (f", with a mean F1 of {f1.min():.2f} to {f1.max():.2f}. " if len(none) else ". ")
            + (
                f"It recovers every draw at {_sizes(every)}. "
                if len(every)
                else "It recovers every draw at none. "
            )
            + "The theorem asks for d_model ≥ c ln m with a large c: below that, leakage whose "
            "mean does not vanish with d_k decides."
        )
    for (d_k, tau), own in finite.groupby(["d_k", "tau"]):
        some = own[own["exact"] > 0]
        at = "the printed tau" if tau == "printed" else "the best tau"
        said = f"at {_sizes(some)}" if len(some) else "at none"
        lines.append(
            f"At d_k = {d_k} and {at} Algorithm 1 recovers a draw {said} of "
            f"{plural(len(own), 'size')} measured."
        )
    return lines


def _sizes(rows: pd.DataFrame) -> str:
    return ", ".join(f"({m}, {d_model})" for m, d_model in rows[["m", "d_model"]].to_numpy())
