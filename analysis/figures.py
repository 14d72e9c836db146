"""The figures: they draw the tables and compute nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.axes import FAINT, INK, error_axis, log2_axis, ranks, score_axis, style
from analysis.laws import Law, by_name
from analysis.wording import CELLS_OF_A_LAW, score_name, three_digits
from rgr_dist.paper import PublishedLaw, capacity_scale, compression
from rgr_dist.study.study import Study

PublishedLaws = Mapping[str, PublishedLaw]

OURS: dict[str, Any] = {"color": INK, "linewidth": 1.3}
THEIRS: dict[str, Any] = {"color": FAINT, "linewidth": 1.1, "linestyle": (0, (5, 3))}
WIDE: dict[str, Any] = {"color": INK, "linewidth": 0.9, "linestyle": (0, (1, 2))}
HOLLOW: dict[str, Any] = {
    "color": FAINT,
    "linestyle": "none",
    "marker": "D",
    "markerfacecolor": "none",
}


def draw_curves(curves: pd.DataFrame, best: pd.DataFrame, study: Study) -> Figure:
    """Score against D_K, one panel per cell and one line per head count.

    Filled markers are probes with every seed, with their t-intervals; hollow ones were stopped
    early. D_K* is marked by a vertical line, the target by a horizontal one.
    """
    columns, places = _panels(best)
    rows = max(places.values()) // columns + 1
    heads = sorted(int(h) for h in curves["h"].unique())
    looks = ranks(heads)
    with style("curves"):
        figure = Figure(figsize=(3.1 * columns + 0.5, 2.4 * rows + 0.75), layout="constrained")
        for row in best.astype("object").to_dict("records"):
            place = places[row["cell_id"]]
            axes = figure.add_subplot(rows, columns, place + 1)
            own = curves[curves["cell_id"] == row["cell_id"]]
            _panel(axes, own, row, study, looks)
        if heads:
            handles = [
                Line2D([], [], color=colour, marker=marker, markersize=4.5, linewidth=1.2)
                for colour, marker in looks.values()
            ]
            labels = [str(h) for h in heads]
            title = "heads h"
            figure.legend(
                handles, labels, title=title, loc="outside upper center", ncols=min(len(heads), 12)
            )
        figure.supxlabel("total key width $D_K$", fontsize=9)
        figure.supylabel(f"mean test {score_name(study)}", fontsize=9)
    return figure


def draw_capacity(
    best: pd.DataFrame, laws: Sequence[Law], comparison: pd.DataFrame, published: PublishedLaws
) -> Figure:
    """D_K* against m′ log₂ m / d_model, with both fits, the paper's line and its implied points."""
    with style("capacity"):
        figure = Figure(figsize=(6.6, 4.6), layout="constrained")
        axes = figure.add_subplot()
        x = _scale(best, capacity_scale)
        reach = [*best["D_K"].dropna(), *best["D_K_low"].dropna(), *best["D_K_high"].dropna()]
        implied = comparison["paper_D_K"].astype("float64")
        span = [min(x) / 1.25, max(x) * 1.25]
        theirs = published.get("D_K") or published.get("D_K_sparse")
        if theirs is not None:
            _line(axes, theirs, span, f"the paper: {theirs.slope:g} x", THEIRS)
        fitted = by_name(
            [law for law in laws if law.status == "fitted" and law.n >= CELLS_OF_A_LAW]
        )
        if "D_K" in fitted:
            _line(axes, fitted["D_K"], span, f"fit: {three_digits(fitted['D_K'].slope)} x", OURS)
        if "D_K_wide" in fitted and fitted["D_K_wide"].n < fitted["D_K"].n:
            slope = three_digits(fitted["D_K_wide"].slope)
            label = f"fit without $d_{{model}}$ = 16, m > 64: {slope} x"
            _line(axes, fitted["D_K_wide"], span, label, WIDE)
        if "D_K_sparse" in fitted:
            slope = three_digits(fitted["D_K_sparse"].slope)
            _line(
                axes,
                fitted["D_K_sparse"],
                span,
                f"fit of {fitted['D_K_sparse'].cells}: {slope} x",
                WIDE,
            )
        if len(implied):
            axes.plot(
                _scale(comparison, capacity_scale),
                implied,
                label="the paper, inferred from its Table 1",
                markersize=8,
                **HOLLOW,
            )
        _cells(axes, best, x, "D_K", "D_K_low", "D_K_high")
        log2_axis(axes, "x", x, pad=1.25)
        log2_axis(axes, "y", [*reach, *implied] or [1, 1024], pad=1.35)
        axes.set_xlabel("m' log$_2$ m / $d_{model}$")
        axes.set_ylabel("smallest total key width $D_K^*$")
        _legend(axes)
    return figure


def draw_heads(
    best: pd.DataFrame, laws: Sequence[Law], comparison: pd.DataFrame, published: PublishedLaws
) -> Figure:
    """h* against compression m′ / d_model, with our fit, the paper's and its implied points."""
    with style("heads"):
        figure = Figure(figsize=(6.6, 4.2), layout="constrained")
        axes = figure.add_subplot()
        x = _scale(best, compression)
        implied = comparison["paper_h"].astype("float64")
        span = [min(x) / 1.35, max(x) * 1.35]
        if "h" in published:
            label = f"the paper: {_equation(published['h'])}"
            _line(axes, published["h"], span, label, THEIRS)
        fitted = by_name([law for law in laws if law.status == "fitted"])
        if "h" in fitted:
            _line(axes, fitted["h"], span, f"fit: {_equation(fitted['h'])}", OURS)
        dodge = _dodge(best)
        if len(implied):
            axes.plot(
                [
                    place * dodge[width]
                    for place, width in zip(
                        _scale(comparison, compression), comparison["d_model"], strict=True
                    )
                ],
                implied,
                label="the paper, inferred from its Table 1",
                markersize=8,
                **HOLLOW,
            )
        moved = [place * dodge[width] for place, width in zip(x, best["d_model"], strict=True)]
        _cells(axes, best, moved, "h_star", "h_low", "h_high")
        reach = [*best["h_star"].dropna(), *best["h_low"].dropna(), *best["h_high"].dropna()]
        log2_axis(axes, "x", x, pad=1.35)
        log2_axis(axes, "y", [*reach, *implied, 1, 8], pad=1.3)
        axes.set_xlabel("compression m' / $d_{model}$")
        axes.set_ylabel("best number of heads $h^*$")
        _legend(axes)
    return figure


def _legend(axes: Axes) -> None:
    """A legend, if anything was drawn that has a name."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="upper left")


def _panels(best: pd.DataFrame) -> tuple[int, dict[str, int]]:
    """Columns, and the place of each cell: an m by d_model table where it is filled, else rows."""
    cells = [(row["cell_id"], int(row["m"]), int(row["d_model"])) for _, row in best.iterrows()]
    ms, widths = sorted({m for _, m, _ in cells}), sorted({d for _, _, d in cells})
    spots = {(m, d) for _, m, d in cells}
    tabular = len(spots) == len(cells) and len(cells) >= 0.6 * len(ms) * len(widths)
    if tabular and 1 < len(widths) <= 4:
        return len(widths), {
            cell: ms.index(m) * len(widths) + widths.index(d) for cell, m, d in cells
        }
    return min(3, len(cells)), {cell: place for place, (cell, _, _) in enumerate(cells)}


def _panel(
    axes: Axes, curves: pd.DataFrame, row: dict[Any, Any], study: Study, looks: dict[int, Any]
) -> None:
    name = f"m = {row['m']}, $d_{{model}}$ = {row['d_model']}"
    if row["graph"] == "edges":
        name += f", m' = {row['n_edges']}"
    elif row["degree"] > 1:
        name += f", r = {row['degree']}"
    if study.cells[0].minimised:
        reach = curves[["mean_score", "low", "high"]].to_numpy().ravel()
        error_axis(axes, [study.search.target, *reach])
    else:
        score_axis(axes)
    axes.axhline(study.search.target, color=FAINT, linewidth=0.9, linestyle=(0, (4, 2)))
    if curves.empty:
        axes.set_title(f"{name}\nno runs yet", loc="left")
        axes.set_xticks([])
        return
    log2_axis(axes, "x", curves["D_K"].to_list())
    for h, line in curves.groupby("h"):
        colour, marker = looks[int(str(h))]
        full, part = line[line["complete"]], line[~line["complete"]]
        axes.plot(line["D_K"], line["mean_score"], color=colour, linewidth=1, alpha=0.75)
        held = full[full["low"].notna()]
        low, high = axes.get_ylim()
        axes.vlines(held["D_K"], held["low"].clip(lower=low), held["high"].clip(upper=high), colour)
        dots: dict[str, Any] = {
            "color": colour,
            "marker": marker,
            "linestyle": "none",
            "markersize": 4.5,
            "clip_on": False,
            "in_layout": False,
            "zorder": 3,
        }
        axes.plot(full["D_K"], full["mean_score"], **dots)
        hollow: dict[str, Any] = {"markerfacecolor": "white", "markeredgewidth": 0.9}
        axes.plot(part["D_K"], part["mean_score"], **dots, **hollow)
    if row["D_K"] is not None and not pd.isna(row["D_K"]):
        axes.axvline(row["D_K"], color=INK, linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
        name += f"\n$D_K^*$ = {row['D_K']} at h = {row['h_star']}"
        name += " so far" if row["status"] == "open" else ""
    else:
        name += f"\n{row['status']}"
    axes.set_title(name, loc="left")


def _scale(cells: pd.DataFrame, scale: Any) -> list[float]:
    edges = cells["n_edges"] if "n_edges" in cells else cells["m"]
    sizes = zip(cells["m"], cells["d_model"], edges, strict=True)
    return [scale(int(m), int(d_model), int(n_edges)) for m, d_model, n_edges in sizes]


def _dodge(best: pd.DataFrame) -> dict[int, float]:
    """Factors that set cells of the same compression side by side, by d_model."""
    widths = sorted({int(width) for width in best["d_model"]})
    middle = (len(widths) - 1) / 2
    return {width: 1.05 ** (place - middle) for place, width in enumerate(widths)}


def _line(axes: Axes, law: Any, span: Sequence[float], label: str, look: dict[str, Any]) -> None:
    x = np.geomspace(span[0], span[1], 200)
    y = law.intercept + law.slope * x
    seen = y > 0
    axes.plot(x[seen], y[seen], label=label, zorder=1, **look)


def _equation(law: Any) -> str:
    sign = "−" if law.intercept < 0 else "+"
    return f"{three_digits(law.slope)} x {sign} {three_digits(abs(law.intercept))}"


def _cells(
    axes: Axes, best: pd.DataFrame, x: Sequence[float], middle: str, low: str, high: str
) -> None:
    """Cells with their intervals; an arrow from the lower bound where none is found.

    They are told apart by d_model, or by their degree if that alone differs.
    """
    by_degree = best["d_model"].nunique() == 1 and best["degree"].nunique() > 1
    kind, sign = ("degree", "r") if by_degree else ("d_model", "$d_{model}$")
    looks = ranks(sorted({int(value) for value in best[kind]}))
    labelled = set()
    for place, row in zip(x, best.astype("object").to_dict("records"), strict=True):
        width = int(row[kind])
        colour, marker = looks[width]
        if pd.isna(row[middle]):
            if not pd.isna(row[low]):
                up = {"arrowstyle": "->", "color": colour, "shrinkA": 0}
                axes.annotate(
                    "", (place, row[low] * 1.25), (place, row[low]), arrowprops=up, zorder=3
                )
                axes.plot(place, row[low], marker="_", color=colour, markersize=8)
            continue
        ends = [row[middle] if pd.isna(row[end]) else row[end] for end in (low, high)]
        axes.vlines(place, *ends, color=colour, linewidth=1.6)
        label = None if width in labelled else f"{sign} = {width}"
        labelled.add(width)
        axes.plot(
            place, row[middle], color=colour, marker=marker, linestyle="none", markersize=5.5,
            label=label, zorder=4, markerfacecolor="white" if row["status"] == "open" else colour,
        )  # fmt: skip
