"""The smallest width of each cell against the quantity that the law says it grows with, or m."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from rgr_dist.analysis.figures import style
from rgr_dist.analysis.wording import with_range

SCALE = "m′ log₂ m / d_model"
LINE: dict[str, Any] = {"color": style.LIGHT["soft"], "linewidth": 0.7, "zorder": 1}


def law(
    best: pd.DataFrame,
    ours: Mapping[str, Any] | None = None,
    paper: float | None = None,
    *,
    ax: Axes | None = None,
    width: float = style.COLUMN,
) -> Axes:
    """D_K* of each cell with its interval against m′ log₂ m / d_model.

    Args:
        best: rows of ``tables.best``.
        ours: the row in ``growth.laws`` of the paper's form, drawn with the limits of c, or of its
            free power.
        paper: the paper's own constant.
    """
    (ax,) = style.axes_of(ax, 1, width, min(3.4, 0.85 * width))
    shown = best[best["D_K"].notna() | best["D_K_low"].notna()]
    style.log_axis(ax, "x", shown["scale"], SCALE)
    ends = [value for name in ("D_K", "D_K_low", "D_K_high") for value in shown[name].dropna()]
    style.log_axis(ax, "y", ends, "D_K*")
    x = np.geomspace(*ax.get_xlim(), 2)  # a power is a straight line on these axes
    lines: list[tuple[Any, str]] = []
    if ours is not None:
        c, low, high = (ours[name]["c"] for name in ("parameters", "low", "high"))
        power = ours["parameters"].get("a")
        if power is None and low is not None and high is not None:
            band = ax.fill_between(x, low * x, high * x, color=style.LIGHT["line"], linewidth=0)
            band.set_gid("band")
        (line,) = ax.plot(x, c * x ** (power or 1), color=style.LIGHT["ink"])
        lines.append((line, f"ours, {c:.3g} x" + (f"$^{{{power:.2f}}}$" if power else "")))
    if paper is not None:
        (line,) = ax.plot(x, paper * x, color=style.LIGHT["soft"], linestyle=(0, (5, 3)))
        lines.append((line, f"the paper, {paper:g} x"))
    for row in shown.to_dict("records"):
        draw(ax, row, float(row["scale"]))
    style.legend(ax, shown["h_star"].dropna(), lines)
    return ax


def vertices(
    panels: Mapping[str, pd.DataFrame],
    *,
    ax: Axes | Sequence[Axes] | None = None,
    width: float = style.WIDE,
) -> list[Axes]:
    """D_K* against m, a line for each number of edges m′.

    Args:
        panels: rows of ``tables.best`` by the title of their panel.
    """
    axes, every = style.axes_of(ax, len(panels), width, 2.6), pd.concat(panels.values())
    ends = [value for name in ("D_K", "D_K_low", "D_K_high") for value in every[name].dropna()]
    for each, (title, own) in zip(axes, panels.items(), strict=True):
        each.set_title(style.tex(title))
        style.log_axis(each, "x", every["m"], "m")
        style.log_axis(each, "y", ends, "D_K*")
        for (edges, _), alike in own.groupby(["n_edges", "d_model"]):
            join(each, alike, "m", f"m′ = {edges}")
        for row in own.to_dict("records"):
            draw(each, row, float(row["m"]))
    style.legend(axes[0], every["h_star"].dropna())
    return axes


def join(ax: Axes, rows: pd.DataFrame, x: str, named: str, **look: Any) -> None:
    """A line through the thresholds of these rows, named at its end."""
    found = rows[rows["D_K"].notna()].sort_values(x)
    if len(found):
        ax.plot(found[x].astype(float), found["D_K"].astype(float), **(LINE | look))
        name(ax, (float(found[x].iloc[-1]), float(found["D_K"].iloc[-1])), named)


def name(ax: Axes, place: tuple[float, float], words: str) -> None:
    """Small words beside a place."""
    look: dict[str, Any] = {"fontsize": 6, "color": style.LIGHT["soft"]}
    ax.annotate(words, place, xytext=(4, 4), textcoords="offset points", **look)


def draw(ax: Axes, row: Mapping[Any, Any], x: float, code: int | None = None) -> None:
    """The threshold of a row of ``tables.best`` with its interval, or an arrow from its bound.

    Args:
        code: the head count whose colour and shape it has; by default h*.
    """
    h = None if pd.isna(row["h_star"]) else int(row["h_star"])
    if pd.isna(row["D_K"]):
        style.bound(ax, x, row["D_K_low"], f"{row['cell']}: D_K* at least {row['D_K_low']}", code)
        return
    code, ends = code or h, (row["D_K_low"], row["D_K_high"])
    style.bar(ax, x, *ends, code)
    D_K = with_range(row["D_K"], *ends)
    tip = f"{row['cell']}: D_K* = {D_K}, h* = {h}, d_k = {row['d_k']}"
    style.mark(ax, x, row["D_K"], tip, code, hollow=row["status"] == "open")


def h_star(best: pd.DataFrame, *, ax: Axes | None = None, width: float = style.COLUMN) -> Axes:
    """h* of each cell, with the head counts that cannot be told from it, against m′ / d_model."""
    (ax,) = style.axes_of(ax, 1, width, min(2.2, 0.6 * width))
    shown = best[best["h_star"].notna()]
    style.log_axis(ax, "x", shown["compression"], "m′ / d_model")
    style.log_axis(ax, "y", [*shown["h_low"], *shown["h_high"]], "h*")
    for row in shown.to_dict("records"):
        h, ends = int(row["h_star"]), (row["h_low"], row["h_high"])
        style.bar(ax, row["compression"], *ends, h)
        tip = f"{row['cell']}: h* = {h}, alike: {ends[0]}–{ends[1]}"
        style.mark(ax, row["compression"], h, tip, h, hollow=row["status"] == "open")
    return ax
