"""Theory next to training: the counting bound, constructions, and the effect of rounded weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd

from rgr_dist.analysis.laws.points import with_protocols
from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.page.section import Column, Row, Section, Table, cell_column
from rgr_dist.analysis.rows import named, rows_of
from rgr_dist.analysis.theory.beside_training import families, growths, theory
from rgr_dist.analysis.theory.constructions import LIMIT
from rgr_dist.analysis.theory.figure import draw_three_curves
from rgr_dist.analysis.theory.three_widths import draw_three_widths, three_widths, widths_table
from rgr_dist.analysis.theory.weight_precision import bits_needed
from rgr_dist.analysis.thresholds.known_weights import UNROUNDED
from rgr_dist.analysis.wording import number, plural, with_range


def section(results: StudyResults) -> Section | None:
    """Bounds, trained, constructed and trivial widths; None if the store has nothing to compare."""
    found, known = theory(results), three_widths(results)
    if found is None and not known:
        return None
    shown = [widths_table(known)] if known else []
    figures = [draw_three_widths(known)] if known else []
    words, files = list[str](), dict[str, pd.DataFrame]()
    if found is not None:
        words, files = _words(found.curves), {"theory": found.curves}
        curves = with_protocols(found.curves, results.study)
        rows, is_usual = named(results, curves), curves["protocol"] == ""
        if alike := families(rows):
            figures.append(draw_three_curves(alike, results.study.search.target))
        shown.append(_widths(rows))
        if growing := rows_of(growths(curves[is_usual])):
            shown.append(_growths(growing, bool(is_usual.all())))
        if len(found.rates):
            shown.append(_rates(found.rates))
            files["algorithm-1"] = found.rates
        if len(found.rounded):
            shown.append(_rounded(results, found.rounded))
            files["all-pairs"] = found.rounded
    title = "Theory beside training"
    return Section(
        name="theory", title=title, words=words, figures=figures, shown=shown, files=files
    )


def _words(curves: pd.DataFrame) -> list[str]:
    """What trained layers hold, and where a construction needs less."""
    held, lines = curves["bits_per_parameter"].dropna().astype(float), []
    if len(held):
        lines.append(
            f"At their thresholds trained layers hold {held.min():.2f} to {held.max():.2f} bits of "
            f"the graph per parameter ({plural(len(held), 'cell')}). Each line of the bound "
            "supposes its number of bits; none of them is the bound."
        )
    factor = curves["constructed_over_trained"].dropna().astype(float)
    if len(factor):
        lines.append(
            f"Alternating projections are exact on all pairs at {factor.min():.2f} to "
            f"{factor.max():.2f} times the trained width ({plural(len(factor), 'cell')}). They "
            f"need less than training at {int((factor < 1).sum())} of them."
        )
    return lines


def _growths(rows: Sequence[Row], has_one_protocol: bool) -> Table:
    left_out = "" if has_one_protocol else " Cells with another protocol than most are left out."
    return Table(
        name="table-gaps",
        caption=(
            "The gaps grow with compression as (m′/d_model)^power, by least squares on "
            "logarithms. The 95 % intervals treat cells as independent and ignore the "
            f"thresholds’ own intervals.{left_out}"
        ),
        columns=[
            Column("gap", "gap", text=True),
            Column("power", "power", form="z.2f"),
            Column("95 % interval", _interval("low", "high"), "low"),
            Column("with a cell left out", _interval("least", "most"), "least"),
            Column("cells", "cells"),
        ],
        rows=rows,
        cell=None,
    )


def _interval(low: str, high: str) -> Callable[[Row], str]:
    return lambda row: f"{number(row[low], 'z.2f')} to {number(row[high], 'z.2f')}"


def _widths(rows: Sequence[Row]) -> Table:
    def trained(row: Row) -> str:
        return with_range(row["trained"], row["trained_low"], row["trained_high"])

    def constructed(row: Row) -> str | None:
        D_K = row["constructed"]
        return None if D_K is None else f"{D_K} ({row['constructed_h']})"

    return Table(
        name="table-theory",
        caption=(
            "The widths D_K of each cell and the gaps between them, as factors. Bound: what "
            "counting requires at 1 bit per parameter. Trained: D_K*, with h* heads; bits held: "
            "bits of the graph per parameter there. Constructed: the smallest D_K that the search "
            "found exact on all pairs of every draw, its heads in brackets. Trivial: a head of "
            "width 1 for each edge, which is exact for rows of unit length alone."
        ),
        columns=[
            cell_column(),
            Column("bound", "bound_1", form="z.1f"),
            Column("trained", trained, "trained"),
            Column("h*", "h_star"),
            Column("bits held", "bits_per_parameter", form="z.2f"),
            Column("constructed", constructed, "constructed"),
            Column("trivial", "trivial"),
            Column("trained/bound", "trained_over_bound", form="z.2f"),
            Column("constructed/trained", "constructed_over_trained", form="z.2f"),
            Column("trivial/trained", "trivial_over_trained", form="z.2f"),
        ],
        rows=rows,
    )


def _rates(rates: pd.DataFrame) -> Table:
    rows = rows_of(rates)

    def width(row: Row) -> str:
        is_limit = row["signatures"] == LIMIT and row["d_k"] >= -(-row["m"] // row["h"])
        return f"∞ (limit, {row['d_k']} wide)" if is_limit else str(row["d_k"])

    return Table(
        name="table-algorithm-1",
        caption=(
            "Algorithm 1 as measured, with its printed blocks of d_model: draws recovered exactly "
            "on all pairs, with the 95 % Clopper-Pearson interval of their share, and the mean F1 "
            "over all pairs. Orthogonal signatures of a block’s size have the scores of the limit "
            "d_k → ∞; the theorem asks for d_model ≥ c ln m with a large c, below which even the "
            "limit may fail. Best tau: the one with the largest F1, chosen for each draw."
        ),
        columns=[
            Column("size", lambda row: f"({row['m']}, {row['d_model']})", text=True, names=True),
            Column("h", "h"),
            Column("d_k", width, "d_k"),
            Column("signatures", "signatures", text=True),
            Column("tau", "tau", text=True),
            Column("exact", _exact("draws"), _share("draws")),
            Column("95 % interval", _interval("success_low", "success_high"), "success_low"),
            Column("mean F1", "mean_f1", form="z.2f"),
        ],
        rows=rows,
        cell=None,
        folded="Algorithm 1 as measured",
    )


def _exact(of: str) -> Callable[[Row], str | None]:
    return lambda row: None if row["exact"] is None else f"{row['exact']} of {row[of]}"


def _share(of: str) -> Callable[[Row], float | None]:
    return lambda row: None if row["exact"] is None else float(row["exact"] / row[of])


def _rounded(results: StudyResults, means: pd.DataFrame) -> Table:
    integers = means[means["precision"] != UNROUNDED].sort_values("bits", ascending=False)
    scores = means.pivot(index="cell_id", columns="precision", values="mean_score")
    needed = bits_needed(means).merge(scores.reset_index(), on="cell_id")
    needed["slack"] = needed["mean_score"] - results.study.search.target

    def bits(row: Row) -> str | None:
        at_most = "" if row["tried_below"] is not None else "≤ "
        return None if row["bits"] is None else f"{at_most}{row['bits']}"

    return Table(
        name="table-all-pairs",
        caption=(
            "The runs at each threshold, trained again: how many are right on all pairs, and the "
            "mean test F1 with W_Q and W_K rounded before the test. Bits: the fewest bits of an "
            "integer parameter at which the mean still reaches the target, as it does with every "
            "larger number tried. They depend on the slack: how far the mean lies above the target "
            "before rounding."
        ),
        columns=[
            cell_column(),
            Column("D_K*", "D_K"),
            Column("h*", "h"),
            Column("exact", _exact("seeds"), _share("seeds")),
            Column("F1 on all pairs", "mean_f1", form="z.3f"),
            Column("mean test F1", "mean_score", form="z.4f"),
            Column("slack", "slack", form="z.4f"),
            *(Column(name, name, form=".4f") for name in integers["precision"].unique()),
            Column("bits needed", bits, "bits"),
        ],
        rows=named(results, needed),
    )
