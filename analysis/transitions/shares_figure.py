"""The share of passing seeds against D_K, cell by cell and with all cells on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.special import expit

from rgr_dist.analysis.drawing.panel import Figure, Key, Line, Panel, Place
from rgr_dist.analysis.drawing.points import dodges, guide_key, head_keys
from rgr_dist.analysis.drawing.scales import ratio_axis, share_axis
from rgr_dist.analysis.heads.figures import columns_of
from rgr_dist.analysis.page.section import Row
from rgr_dist.analysis.transitions.collapse import OWN, Collapse
from rgr_dist.analysis.transitions.curves_figure import FEWER, panel_of_cell, probe_point

SHARES = (
    "The share of seeds whose own score reaches the target, against D_K. At D_K* the mean score "
    "passes. Equal shares at one D_K stand side by side. A head count other than h* is left out if "
    "no logistic curve in log₂ D_K can be fitted, for example because all its seeds begin to pass "
    "at the same width."
)
LINES = (
    " Lines are those curves, fitted by maximum likelihood and drawn between the narrowest and the "
    "widest probe; where a sudden switch fits about as well, points have none."
)
REJECTED = (
    " No line is drawn where the curve misses the shares by more than the luck of seeds (p < 0.05)."
)
COLLAPSE = (
    "The transitions of all cells at h*, with D_K divided by {laws}. If {ideal}, the points would "
    "lie on one curve except for the luck of seeds, and reduced χ² would be near 1: the deviance "
    "from the curve, over what independent seeds are expected to give."
)
DIVISORS = {OWN: "each cell’s own D_K*", "m log m/d": "the paper’s law"}
"""What D_K is divided by, if not by the law with the best collapse."""


def draw_shares(cells: Sequence[Row], probes: Sequence[Row], fits: Sequence[Row]) -> Figure | None:
    """The share of passing seeds at h* and the head counts with a fitted curve; None if none has.

    Args:
        cells: rows of ``thresholds.rows.cells_of``.
        probes: rows of ``probe_rows_of``.
        fits: rows of ``transition_fits.transitions_of`` with ``anchor``, and ``rejected``, whether
            the shares reject their curve.
    """
    fitted = {(row["anchor"], row["h"]): row for row in fits if row["share_status"] == "fitted"}
    panels = []
    for cell in cells:
        fits_here = {h: fit for (anchor, h), fit in fitted.items() if anchor == cell["anchor"]}
        if not fits_here:
            continue
        own = [row for row in probes if row["anchor"] == cell["anchor"]]
        own = [row for row in own if row["h"] in {*fits_here, cell["h_star"]}]
        at: dict[tuple[int, float], list[int]] = {}  # head counts with one share at one width
        for row in own:
            at.setdefault((row["D_K"], row["passing"] / row["n_seeds"]), []).append(row["h"])
        points = []
        for row in own:
            x, share = row["D_K"], row["passing"] / row["n_seeds"]
            text = (
                f"h = {row['h']}, D_K = {x}\nseeds that pass: {row['passing']} of {row['n_seeds']}"
            )
            dodge = dodges(sorted(at[x, share]), 7.0)[row["h"]]
            points.append(probe_point(row, x, share, text=text, dodge=dodge))
        curves = {}
        for h, fit in fits_here.items():
            widths = [row["D_K"] for row in own if row["h"] == h]
            # no curve where a sudden switch fits about as well
            if fit["share_width_low"] is None or fit["rejected"]:
                continue
            ends = min(widths), max(widths)
            curves[h] = _logistic(ends, fit["share_middle"], fit["share_width"])
        y = share_axis("share of passing seeds")
        panels.append(panel_of_cell(cell, tuple(points), y, curves, (cell["short"],), height=130))
    if not panels:
        return None
    has_lines = any(line.look == "head" for panel in panels for line in panel.lines)
    figure = Figure(
        name="shares",
        title="Share of passing seeds against D_K",
        caption=SHARES
        + LINES * has_lines
        + REJECTED * any(fit["rejected"] for fit in fitted.values()),
        panels=tuple(panels),
        hollow=FEWER,
        columns=columns_of(cells),
    )
    return replace(figure, legend=(*head_keys(figure.heads), *guide_key(cells, "D_K")))


def draw_collapse(collapses: Sequence[tuple[Collapse, Sequence[Row]]]) -> Figure:
    """Share of passing seeds over D_K divided by a law, a panel for each law.

    Args:
        collapses: each with its points: rows with ``scaled, share, anchor, h, text, complete``.
    """
    panels, best = [], "the law with the best collapse"
    laws = [DIVISORS.get(one.law, best) for one, _ in collapses]
    ideal = "the law were exact" if len(laws) > 1 else "all transitions were alike"
    reaches = [np.log([row["scaled"] for row in points]) for _, points in collapses]
    half = max(float(np.ptp(reach)) for reach in reaches) / 2  # one scale, so slopes compare
    for (one, points), reach in zip(collapses, reaches, strict=True):
        middle = (reach.min() + reach.max()) / 2
        over = "D_K / D_K*" if one.law == OWN else "D_K / law"
        x = ratio_axis(over, list(np.exp([middle - half, middle + half])), pad=1.2)
        curve = _logistic((x.low, x.high), one.middle, one.width)
        chi2 = one.reduced_chi2
        quality = () if chi2 is None else (f"reduced χ² {chi2:.1f}",)
        panels.append(
            Panel(
                title=(f"D_K over {one.formula}", *quality),
                x=x,
                y=share_axis("share of passing seeds"),
                lines=(Line(points=curve, look="ours"),),
                points=tuple(probe_point(row, row["scaled"], row["share"]) for row in points),
                height=190,
            )
        )
    figure = Figure(
        name="collapse",
        title="Share of passing seeds over D_K divided by a law",
        caption=COLLAPSE.format(laws=", or by ".join(laws), ideal=ideal),
        panels=tuple(panels),
        hollow=FEWER,
        columns=min(3, len(panels)),
    )
    common = Key(text="common curve", line="ours")
    return replace(figure, legend=(common, *head_keys(figure.heads)))


def _logistic(ends: tuple[float, float], middle: float, width: float) -> tuple[Place, ...]:
    """1 / (1 + exp(-(log₂ x - log₂ middle) / width)) between two ends, dense in its bend."""
    low, high = np.log2(ends)
    first, last = np.clip(np.log2(middle) + width * np.array([-5.5, 5.5]), low, high)
    at = np.unique(np.concatenate([[low], np.linspace(first, last, 33), [high]]))
    share = expit((at - np.log2(middle)) / width)
    return tuple((float(a), float(b)) for a, b in zip(2.0**at, share, strict=True))
