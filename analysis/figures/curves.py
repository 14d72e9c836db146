"""Scores against the width, from failing to passing."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes

from rgr_dist.analysis.figures import style


def curves(
    probes: pd.DataFrame,
    names: pd.Series[str],
    target: float,
    *,
    score: str = "F1",
    minimised: bool = False,
    ax: Axes | Sequence[Axes] | None = None,
    width: float = style.WIDE,
) -> list[Axes]:
    """Mean score of every probe against D_K, a panel for each cell and a line for each head count.

    Args:
        probes: rows of ``probes.probes`` of the cells to draw; those that not every seed ran are
            hollow.
        names: the title of each panel, by cell_id.
        target: the score from which on a probe passes; to which, if ``minimised``.
    """
    probes = probes[["cell_id", "h", "d_k", "D_K", "mean_score", "n_seeds", "complete"]]
    cells = [own for _, own in probes.groupby("cell_id", sort=False)]
    axes = style.axes_of(ax, len(cells), width, 1.45)
    style.titles(axes, [names[own["cell_id"].iloc[0]] for own in cells])
    for each, own in zip(axes, cells, strict=True):
        style.log_axis(each, "x", own["D_K"], "")
        if minimised:
            style.log_axis(each, "y", [*own["mean_score"].dropna(), target], "")
        else:
            style.score_axis(each, "")
        each.axhline(target, color=style.LIGHT["soft"], linewidth=0.7, linestyle=(0, (4, 3)))
        scored = own[own["mean_score"].notna()].sort_values("D_K")
        for h in sorted(own["h"].unique()):
            line = scored[scored["h"] == h]
            whole = line[line["complete"].astype(bool)]
            each.plot(whole["D_K"], whole["mean_score"], color=style.colour_of(h), linewidth=0.8)
            for row in line.to_dict("records"):
                seeds = f"{row['n_seeds']} seed{'' if row['n_seeds'] == 1 else 's'}"
                tip = f"h = {h}, d_k = {row['d_k']}: {score} {row['mean_score']:.4f}, {seeds}"
                partly = not row["complete"]
                style.mark(
                    each, row["D_K"], row["mean_score"], tip, h, hollow=partly, markersize=3.5
                )
    style.outer_labels(axes, "D_K", f"mean {score}", same="" if minimised else "y")
    style.legend(axes[0], probes["h"].unique())
    return axes
