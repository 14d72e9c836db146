"""Where heads are proved impossible, hard to train, and easy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from rgr_dist.analysis.figures import style

SHAPES = {"easy": "s", "slow": "o", "hard": "D", "impossible": "X", "open": "s"}
"""The phases from the best to the worst, each with the shape that tells it without colour."""


def phases(
    rows: pd.DataFrame,
    *,
    ax: Axes | Sequence[Axes] | None = None,
    width: float = style.WIDE,
) -> list[Axes]:
    """A tile for each size, by m′ / d_model and d_model; a panel for each head count.

    Args:
        rows: of ``phases.phases``.
    """
    counts = sorted(rows["h"].unique())
    axes = style.axes_of(ax, len(counts), width, 2.0)
    for each, h in zip(axes, counts, strict=True):
        each.set_title(style.tex(f"h = {h}"))
        style.log_axis(each, "x", rows["compression"], "")
        style.log_axis(each, "y", rows["d_model"], "")
        for row in rows[rows["h"] == h].to_dict("records"):
            tip = (
                f"({row['m']}, {row['d_model']}), h = {h}: {row['phase']}; exact weights known in "
                f"{row['exact']} of {row['draws']} draws, proved impossible in {row['proved']}"
            )
            look = _look(row["phase"])
            style.mark(
                each,
                row["compression"],
                row["d_model"],
                tip,
                markersize=8,
                markeredgewidth=1,
                **look,
            )
    style.outer_labels(axes, "m′ / d_model", "d_model")
    seen = [phase for phase in SHAPES if phase in set(rows["phase"])]
    style.legend(axes[0], (), [(Line2D([], [], linestyle="none", **_look(p)), p) for p in seen])
    return axes


def _look(phase: str) -> dict[str, Any]:
    colour = style.PHASES[phase][0] if phase in style.PHASES else style.LIGHT["soft"]
    face = colour if phase in style.PHASES else style.LIGHT["page"]
    return {"marker": SHAPES[phase], "color": colour, "markerfacecolor": face}
