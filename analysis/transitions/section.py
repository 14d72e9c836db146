"""Transitions: the score against the width, from failing to passing."""

from __future__ import annotations

from typing import Any

from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.page.section import Column, Section, Table, cell_column
from rgr_dist.analysis.rows import Row, named
from rgr_dist.analysis.runs import asked
from rgr_dist.analysis.thresholds.rows import drawn_cells_of
from rgr_dist.analysis.transitions.collapse import OWN, Collapse, collapses_of
from rgr_dist.analysis.transitions.curves_figure import draw_curves
from rgr_dist.analysis.transitions.probes import probe_rows_of, probes_of
from rgr_dist.analysis.transitions.shares_figure import draw_collapse, draw_shares
from rgr_dist.analysis.transitions.transition_fits import rejected_of, transitions_of
from rgr_dist.analysis.transitions.width_scaling import sentence, width_scaling_of
from rgr_dist.analysis.wording import with_limits


def section(results: StudyResults) -> Section:
    """Scores and shares of passing seeds against D_K, and all cells on one scale."""
    study, probes, collapses = results.study, probes_of(results), collapses_of(results)
    fits, rejected = named(results, transitions_of(results)), rejected_of(results)
    for row in fits:
        row["rejected"] = (row["cell_id"], row["h"]) in rejected
    fitted = [row for row in fits if row["score_status"] == "fitted" or row["share_width"]]
    figures = list(curves(results).figures)
    shares = draw_shares(drawn_cells_of(results), probe_rows_of(results), fits)
    if shares is not None:
        figures.insert(0 if study.search.transition_seeds else 1, shares)
    shown = [_table(fitted)] if fitted else []
    files = {"probes": probes, "transitions": transitions_of(results)}
    values: dict[str, Any] = {"collapses": [], "minimised": study.record.minimised, "widths": ""}
    lost = {name: int(probes[name].sum()) for name in ("collapsed", "diverged")}
    tried = asked(results.searched, study)["stop_reason"]  # includes probes whose every seed failed
    lost["failed"] = int((tried == "failed").sum())
    values["lost"] = lost if any(lost.values()) else None
    values["ran"] = int(probes["n_seeds"].sum())
    if collapses:
        drawn = _of_interest(collapses)
        figures.append(draw_collapse([(one, _points(one, results)) for one in drawn]))
        shown.insert(0, _qualities(collapses))
        columns = {f"D_K over {one.law}": one.points["scaled"] for one in collapses}
        files["collapse"] = collapses[0].points.drop(columns="scaled").assign(**columns)
        values["collapses"] = [one for one in drawn if one.reduced_chi2 is not None]
    if (widths := width_scaling_of(results)) is not None:
        files["widths"] = widths.cells
        values["widths"] = sentence(widths)
    return Section(
        name="transitions",
        title="Transitions",
        template="transitions",
        values=values,
        figures=figures,
        shown=shown,
        files=files,
    )


def curves(results: StudyResults) -> Section:
    """Scores against D_K alone, a figure that fills in while a study runs."""
    study = results.study
    minimised = study.record.minimised
    figure = draw_curves(
        drawn_cells_of(results), probe_rows_of(results), study.search.target, minimised
    )
    return Section(name="curves", title="Scores so far", figures=(figure,))


def _of_interest(collapses: list[Collapse]) -> list[Collapse]:
    """The collapses over each cell's own D_K*, over the best law and over the paper's law."""
    laws = [one for one in collapses if one.law != OWN]
    best = [min(laws, key=lambda one: one.deviance).law] if laws else []
    by_law = {one.law: one for one in collapses}
    wanted = dict.fromkeys([OWN, *best, "m log m/d"])
    return [by_law[law] for law in wanted if law in by_law]


def _points(one: Collapse, results: StudyResults) -> list[Row]:
    """The points of a collapse with their words."""
    rows = named(results, one.points)
    for row in rows:
        row["text"] = (
            f"{row['short']}, h = {row['h']}, D_K = {row['D_K']}\n"
            f"seeds that pass: {row['passing']} of {row['n_seeds']}"
        )
    return rows


def _qualities(collapses: list[Collapse]) -> Table:
    return Table(
        name="table-collapse",
        caption=(
            "How well the transitions at h* lie on one logistic curve once D_K is divided by a "
            "law. Reduced χ²: the deviance over what the luck of independent seeds alone is "
            "expected to give, so that a law that is exact has about 1."
        ),
        columns=[
            Column("D_K divided by", "formula", text=True),
            Column("reduced χ²", "reduced_chi2", form=".2f"),
            Column("half pass at", "middle", form=".3f"),
            Column("cells", "n_cells"),
            Column("probes", lambda row: len(row["points"])),
            Column("deviance", "deviance", form=".1f"),
            Column("expected", "expected", form=".1f"),
            Column("width, doublings", "width", form=".3f"),
        ],
        rows=[{**vars(one), "reduced_chi2": one.reduced_chi2} for one in collapses],
        cell=None,
    )


def _table(rows: list[dict[str, Any]]) -> Table:
    def top(row: Any) -> str:
        is_fitted = row["score_status"] == "fitted"
        return f"{row['top']:.3f}" if is_fitted else str(row["score_status"])

    def half(row: Any) -> str:
        middle, form = row["share_middle"], "{:.1f}".format
        if row["rejected"]:
            return "rejected"
        if middle is None:
            return str(row["share_status"])
        return with_limits(middle, row["share_low"], row["share_high"], form)

    def width(row: Any) -> str:
        width, form = row["share_width"], "{:.2f}".format
        if row["rejected"]:
            return "rejected"
        if width is None:
            return str(row["share_status"])
        return with_limits(width, row["share_width_low"] or 0, row["share_width_high"], form)

    return Table(
        name="table-transitions",
        caption=(
            "Logistic fits in log₂ D_K, of the head counts that allow one. Score: top / (1 + "
            "exp(−(log₂ D_K − middle) / width)), by least squares over the runs that did not "
            "collapse. Flat: the curve explains them no better than one score at all widths (F "
            "test over runs, 5 %), rises only beyond the widths that ran, or takes more than "
            "three doublings to rise. Passing: the share of passing seeds, with 95 % intervals of "
            "its width and of the D_K at which half of them pass. Widths are in doublings of D_K. "
            "Sharp: no seed passes below some width, and all do from there on. Never: none does. "
            "Intervals treat probes as independent, though they share seeds; a ? says that the "
            "probes set no limit."
            + " Rejected: the curve misses the shares by more than the luck of seeds (p < 0.05)."
            * any(row["rejected"] for row in rows)
        ),
        columns=[
            cell_column(),
            Column("h", "h"),
            Column("half pass at D_K", half),
            Column("passing width", width),
            Column("runs", "n_runs"),
            *([Column("collapsed", "collapsed")] if any(row["collapsed"] for row in rows) else ()),
            Column("top score", top, "top"),
            Column("middle D_K", "score_middle", form=".1f"),
            Column("score width", "score_width", form=".2f"),
        ],
        rows=rows,
        folded="Fitted transitions",
        file="transitions",
    )
