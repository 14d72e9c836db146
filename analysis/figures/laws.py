"""The figures of the laws: D_K* and h* of each cell, with our fits and the paper's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures.axes import FAINT, INK, log2_axis, ranks, style
from analysis.laws import CELLS_OF_A_LAW, Law, by_name
from analysis.wording import three_digits
from rgr_dist.paper import PublishedLaw, capacity_scale, compression

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


def draw_capacity(
    best: pd.DataFrame, laws: Sequence[Law], comparison: pd.DataFrame, published: PublishedLaws
) -> Figure:
    """D_K* against m′ log₂ m / d_model: cells, fits, the paper's line and implied points."""
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
    """h* against compression m′ / d_model: cells, our fit, the paper's line and implied points."""
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
                    scale * dodge[width]
                    for scale, width in zip(
                        _scale(comparison, compression), comparison["d_model"], strict=True
                    )
                ],
                implied,
                label="the paper, inferred from its Table 1",
                markersize=8,
                **HOLLOW,
            )
        moved = [scale * dodge[width] for scale, width in zip(x, best["d_model"], strict=True)]
        _cells(axes, best, moved, "h_star", "h_low", "h_high")
        reach = [*best["h_star"].dropna(), *best["h_low"].dropna(), *best["h_high"].dropna()]
        log2_axis(axes, "x", x, pad=1.35)
        log2_axis(axes, "y", [*reach, *implied, 1, 8], pad=1.3)
        axes.set_xlabel("compression m' / $d_{model}$")
        axes.set_ylabel("best number of heads $h^*$")
        _legend(axes)
    return figure


def _legend(axes: Axes) -> None:
    """Adds a legend if anything drawn has a label."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="upper left")


def _scale(cells: pd.DataFrame, scale: Any) -> list[float]:
    edges = cells["n_edges"] if "n_edges" in cells else cells["m"]
    sizes = zip(cells["m"], cells["d_model"], edges, strict=True)
    return [scale(int(m), int(d_model), int(n_edges)) for m, d_model, n_edges in sizes]


def _dodge(best: pd.DataFrame) -> dict[int, float]:
    """Factors on x, by d_model, that draw cells of equal compression side by side."""
    widths = sorted({int(width) for width in best["d_model"]})
    middle = (len(widths) - 1) / 2
    return {width: 1.05 ** (i - middle) for i, width in enumerate(widths)}


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
    """Draws cells with their intervals; without a threshold, an arrow from the lower bound.

    Colours and markers tell d_model, or the degree if only that differs.
    """
    by_degree = best["d_model"].nunique() == 1 and best["degree"].nunique() > 1
    kind, sign = ("degree", "r") if by_degree else ("d_model", "$d_{model}$")
    looks = ranks(sorted({int(value) for value in best[kind]}))
    labelled = set()
    for at, row in zip(x, best.astype("object").to_dict("records"), strict=True):
        width = int(row[kind])
        colour, marker = looks[width]
        if pd.isna(row[middle]):
            if not pd.isna(row[low]):
                up = {"arrowstyle": "->", "color": colour, "shrinkA": 0}
                axes.annotate("", (at, row[low] * 1.25), (at, row[low]), arrowprops=up, zorder=3)
                axes.plot(at, row[low], marker="_", color=colour, markersize=8)
            continue
        ends = [row[middle] if pd.isna(row[end]) else row[end] for end in (low, high)]
        axes.vlines(at, *ends, color=colour, linewidth=1.6)
        label = None if width in labelled else f"{sign} = {width}"
        labelled.add(width)
        axes.plot(
            at, row[middle], color=colour, marker=marker, linestyle="none", markersize=5.5,
            label=label, zorder=4, markerfacecolor="white" if row["status"] == "open" else colour,
        )  # fmt: skip
