"""The report of a transformer's study: accuracy by split, and collapsed runs (Sec. 7.3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
from markupsafe import Markup

from analysis.accuracy import guess, splits
from analysis.figures.accuracy import draw_accuracy
from analysis.figures.axes import to_png, to_svg
from analysis.load import StudyResults
from analysis.report.page import render_page, rows_of
from analysis.runs import cost
from analysis.wording import plural
from rgr_dist.study.study import Study

CAPTION = (
    "Left: mean test accuracy against D_K for each head count, with the 95 % t-interval over "
    "seeds; each faint dot is a run. Dashed: a random guess among the context's items; runs "
    "below it collapsed. Right: the share of test queries that each run answered with NULL, "
    "which is never correct. Head counts at one D_K are drawn side by side."
)

EMBEDDINGS = {
    "gaussian": "random unit vectors, drawn afresh for each seed, not GPT-2's",
    "table": "a model's token embeddings, most frequent tokens first, with end of text as NULL",
    "stand-in": "a synthetic stand-in that resembles GPT-2's token embeddings, not GPT-2's own",
}
"""Where the items' vectors come from, by embedding family."""


def headline(results: StudyResults) -> str:
    """The finding of the study: what splitting D_K among heads gains, and which runs collapsed."""
    table = splits(results.runs, results.study)
    return gains(table) if table.empty else f"{gains(table)} {collapses(table)}"


def gains(table: pd.DataFrame) -> str:
    """For each cell, the accuracy of the best split beside that of one head at equal D_K.

    Args:
        table: of ``analysis.accuracy.splits``.
    """
    if table.empty:
        return "No run yet."
    lines = []
    for _, own in table.groupby("cell_id", sort=False):
        rows = own.to_dict("records")
        cell = f"At m = {rows[0]['m']}, d_model = {rows[0]['d_model']}, accuracy is "
        alone = {row["D_K"]: row["accuracy"] for row in rows if row["h"] == 1}
        each = []
        for D_K, rivals in own[own["gain"].notna()].groupby("D_K"):
            best = max(rivals.to_dict("records"), key=_accuracy)
            each.append(
                f"{best['accuracy']:.3f} with {best['h']} heads, {alone[D_K]:.3f} with one, "
                f"at D_K = {D_K} ({_gain(best)})"
            )
        if not each:  # nothing to compare with one head
            best = max(rows, key=_accuracy)
            heads = plural(int(best["h"]), "head")
            each = [f"at best {best['accuracy']:.3f}, with {heads} at D_K = {best['D_K']}"]
        lines.append(f"{cell}{'; '.join(each)}.")
    return " ".join(lines)


def _accuracy(row: Mapping[Any, Any]) -> float:
    return float(row["accuracy"])


def collapses(table: pd.DataFrame) -> str:
    """How many runs collapsed, at which splits, and how many answered mostly NULL."""
    runs, collapsed = int(table["n_seeds"].sum()), table[table["collapsed"] > 0]
    nulls = int(table["null_runs"].sum())
    null = f"{plural(nulls, 'run')} answered mostly NULL" if nulls else "none answered mostly NULL"
    if collapsed.empty:
        guessed = "fell below a random guess among the context's items"
        return f"None of {plural(runs, 'run')} {guessed}; {null}."
    where = "; ".join(
        f"{row['collapsed']} of {row['n_seeds']} at h = {row['h']}, D_K = {row['D_K']}"
        for row in collapsed.to_dict("records")
    )
    return (
        f"{collapsed['collapsed'].sum():,} of {plural(runs, 'run')} collapsed, below a random "
        f"guess among the context's items: {where}; {null}."
    )


def _gain(row: Mapping[Any, Any]) -> str:
    gain = f"{row['gain']:+.3f}".replace("-", "−")
    if pd.isna(row["gain_low"]):
        return f"{gain}, from one pair of seeds"
    ends = " to ".join(f"{row[end]:+.3f}".replace("-", "−") for end in ("gain_low", "gain_high"))
    return f"{gain}, 95 % interval {ends}"


def vectors(study: Study) -> str:
    """Where the items' vectors come from."""
    families = dict.fromkeys(cell.embedding.family for cell in study.cells)
    return "; ".join(EMBEDDINGS.get(family, family) for family in families)


def page(results: StudyResults) -> tuple[str, dict[str, bytes]]:
    """The page as HTML, and the files beside it by name."""
    study, runs = results.study, results.runs
    table, spent = splits(runs, study), cost(runs, study)
    figure = draw_accuracy(table, runs, study)
    svg = to_svg(figure, "accuracy")
    html = render_page(
        "accuracy.html.j2",
        results,
        spent,
        headline=gains(table),
        collapses=collapses(table),
        vectors=vectors(study),
        chance=", ".join(dict.fromkeys(f"{guess(cell):.3f}" for cell in study.cells)),
        figures={"accuracy": {"svg": Markup(svg), "caption": CAPTION}},
        splits=rows_of(table),
    )
    files = {"accuracy.svg": svg.encode(), "accuracy.png": to_png(figure, "accuracy")}
    for name, rows in {"splits": table, "cost": spent}.items():
        files[f"{name}.csv"] = rows.to_csv(index=False).encode()
    return html, files
