"""The figure of a transformer's study: accuracy and NULL share against D_K (Sec. 7.3)."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.accuracy import guess
from analysis.figures.axes import FAINT, log2_axis, ranks, style
from analysis.runs import scored
from analysis.wording import cell_name
from rgr_dist.study.study import Study


def draw_accuracy(splits: pd.DataFrame, runs: pd.DataFrame, study: Study) -> Figure:
    """Accuracy and NULL share against D_K: a row of panels per cell, a line per head count.

    Args:
        splits: the table of ``analysis.accuracy.splits``.
        runs: the stored runs, each drawn as a dot.
    """
    kept = scored(runs, study)
    heads = sorted(int(h) for h in kept["h"].unique())
    looks = ranks(heads)
    rows = len(study.cells)
    with style("accuracy"):
        figure = Figure(figsize=(7.2, 2.9 * rows + 0.5), layout="constrained")
        grid = figure.subplots(rows, 2, squeeze=False, sharex="row")
        for (left, right), cell in zip(grid, study.cells, strict=True):
            own = kept[kept["cell_id"] == cell.cell_id]
            means = splits[splits["cell_id"] == cell.cell_id]
            name = cell_name({"m": cell.m, "d_model": f"{cell.d_model}"})
            left.set_title(name if rows > 1 or len(own) else f"{name}: no run yet", loc="left")
            for axes, label in ((left, "test accuracy"), (right, "share answered NULL")):
                axes.set_ylim(-0.02, 1.02)
                axes.set_ylabel(label)
                axes.set_xlabel("total key width $D_K$")
            left.axhline(guess(cell), color=FAINT, linewidth=0.9, linestyle=(0, (4, 2)), zorder=0)
            if len(own):
                widths = sorted({int(D_K) for D_K in own["D_K"]})
                log2_axis(left, "x", widths, pad=1.3)
                left.set_xticks(widths, [f"{D_K:,}" for D_K in widths])
            for i, h in enumerate(heads):
                shift = 1.035 ** (i - (len(heads) - 1) / 2)
                look = looks[h]
                _dots(left, own[own["h"] == h], "score", shift, look)
                _dots(right, own[own["h"] == h], "null_rate", shift, look)
                _line(left, means[means["h"] == h], shift, look)
        handles = [
            Line2D([], [], color=colour, marker=marker, markersize=4.5, linewidth=1.2)
            for colour, marker in looks.values()
        ]
        if heads:
            labels = [str(h) for h in heads]
            figure.legend(
                handles, labels, title="heads h", loc="outside upper center", ncols=len(heads)
            )
    return figure


def _dots(axes: Axes, runs: pd.DataFrame, of: str, shift: float, look: tuple[str, str]) -> None:
    colour, marker = look
    dots: dict[str, Any] = {"linestyle": "none", "color": colour, "marker": marker}
    values = runs[of].astype("float64")
    axes.plot(runs["D_K"] * shift, values, markersize=3, alpha=0.45, markeredgewidth=0, **dots)


def _line(axes: Axes, means: pd.DataFrame, shift: float, look: tuple[str, str]) -> None:
    colour, marker = look
    x = means["D_K"] * shift
    axes.plot(x, means["accuracy"], color=colour, marker=marker, markersize=4.5, linewidth=1.2)
    axes.vlines(x, means["low"].clip(lower=0), means["high"].clip(upper=1), colour, linewidth=1.2)
