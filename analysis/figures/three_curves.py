"""Trained, constructed and trivial widths with the lines of the counting bound, by family."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, FuncFormatter, LogLocator, NullLocator

from analysis.figures.axes import FAINT, style
from analysis.three_curves import BITS, Panel

LOOKS = {
    "trivial": ("#8a8a8a", "s", "one head an edge (trivial)"),
    "trained": ("#b3402a", "o", "trained, mean F1 ≥ target"),
    "constructed": ("#1f5a8a", "^", "constructed, exact in every draw"),
}
COLUMNS = 3


def draw_three_curves(panels: Sequence[Panel]) -> Figure:
    """A panel for each family of cells, on logarithmic axes."""
    rows, columns = -(-len(panels) // COLUMNS), min(COLUMNS, len(panels))
    with style("three-curves"):
        figure = Figure(figsize=(3.1 * columns + 0.4, 2.9 * rows + 0.8), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False)
        for at, panel in zip(axes.flat, panels, strict=False):
            _draw(at, panel)
        for at in list(axes.flat)[len(panels) :]:
            at.set_axis_off()
        handles = dict(zip(*reversed(axes.flat[0].get_legend_handles_labels()), strict=True))
        figure.legend(
            handles.values(), handles.keys(), loc="outside lower center", ncols=3, frameon=False
        )
    return figure


def _draw(axes: Axes, panel: Panel) -> None:
    title, x, rows = panel
    at = rows[x].astype(float)
    for b, line in zip(BITS, ("-", "--", ":"), strict=True):
        axes.plot(
            at, rows[f"bound_{b:g}"].astype(float), line, color=FAINT, linewidth=1,
            label=f"bound at {b:g} bit a parameter",
        )  # fmt: skip
    for name, (colour, marker, label) in LOOKS.items():
        known = rows[rows[name].notna()]
        axes.plot(
            known[x].astype(float), known[name].astype(float), color=colour, marker=marker,
            markersize=4.5, linewidth=1.3, label=label,
        )  # fmt: skip
    axes.set(
        xscale="log",
        yscale="log",
        title=title.replace("d_model", "$d_{model}$"),
        xlabel=f"${x}$",
        ylabel="$D_K$",
    )
    axes.xaxis.set_major_locator(FixedLocator(at.tolist()))
    axes.xaxis.set_major_formatter(FixedFormatter([f"{value:g}" for value in at]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
