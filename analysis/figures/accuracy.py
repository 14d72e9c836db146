"""Accuracy of a transformer against the total key width, split among heads."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes

from rgr_dist.analysis.figures import style


def accuracy(
    splits: pd.DataFrame,
    names: pd.Series[str],
    *,
    ax: Axes | Sequence[Axes] | None = None,
    width: float = style.WIDE,
) -> list[Axes]:
    """Mean test accuracy against D_K with its interval, a panel for each cell.

    Args:
        splits: rows of ``accuracy.accuracy``.
        names: the title of each panel, by cell_id.
    """
    cells = [own for _, own in splits.groupby("cell_id", sort=False)]
    axes = style.axes_of(ax, len(cells), width, 2.2)
    counts = sorted(splits["h"].unique())
    style.titles(axes, [names[own["cell_id"].iloc[0]] for own in cells])
    for each, own in zip(axes, cells, strict=True):
        style.log_axis(each, "x", own["D_K"], "")
        each.set_xticks(sorted(own["D_K"].unique()))
        each.set_ylim(0, 1)
        for i, h in enumerate(counts):
            line = own[own["h"] == h]
            aside = 2 ** (0.09 * (i - (len(counts) - 1) / 2))  # bars at one D_K stand apart
            places = line["D_K"].astype(float) * aside
            each.plot(places, line["accuracy"], color=style.colour_of(h), linewidth=0.7)
            for x, row in zip(places, line.to_dict("records"), strict=True):
                style.bar(each, x, row["low"], row["high"], h)
                tip = f"h = {h}, D_K = {row['D_K']}: {row['accuracy']:.3f}, {row['n_seeds']} seeds"
                style.mark(each, x, row["accuracy"], tip, h)
    style.outer_labels(axes, "D_K", "test accuracy")
    style.legend(axes[0], counts)
    return axes
