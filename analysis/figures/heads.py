"""The smallest width at every head count."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes

from rgr_dist.analysis.figures import style
from rgr_dist.analysis.wording import with_range


def heads(
    thresholds: pd.DataFrame,
    names: pd.Series[str],
    *,
    ax: Axes | Sequence[Axes] | None = None,
    width: float = style.WIDE,
) -> list[Axes]:
    """D_K at every head count, a panel for each cell.

    Args:
        thresholds: rows of ``tables.thresholds`` of the cells to draw.
        names: the title of each panel, by cell_id.
    """
    columns = ["cell_id", "h", "d_k", "D_K", "D_K_low", "D_K_high", "status", "is_best"]
    cells = [own for _, own in thresholds[columns].groupby("cell_id", sort=False)]
    axes = style.axes_of(ax, len(cells), width, 1.35)
    counts = sorted(thresholds["h"].unique())
    style.titles(axes, [names[own["cell_id"].iloc[0]] for own in cells])
    for each, own in zip(axes, cells, strict=True):
        known = own[own["D_K"].notna() | own["D_K_low"].notna()]
        style.log_axis(each, "x", counts, "")
        ends = [value for name in ("D_K", "D_K_low", "D_K_high") for value in known[name].dropna()]
        style.log_axis(each, "y", ends, "")
        found = known[known["D_K"].notna()]
        each.plot(found["h"], found["D_K"], color=style.LIGHT["soft"], linewidth=0.6, zorder=1)
        for row in known.to_dict("records"):
            h, tip = int(row["h"]), f"h = {row['h']}: "
            if pd.isna(row["D_K"]):
                words = f"D_K at least {row['D_K_low']}, {row['status']}"
                style.bound(each, h, row["D_K_low"], tip + words, h)
                continue
            low, high = row["D_K_low"], row["D_K_high"]
            style.bar(each, h, low, high, h)
            best = {"markersize": 6.5} if row["is_best"] else {}
            words = f"D_K = {with_range(row['D_K'], low, high)}, d_k = {row['d_k']}"
            style.mark(each, h, row["D_K"], tip + words, h, **best)
    style.outer_labels(axes, "heads h", "D_K", same="x")
    return axes
