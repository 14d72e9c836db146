"""Transitions: the score against the width, from failing to passing."""

from __future__ import annotations

from typing import Any

import pandas as pd

from analysis.load import StudyResults
from analysis.page.section import Column, Section, Table, cell_column
from analysis.rows import named
from analysis.thresholds.rows import drawn_cells_of
from analysis.transitions import words as words_of
from analysis.transitions.curves_figure import draw_curves
from analysis.transitions.figures import draw_collapse, draw_shares
from analysis.transitions.transition_fits import (
    OWN,
    Collapse,
    collapses_of,
    probe_rows_of,
    probes_of,
    transitions_of,
)
from analysis.transitions.width_scaling import narrowing_of


def section(results: StudyResults) -> Section:
    """Scores and shares of passing seeds against D_K, and all cells on one scale."""
    fits = named(results, transitions_of(results))
    told = [row for row in fits if row["score_status"] == "fitted" or row["share_width"]]
    figures = list(curves(results).figures)
    shares = draw_shares(drawn_cells_of(results), probe_rows_of(results), fits)
    if shares is not None:
        figures.append(shares)
    shown = [_table(told)] if told else []
    files = {"probes": probes_of(results), "transitions": transitions_of(results)}
    words = [_lost(probes_of(results))]
    if collapses_of(results):
        figures.append(
            draw_collapse([_drawn(one, results) for one in _told(collapses_of(results))])
        )
        shown.insert(0, _qualities(collapses_of(results)))
        files["collapse"] = _points(collapses_of(results))
        words.append(words_of.collapse(collapses_of(results)))
    found = narrowing_of(results)
    if found is not None:
        words.append(words_of.narrowing(found))
        files["widths"] = found.cells
    return Section(
        name="transitions",
        title="Transitions",
        words=[line for line in words if line],
        figures=figures,
        shown=shown,
        files=files,
    )


def curves(results: StudyResults) -> Section:
    """Scores against D_K alone: what fills in while a study runs."""
    study = results.study
    minimised = study.cells[0].minimised
    figure = draw_curves(
        drawn_cells_of(results), probe_rows_of(results), study.search.target, minimised
    )
    return Section(name="curves", title="Scores so far", figures=(figure,))


def _lost(probes: pd.DataFrame) -> str:
    """How many runs collapsed, diverged or failed, if any."""
    counts = {name: int(probes[name].sum()) for name in ("collapsed", "diverged", "failed")}
    if not any(counts.values()):
        return ""
    ran = int(probes["n_seeds"].sum())
    return (
        f"{counts['collapsed']:,} of {ran:,} runs collapsed: they diverged "
        f"({counts['diverged']:,}) or score less than half the median of their probe. They count "
        f"in the means, and a cross marks their probes. {counts['failed']:,} more could not be "
        "trained."
    )


def _points(collapses: list[Collapse]) -> pd.DataFrame:
    """The points of every collapse, a row for each probe and a column of D_K / law for each law."""
    table = collapses[0].points.drop(columns="scaled")
    return table.assign(**{f"D_K over {one.law}": one.points["scaled"] for one in collapses})


def _told(collapses: list[Collapse]) -> list[Collapse]:
    """Over each cell's own D_K*, over the law with the best collapse, over the paper's."""
    laws = [one for one in collapses if one.law != OWN]
    best = min(laws, key=lambda one: one.reduced_chi2) if laws else None
    wanted = [OWN, *([best.law] if best else []), "m log m/d"]
    by_law = {one.law: one for one in collapses}
    return [by_law[law] for law in dict.fromkeys(wanted) if law in by_law]


def _drawn(
    one: Collapse, results: StudyResults
) -> tuple[str, float, float, float, list[dict[str, Any]]]:
    rows = []
    for row in named(results, one.points):
        row["d_k"] = row["D_K"] // row["h"]
        row["text"] = (
            f"{row['short']}, h = {row['h']}, D_K = {row['D_K']}\n"
            f"{row['passing']} of {row['n_seeds']} seeds pass"
        )
        rows.append(row)
    return one.formula, one.reduced_chi2, one.middle, one.width, rows


def _qualities(collapses: list[Collapse]) -> Table:
    return Table(
        name="table-collapse",
        caption=(
            "How well the transitions at h* lie on one logistic curve, with D_K divided by each "
            "law: the deviance over its degrees of freedom, near 1 where seeds explain all of it."
        ),
        columns=[
            Column("D_K divided by", lambda row: row["formula"], text=True),
            Column("cells", lambda row: row["n_cells"]),
            Column("probes", lambda row: row["n_probes"]),
            Column("reduced χ²", lambda row: f"{row['reduced_chi2']:.2f}"),
            Column("half pass at", lambda row: f"{row['middle']:.3f}"),
            Column("width, doublings", lambda row: f"{row['width']:.3f}"),
        ],
        rows=[one.to_json() for one in collapses],
        cell=None,
    )


def _table(rows: list[dict[str, Any]]) -> Table:
    def number(name: str, head: str, form: str = ".1f") -> Column:
        return Column(head, lambda row: None if row[name] is None else format(row[name], form))

    def with_limits(row: Any, name: str, low: str, high: str, form: str) -> str | None:
        if row[name] is None:
            return None
        ends = ("?" if row[end] is None else format(row[end], form) for end in (low, high))
        return f"{format(row[name], form)} [{'–'.join(ends)}]"

    def middle(row: Any) -> str | None:
        return with_limits(row, "share_middle", "share_low", "share_high", ".1f")

    def width(row: Any) -> str | None:
        shown = with_limits(row, "share_width", "share_width_low", "share_width_high", ".2f")
        return None if shown is None else shown.replace("[?", "[0")

    return Table(
        name="table-transitions",
        caption=(
            "Logistic fits in log₂ D_K. Score: top / (1 + exp(−(log₂ D_K − middle) / width)), "
            "least squares over runs, collapsed ones left out; flat where that explains them no "
            "better than one score at all widths (F test over runs, 5 %), rises only beyond the "
            "widths that ran, or takes more than three doublings to rise. Passing: the share of "
            "passing seeds, with 95 % intervals of its width and of the D_K at which half of them "
            "pass. Widths are in doublings of D_K; intervals take probes for independent, though "
            "they share seeds, and have a ? where the probes set no limit."
        ),
        columns=[
            cell_column(),
            Column("h", lambda row: row["h"]),
            Column("probes", lambda row: row["n_probes"]),
            Column("runs", lambda row: row["n_runs"]),
            Column("collapsed", lambda row: row["collapsed"]),
            Column("score", lambda row: row["score_status"], text=True),
            number("top", "top", ".3f"),
            number("score_middle", "middle D_K"),
            number("score_width", "width", ".2f"),
            Column("passing", lambda row: row["share_status"], text=True),
            Column("half pass at D_K", middle),
            Column("width", width),
        ],
        rows=rows,
        folded=f"Fits of the transitions that have one: {len(rows)} rows",
    )
