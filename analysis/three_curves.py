"""What counting requires, what training reaches and what a construction needs, on one axis.

The table behind the figure of that name: a row for each cell of a trained study.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from rgr_dist.problem.embeddings import sample_embedding
from rgr_dist.problem.graphs import sample_graph
from rgr_dist.store.store import Store
from rgr_dist.study.study import Cell, Study
from rgr_dist.theory.all_pairs import AllPairs, score_all_pairs
from rgr_dist.theory.bounds import Graphs, bits_per_parameter, counting_bound, graph_bits
from rgr_dist.theory.matchings import blocks
from rgr_dist.theory.template import limit_layer

BITS = (1.0, 0.5, 0.25)
"""Bits a parameter of the bound's lines: around what trained layers hold."""
LIMIT_DRAWS = 5
"""Draws on which the template's limit d_k → ∞ is tried."""
LARGEST_M = 1024
"""Items above which the limit is not tried for a report: it scores all m² pairs."""
LEAST_CELLS = 3
"""Cells below which growth is not fitted."""
GAPS = {
    "trained_over_bound": "trained over the bound of 1 bit a parameter",
    "constructed_over_trained": "constructed over trained",
    "trivial_over_trained": "trivial over trained",
}


@dataclass(frozen=True)
class Growth:
    """A gap's growth: factor ∝ (m / d_model)^power, by least squares on logarithms.

    Attributes:
        low, high: its 95 % t-interval over the cells, which takes them as independent.
    """

    gap: str
    power: float
    low: float
    high: float
    n: int


def family_of(cell: Cell) -> Graphs:
    """Which count of graphs bounds a cell; of regular ones all of that many edges, an overcount."""
    return "permutations" if cell.graph.family == "permutation" else "all"


def constructed_widths(store: Store, study: Study) -> dict[tuple[Any, ...], tuple[int, int, int]]:
    """Smallest exact D_K by construction, with its h and seeds, by a cell's graph and sizes.

    From the tables of every study in the store whose model is ``ours``.
    """
    found: dict[tuple[Any, ...], tuple[int, int, int]] = {}
    for name in store.studies():
        table = store.read_study_table(name, "thresholds")
        if table is None or not (table["model"] == "ours").any():
            continue
        own = table[(table["model"] == "ours") & (table["status"] == "found")]
        columns = ("graph", "m", "d_model", "n_edges", "D_K", "h", "n_seeds")
        for *key, D_K, h, seeds in own[list(columns)].itertuples(index=False):
            width = (int(D_K), int(h), int(seeds))
            at = tuple(key)
            found[at] = min(found.get(at, width), width)
    return found


def curves_table(best: pd.DataFrame, study: Study, store: Store) -> pd.DataFrame:
    """A row for each cell: its widths, the bounds of ``BITS``, and the gaps as factors.

    Args:
        best: the table of ``analysis.thresholds.best``.

    Returns:
        ``m, d_model, compression, trained, h_star, bits_per_parameter, constructed,
        constructed_h, constructed_seeds, trivial, bound_B`` for each B of ``BITS``, the gaps of
        ``GAPS``, and ``limit_exact, limit_f1``: the share of draws that the printed block size
        recovers as d_k → ∞, and its F1 at the best tau. What is not known is null.
    """
    made = constructed_widths(store, study)
    cells = {cell.cell_id: cell for cell in study.cells}
    rows = []
    for row in best.to_dict("records"):
        cell = cells[row["cell_id"]]
        bits = graph_bits(cell.m, cell.n_edges, family_of(cell))
        trained = None if pd.isna(row["D_K"]) else int(row["D_K"])
        key = (cell.graph.family, cell.m, cell.d_model, cell.n_edges)
        constructed, h, seeds = made.get(key, (None, None, None))
        exact, f1 = printed_limit(cell)
        bound = counting_bound(bits, cell.d_model, 1.0)
        rows.append(
            {
                "m": cell.m,
                "d_model": cell.d_model,
                "compression": cell.n_edges / cell.d_model,
                "trained": trained,
                "h_star": None if trained is None else int(row["h_star"]),
                "bits_per_parameter": trained and bits_per_parameter(bits, cell.d_model, trained),
                "constructed": constructed,
                "constructed_h": h,
                "constructed_seeds": seeds,
                "trivial": cell.n_edges,
                **{f"bound_{b:g}": counting_bound(bits, cell.d_model, b) for b in BITS},
                "trained_over_bound": trained and bound and trained / bound,
                "constructed_over_trained": trained and constructed and constructed / trained,
                "trivial_over_trained": trained and cell.n_edges / trained,
                "limit_exact": exact,
                "limit_f1": f1,
            }
        )
    return pd.DataFrame(rows)


def printed_limit(cell: Cell) -> tuple[float | None, float | None]:
    """Algorithm 1's share of exact draws and F1 as d_k → ∞ with blocks of d_model; at the best tau.

    Null where the graph is no permutation or the cell is large.
    """
    if cell.graph.family != "permutation" or cell.m > LARGEST_M:
        return None, None
    scored: list[AllPairs] = []
    for seed in range(LIMIT_DRAWS):
        X, graph = sample_embedding(cell, seed), sample_graph(cell, seed)
        layer = limit_layer(X, blocks(graph, -(-cell.m // cell.d_model)))
        scored.append(score_all_pairs(layer, X, graph, best_tau=True))
    exact = sum(one.exact for one in scored) / LIMIT_DRAWS
    return exact, sum(one.f1 for one in scored) / LIMIT_DRAWS


def growths(table: pd.DataFrame) -> list[Growth]:
    """How each gap grows with m / d_model, where enough cells have it."""
    fitted = []
    for gap in GAPS:
        known = table[table[gap].notna()]
        if len(known) < LEAST_CELLS or known["compression"].nunique() < 2:
            continue
        fit = stats.linregress(
            np.log(known["compression"].astype(float)), np.log(known[gap].astype(float))
        )
        half = float(stats.t.ppf(0.975, len(known) - 2)) * float(fit.stderr)
        power = float(fit.slope)
        fitted.append(Growth(gap, power, power - half, power + half, len(known)))
    return fitted


Panel = tuple[str, str, pd.DataFrame]


def panels(table: pd.DataFrame) -> list[Panel]:
    """Families of cells: title, the column that grows in it, and its rows; at least two of each."""
    families: list[tuple[str, str, Callable[[pd.DataFrame], Any]]] = [
        *(
            (f"d_model = {width}", "m", lambda t, width=width: t["d_model"] == width)
            for width in sorted(set(table["d_model"]))
        ),
        *(
            (f"m = {ratio:g} d_model", "m", lambda t, ratio=ratio: t["m"] == ratio * t["d_model"])
            for ratio in sorted({m / d for m, d in zip(table["m"], table["d_model"], strict=True)})
        ),
    ]
    drawn = [(title, x, table[rows(table)].sort_values(x)) for title, x, rows in families]
    return [(title, x, rows) for title, x, rows in drawn if len(rows) >= LEAST_CELLS]


def words(table: pd.DataFrame, fitted: Sequence[Growth]) -> list[str]:
    """What the table shows, in sentences that each say how many cells they rest on."""
    lines = []
    held = table["bits_per_parameter"].dropna().astype(float)
    if len(held):
        lines.append(
            f"At their thresholds trained layers hold {held.min():.2f} to {held.max():.2f} bits of "
            f"the graph in a parameter ({len(held)} cells). The bound's lines are for given bits; "
            "none of them is the bound."
        )
    made = table[table["constructed_over_trained"].notna()]
    if len(made):
        factor = made["constructed_over_trained"].astype(float)
        lines.append(
            f"Alternating projections are exact on all pairs at {factor.min():.2f} to "
            f"{factor.max():.2f} times the trained width ({len(made)} cells; "
            f"{int(made['constructed_seeds'].min())} draws or more each), and need less than "
            f"training at {int((factor < 1).sum())} of them: there the trained threshold is one of "
            "training, not of what a layer of that width can hold. Training is judged by a mean F1 "
            "on sampled contexts, the construction by every pair of every draw."
        )
    limit = table[table["limit_exact"].notna()]
    if len(limit):
        none, f1 = limit[limit["limit_exact"] == 0], limit["limit_f1"].astype(float)
        lines.append(
            "The asymptotics of Algorithm 1, with its printed blocks of d_model, have not begun "
            f"at {len(none)} of {len(limit)} cells: there even the limit d_k → ∞ recovers none of "
            f"{LIMIT_DRAWS} draws. Over all cells its F1 at the best tau is {f1.min():.2f} to "
            f"{f1.max():.2f}. The theorem asks for d_model ≥ c ln m with a large c; leakage whose "
            "mean does not vanish with d_k decides at these sizes."
        )
    lines += [
        f"The gap {GAPS[one.gap]} grows as (m / d_model)^{one.power:.2f} "
        f"[{one.low:.2f} to {one.high:.2f}] ({one.n} cells, least squares on logarithms)."
        for one in fitted
    ]
    return lines
