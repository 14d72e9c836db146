"""The figure of the curves: score against D_K, for each cell and head count."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.figures.axes import FAINT, INK, error_axis, log2_axis, ranks, score_axis, style
from analysis.wording import score_name
from rgr_dist.study.study import Study


def draw_curves(curves: pd.DataFrame, best: pd.DataFrame, study: Study) -> Figure:
    """Score against D_K, one panel per cell and one line per head count.

    Filled markers are probes that ran every seed, with their t-intervals; hollow ones stopped
    early. A vertical line marks D_K*, a horizontal one the target.

    Args:
        curves: the table of ``analysis.curves.curves``.
        best: the table of ``analysis.thresholds.best``.
    """
    columns, panels = _panels(best)
    rows = max(panels.values()) // columns + 1
    heads = sorted(int(h) for h in curves["h"].unique())
    looks = ranks(heads)
    with style("curves"):
        figure = Figure(figsize=(3.1 * columns + 0.5, 2.4 * rows + 0.75), layout="constrained")
        for row in best.astype("object").to_dict("records"):
            axes = figure.add_subplot(rows, columns, panels[row["cell_id"]] + 1)
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


def _panels(best: pd.DataFrame) -> tuple[int, dict[str, int]]:
    """Columns, and each cell's panel: a table of m by d_model if mostly filled, else rows of 3."""
    cells = [(row["cell_id"], int(row["m"]), int(row["d_model"])) for _, row in best.iterrows()]
    ms, widths = sorted({m for _, m, _ in cells}), sorted({d for _, _, d in cells})
    sizes = {(m, d) for _, m, d in cells}
    tabular = len(sizes) == len(cells) and len(cells) >= 0.6 * len(ms) * len(widths)
    if tabular and 1 < len(widths) <= 4:
        return len(widths), {
            cell: ms.index(m) * len(widths) + widths.index(d) for cell, m, d in cells
        }
    return min(3, len(cells)), {cell: i for i, (cell, _, _) in enumerate(cells)}


def _panel(
    axes: Axes, curves: pd.DataFrame, row: dict[Any, Any], study: Study, looks: dict[int, Any]
) -> None:
    name = f"m = {row['m']}, $d_{{model}}$ = {row['d_model']}"
    if row["graph"] == "edges":
        name += f", m' = {row['n_edges']}"
    elif row["degree"] > 1:
        name += f", r = {row['degree']}"
    if differs := study.differences[row["cell_id"]]:
        name += f"\n{differs}"
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
