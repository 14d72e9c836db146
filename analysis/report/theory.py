"""The page beside a report that sets theory beside training: ``theory.html`` and its files.

It is written where the store holds a construction's thresholds for the study's cells.
"""

from __future__ import annotations

import io
from typing import Any

import jinja2
import pandas as pd
from markupsafe import Markup
from matplotlib.figure import Figure

from analysis.figures.axes import style
from analysis.figures.three_curves import draw_three_curves
from analysis.load import StudyResults
from analysis.three_curves import curves_table, growths, panels, words
from analysis.thresholds import best_of
from rgr_dist.store.store import Store

NAME = "three-curves"
COLUMNS = {
    "m": "m", "d_model": "d_model", "bound_1": "bound, 1 bit", "trained": "trained D_K*",
    "h_star": "h*", "bits_per_parameter": "bits a parameter", "constructed": "constructed D_K",
    "constructed_h": "its h", "constructed_seeds": "draws", "trivial": "trivial D_K",
    "trained_over_bound": "trained / bound", "constructed_over_trained": "constructed / trained",
    "trivial_over_trained": "trivial / trained", "limit_exact": "Alg. 1, d_k → ∞: exact",
    "limit_f1": "its F1",
}  # fmt: skip


def files(results: StudyResults, store: Store) -> dict[str, bytes]:
    """The page, the figure as SVG and PNG, the table as CSV; none if nothing was constructed."""
    if results.study.cells[0].model != "max" or results.study.search.mode == "grid":
        return {}
    table = curves_table(best_of(results), results.study, store)
    if table["constructed"].isna().all():
        return {}
    files = {f"{NAME}.csv": table.to_csv(index=False).encode()}
    svg, shown = "", panels(table)
    if shown:
        figure = draw_three_curves(shown)
        svg = _saved(figure, "svg").decode()
        files |= {f"{NAME}.svg": svg.encode(), f"{NAME}.png": _saved(figure, "png")}
    page = _render(
        name=results.study.name,
        lines=words(table, growths(table)),
        svg=Markup(svg[svg.find("<svg") :] if svg else ""),
        heads=COLUMNS.values(),
        rows=[[_text(row[name]) for name in COLUMNS] for row in table.to_dict("records")],
    )
    return files | {"theory.html": page.encode()}


def _render(**shown: Any) -> str:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("analysis.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("theory.html.j2").render(**shown)


def _saved(figure: Figure, kind: str) -> bytes:
    file = io.BytesIO()
    silent = {"metadata": {"Date": None}} if kind == "svg" else {"dpi": 160}
    with style(NAME):
        figure.savefig(file, format=kind, **silent)
    return file.getvalue()


def _text(value: Any) -> str:
    if value is None or pd.isna(value):
        return "–"
    return f"{value:,.0f}" if float(value).is_integer() and value > 1 else f"{value:.3g}"
