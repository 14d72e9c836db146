"""The report of a study of thresholds: one self-contained page, its figures and its tables."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pandas as pd
from markupsafe import Markup
from matplotlib.figure import Figure

from analysis import wording
from analysis.comparison import compare, laws_for
from analysis.curves import curves
from analysis.figures.axes import to_png, to_svg
from analysis.figures.curves import draw_curves
from analysis.figures.laws import draw_capacity, draw_heads
from analysis.laws import Law, distinct, fit_laws, laws_of
from analysis.load import StudyResults
from analysis.report import findings
from analysis.report.page import by_size, render_page, rows_of
from analysis.runs import cost
from analysis.thresholds import best, best_of, head_pool
from rgr_dist.paper import capacity_scale, compression
from rgr_dist.study.study import Study

CAPTIONS = {
    "capacity": (
        "Smallest total key width D_K* against the law's predictor. Bars run from the optimistic "
        "to the conservative D_K* (95 % t-intervals over seeds). A white centre marks a cell whose "
        "search is not finished; an arrow starts at the smallest width "
        "not excluded."
    ),
    "heads": (
        "Head count h* that needs the smallest D_K, against compression. Bars span the head counts "
        "within 10 % of D_K* that a paired t-test does not distinguish from h*. Cells of equal "
        "compression are drawn side by side."
    ),
    "curves": (
        "Mean test score against D_K, for each cell and head count. Filled: all seeds ran, with "
        "the 95 % t-interval. Hollow: stopped early, once the remaining seeds could not change "
        "the verdict. Dashed: the target. Dotted: D_K*. {scale}"
    ),
}


@dataclass(frozen=True)
class Tables:
    """Everything a report shows, as tables; the figures and the page only lay them out."""

    best: pd.DataFrame
    thresholds: pd.DataFrame
    curves: pd.DataFrame
    pool: pd.DataFrame
    comparison: pd.DataFrame
    cost: pd.DataFrame
    laws: list[Law]


def tables(results: StudyResults) -> Tables:
    """Computes the report's tables; the rest of the report computes nothing."""
    study, runs = results.study, results.runs
    order = {cell.cell_id: i for i, cell in enumerate(study.cells)}
    ours = results.thresholds[results.thresholds["cell_id"].isin(order)]
    ours = ours.assign(_order=ours["cell_id"].map(order)).sort_values(["_order", "h"])
    table = best(results.thresholds, runs, study)
    return Tables(
        best=table,
        thresholds=ours.drop(columns="_order").reset_index(drop=True),
        curves=curves(runs, study),
        pool=head_pool(results.thresholds, runs, study),
        comparison=compare(table, study),
        cost=cost(runs, study),
        laws=fit_laws(table),
    )


def headline(results: StudyResults) -> str:
    """The finding of the study in a sentence."""
    return findings.headline(laws_of(results), best_of(results))


def page(results: StudyResults) -> tuple[str, dict[str, bytes]]:
    """The page as HTML, and the files beside it by name."""
    shown, published = tables(results), laws_for(results.study)
    figures = {
        "capacity": draw_capacity(shown.best, shown.laws, shown.comparison, published),
        "heads": draw_heads(shown.best, shown.laws, shown.comparison, published),
        "curves": draw_curves(shown.curves, shown.best, results.study),
    }
    drawn = {name: to_svg(figure, name) for name, figure in figures.items()}
    return _render(results, shown, drawn), _files(results, shown, figures, drawn)


def _render(results: StudyResults, shown: Tables, drawn: dict[str, str]) -> str:
    """The page as HTML, with the figures inside."""
    study, published = results.study, laws_for(results.study)
    heads = [{**row, "words": _certificate(row, study)} for row in by_size(shown.thresholds)]
    return render_page(
        "report.html.j2",
        results,
        shown.cost,
        headline=findings.headline(shown.laws, shown.best),
        target=findings.target_words(study),
        findings=_findings(shown, study),
        unfinished=[
            {"name": wording.cell_name(row), "status": findings.STATUS[row["status"]]}
            for row in rows_of(shown.best)
            if row["status"] != "found"
        ],
        laws=[
            (law, findings.law_words(law), findings.paper_law_words(published.get(law.name)))
            for law in distinct(shown.laws)
        ],
        cited=bool(published),
        compared=not shown.comparison.empty,
        figures={
            name: {"svg": Markup(svg), "caption": CAPTIONS[name].format(scale=_scale(study))}
            for name, svg in drawn.items()
        },
        cells=_cells(shown, study),
        heads=heads,
        limited=any(row["limited_by"] for row in heads),
        pool=by_size(shown.pool),
    )


def _findings(shown: Tables, study: Study) -> list[str]:
    """Agreement with the paper; none for a grid, whose thresholds are as coarse as its widths."""
    if study.search.mode == "grid":
        return []
    lines = findings.agreement(shown.comparison, shown.laws, laws_for(study))
    if shown.thresholds["limited_by"].notna().any():
        lines.append(findings.limits(shown.thresholds))
    return lines


def _scale(study: Study) -> str:
    """How to read the score axis of the curves."""
    if study.cells[0].minimised:
        return "The score is an error (MSE): lower is better, and the axis is logarithmic."
    return "The axis widens towards 1."


def _certificate(row: dict[str, Any], study: Study) -> str:
    minimised = study.cells[0].minimised
    return findings.certificate_words(row["certificate"], study.search.seeds, minimised)


def _cells(shown: Tables, study: Study) -> list[dict[str, Any]]:
    published = {row["cell_id"]: row for row in rows_of(shown.comparison)}
    cells = []
    for row in by_size(shown.best):
        sizes = (row["m"], row["d_model"], row["n_edges"])
        cells.append(
            {
                **row,
                "compression": compression(*sizes),
                "scale": capacity_scale(*sizes),
                "D_K_words": wording.with_range(row["D_K"], row["D_K_low"], row["D_K_high"]),
                "h_words": wording.with_range(row["h_star"], row["h_low"], row["h_high"]),
                "words": _certificate(row, study),
                "paper": published.get(row["cell_id"]),
            }
        )
    return cells


def _files(
    results: StudyResults, shown: Tables, figures: dict[str, Figure], drawn: dict[str, str]
) -> dict[str, bytes]:
    laws = {"laws": [law.to_json() for law in shown.laws]}
    text = json.dumps(laws, indent=2, allow_nan=False)
    files = {"laws.json": f"{text}\n".encode()}
    for name, figure in figures.items():
        files[f"{name}.svg"] = drawn[name].encode()
        files[f"{name}.png"] = to_png(figure, name)
    written = {
        "best": shown.best,
        "thresholds": shown.thresholds,
        "probes": shown.curves,
        "head_pool": shown.pool,
        "comparison": shown.comparison,
        "cost": shown.cost,
    }
    if results.decisions is not None:
        written["decisions"] = results.decisions
    for name, table in written.items():
        files[f"{name}.csv"] = table.to_csv(index=False).encode()
    return files
