"""Theory beside training: the counting bound, constructions, and what rounding does to weights."""

from __future__ import annotations

from typing import Any

import pandas as pd

from analysis.drawing.panel import Figure
from analysis.load import StudyResults
from analysis.page.section import Column, Row, Section, Table, cell_column
from analysis.rows import named, rows_of
from analysis.theory.beside_training import BITS, LIMIT, families, theory, words
from analysis.theory.figure import draw_three_curves
from analysis.theory.weight_precision import UNROUNDED, bits_needed
from analysis.wording import MISSING, with_range

LINES = {2.0: "2 bits", 1.0: "1 bit", 0.5: "½ bit", 0.25: "¼ bit"}
"""What stands at the end of the bound's lines."""


def section(results: StudyResults) -> Section | None:
    """Bounds, trained, constructed and trivial widths; None if the store has none to compare."""
    if not results.study.record.finds_D_K:
        return None
    found = theory(results)
    if found is None:
        return None
    rows = [_told(row) for row in named(results, found.curves)]
    shown, files = [_widths(rows)], {"theory": found.curves}
    said = words(found)
    if len(found.rates):
        shown.append(_rates(found.rates))
        files["algorithm-1"] = found.rates
    if len(found.rounded):
        needed = bits_needed(found.rounded)
        said.append(_bits_words(needed))
        shown.append(_rounded(named(results, needed), found.rounded))
        files["all-pairs"] = found.rounded
    return Section(
        name="theory",
        title="Theory beside training",
        words=said,
        figures=_figures(rows, results.study.search.target),
        shown=shown,
        files=files,
    )


def _told(row: dict[str, Any]) -> dict[str, Any]:
    row["trained_words"] = with_range(row["trained"], row["trained_low"], row["trained_high"])
    if row["trained"] is not None:
        so_far = ", so far" if row["status"] == "open" else ""
        row["trained_text"] = (
            f"{row['full']}, trained\n"
            f"D_K* = {row['trained_words']} at h* = {row['h_star']}{so_far}\n"
            f"{row['bits_per_parameter']:.2f} bits of the graph per parameter"
        )
    if row["constructed"] is not None:
        row["constructed_text"] = (
            f"{row['full']}, constructed\nD_K = {row['constructed']} at h = "
            f"{row['constructed_h']}, exact in {row['constructed_draws']} draws"
        )
    return row


def _figures(rows: list[dict[str, Any]], target: float) -> tuple[Figure, ...]:
    shown = families(rows)
    bounds = {f"bound_{b:g}": LINES[b] for b in BITS}
    return (draw_three_curves(shown, bounds, target),) if shown else ()


def _factor(name: str) -> Column:
    heads = {
        "trained_over_bound": "trained/bound",
        "constructed_over_trained": "constructed/trained",
        "trivial_over_trained": "trivial/trained",
    }

    def cell(row: Row) -> str | None:
        return None if row[name] is None else f"{row[name]:.2f}"

    return Column(heads[name], cell, lambda row: row[name])


def _real(head: str, name: str, places: int) -> Column:
    return Column(
        head,
        lambda row: None if row[name] is None else f"{row[name]:.{places}f}",
        lambda row: row[name],
    )


def _widths(rows: list[dict[str, Any]]) -> Table:
    return Table(
        name="table-theory",
        caption=(
            "The widths D_K of each cell and the gaps between them, as factors. Bound: what "
            "counting requires at 1 bit per parameter. Trained: D_K*, with h* heads; bits held: "
            "bits of the graph per parameter there. Constructed: the smallest D_K that the search "
            "found exact on all pairs of every draw, its heads in brackets. Trivial: a head of "
            "width 1 for each edge."
        ),
        columns=[
            cell_column(),
            _real("bound", "bound_1", 1),
            Column("trained", lambda row: row["trained_words"], lambda row: row["trained"]),
            Column("h*", lambda row: row["h_star"]),
            _real("bits held", "bits_per_parameter", 2),
            Column("constructed", _constructed, lambda row: row["constructed"]),
            Column("trivial", lambda row: row["trivial"]),
            _factor("trained_over_bound"),
            _factor("constructed_over_trained"),
            _factor("trivial_over_trained"),
        ],
        rows=rows,
    )


def _constructed(row: Row) -> str | None:
    return None if row["constructed"] is None else f"{row['constructed']} ({row['constructed_h']})"


def _rates(rates: pd.DataFrame) -> Table:
    rows = rows_of(rates)

    def width(row: Row) -> str:
        return f"∞ (limit, {row['d_k']} wide)" if row["signatures"] == LIMIT else str(row["d_k"])

    return Table(
        name="table-algorithm-1",
        caption=(
            "Algorithm 1 as measured, with its printed blocks of d_model: draws recovered exactly "
            "on all pairs, with the 95 % Clopper-Pearson interval of their share, and the mean F1 "
            "over all pairs. Orthogonal signatures of a block’s size have the scores of the limit "
            "d_k → ∞. Best tau: the one with the largest F1, chosen for each draw."
        ),
        columns=[
            Column("size", lambda row: f"({row['m']}, {row['d_model']})", text=True, names=True),
            Column("h", lambda row: row["h"]),
            Column("d_k", width, lambda row: row["d_k"]),
            Column("signatures", lambda row: row["signatures"], text=True),
            Column("tau", lambda row: row["tau"], text=True),
            Column("exact", lambda row: f"{row['exact']} of {row['draws']}", _share),
            Column(
                "95 % interval",
                lambda row: f"{row['success_low']:.2f} to {row['success_high']:.2f}",
                lambda row: row["success_low"],
            ),
            _real("mean F1", "mean_f1", 2),
        ],
        rows=rows,
        cell=None,
        folded=f"Algorithm 1 as measured: {len(rows)} rows",
    )


def _share(row: Row) -> float:
    return float(row["exact"] / row["draws"])


def _bits_words(needed: pd.DataFrame) -> str:
    bits = needed["bits"].dropna().astype(int)
    exact, seeds = needed["exact"].dropna(), int(needed["seeds"].sum())
    words = []
    if len(bits):
        span = f"{bits.min()}" if bits.min() == bits.max() else f"{bits.min()} to {bits.max()}"
        words.append(
            f"Rounded to integers with one scale for a matrix, trained weights need {span} bits "
            f"per parameter to keep their thresholds ({len(bits)} of {len(needed)} thresholds)."
        )
    else:
        words.append(f"No integer that was tried keeps any of {len(needed)} thresholds.")
    if len(exact):
        words.append(
            f"As trained, {int(exact.sum())} of {seeds} runs at the thresholds are right on all "
            "pairs: a mean F1 on sampled contexts leaves a few wrong ones."
        )
    return " ".join(words)


def _rounded(rows: list[dict[str, Any]], means: pd.DataFrame) -> Table:
    kinds = means.drop_duplicates("precision").sort_values("bits", ascending=False)
    scores = {(row["cell_id"], row["precision"]): row for row in rows_of(means)}

    def score(precision: str) -> Column:
        def cell(row: Row) -> str | None:
            one = scores.get((row["cell_id"], precision))
            return None if one is None else f"{one['mean_score']:.4f}"

        return Column(precision, cell)

    def needed(row: Row) -> str:
        if row["bits"] is None:
            return MISSING
        return f"{row['bits']}" if row["tried_below"] is not None else f"≤ {row['bits']}"

    rounded = [kind for kind in kinds["precision"] if kind != UNROUNDED]
    return Table(
        name="table-all-pairs",
        caption=(
            "The runs at each threshold, trained again: how many are right on all pairs, and the "
            "mean test F1 with W_Q and W_K rounded before the test. Bits: the fewest of an integer "
            "parameter with which the mean still reaches the target, and does with every larger "
            "number that was tried."
        ),
        columns=[
            cell_column(),
            Column("D_K*", lambda row: row["D_K"]),
            Column("h*", lambda row: row["h"]),
            Column("exact", lambda row: f"{row['exact']} of {row['seeds']}", _exact_share),
            _real("F1 on all pairs", "mean_f1", 3),
            _real("mean test F1", "mean_score", 4),
            *(score(name) for name in rounded),
            Column("bits needed", needed, lambda row: row["bits"]),
        ],
        rows=rows,
    )


def _exact_share(row: Row) -> float | None:
    return None if row["exact"] is None else float(row["exact"] / row["seeds"])
