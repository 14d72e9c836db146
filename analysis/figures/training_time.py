"""The smallest width as the step limit grows."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes

from rgr_dist.analysis.figures import style
from rgr_dist.analysis.figures.law import name
from rgr_dist.analysis.wording import with_range


def training_time(
    gains: pd.DataFrame,
    *,
    ax: Axes | Sequence[Axes] | None = None,
    width: float = style.WIDE,
) -> list[Axes]:
    """D_K* and the gain of several heads, D_K(1) / D_K*, against the step limit T.

    Args:
        gains: rows of ``training_time.gains``; those of one ``family`` are joined.
    """
    axes = style.axes_of(ax, 2, width, 2.6)
    for each, of, ends, label in (
        (axes[0], "D_K", ("D_K_low", "D_K_high"), "D_K*"),
        (axes[1], "gain", ("gain_low", "gain_high"), "D_K of one head / D_K*"),
    ):
        known = gains[gains[of].notna()]
        style.log_axis(each, "x", gains["max_steps"], "step limit T")
        steps = sorted(gains["max_steps"].unique())
        each.set_xticks(steps, [f"{step / 1000:g}k" for step in steps])
        style.log_axis(each, "y", [*known[of], *known[ends[1]].dropna()], label)
        for _, own in known.groupby("family", sort=False):
            own = own.sort_values("max_steps")
            each.plot(own["max_steps"], own[of], color=style.LIGHT["soft"], linewidth=0.6, zorder=1)
            last = own.iloc[-1]
            if of == "D_K" and gains["family"].nunique() <= 12:
                name(each, (last["max_steps"], last[of]), f"({last['m']}, {last['d_model']})")
            for row in own.to_dict("records"):
                low, high = (row[end] for end in ends)
                style.bar(each, row["max_steps"], low, high, row["h_star"])
                value = with_range(row[of], low, high) if of == "D_K" else f"{row[of]:.2f}"
                tip = f"({row['m']}, {row['d_model']}), T = {row['max_steps']:,}: {label} {value}"
                is_open = row["status"] == "open"
                style.mark(each, row["max_steps"], row[of], tip, row["h_star"], hollow=is_open)
    style.legend(axes[0], gains["h_star"].dropna())
    return axes
