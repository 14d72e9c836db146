"""The smallest width with other kinds of embeddings."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes

from rgr_dist.analysis.figures import style
from rgr_dist.analysis.figures.law import LINE, SCALE, draw, join, name

DASHED = (0, (5, 3))


def embeddings(table: pd.DataFrame, *, ax: Axes | None = None, width: float = style.COLUMN) -> Axes:
    """D_K* against the number of relations that share an embedding, a line for a size and limit.

    Where no embedding is shared, against the law's scale. Frozen embeddings are dashed.

    Args:
        table: rows of ``embeddings.embeddings``.
    """
    (ax,) = style.axes_of(ax, 1, width, min(3.4, 0.85 * width))
    known = table[table["D_K"].notna() | (table["D_K_low"] > 1).fillna(False)]
    trained, frozen = known[known["relations"] > 0], known[known["relations"] == 0]
    is_shared = bool((trained["relations"] > 1).any())
    x, label = ("relations", "relations that share them") if is_shared else ("scale", SCALE)
    shown = trained if is_shared else known
    style.log_axis(ax, "x", shown[x], label)
    ends = [value for name in ("D_K", "D_K_low", "D_K_high") for value in known[name].dropna()]
    style.log_axis(ax, "y", ends, "D_K*")
    if is_shared:
        for _, own in trained.groupby(["m", "d_model", "max_steps"]):
            one = own[own["D_K"].notna()].sort_values(x).iloc[:1].to_dict("records")
            for first in one:  # lines may cross, so that both ends have a name
                size = f"({first['m']}, {first['d_model']})"
                join(ax, own, x, f"{size}, {first['max_steps'] / 1000:g}k steps")
                name(ax, (float(first[x]), float(first["D_K"])), size)
        for _, own in frozen[frozen["D_K"].notna()].groupby(["m", "d_model"]):
            for row in own.sort_values("max_steps").iloc[:1].to_dict("records"):
                ax.axhline(float(row["D_K"]), linestyle=DASHED, **LINE)
                place = ax.get_xlim()[0], float(row["D_K"])
                words = f"({row['m']}, {row['d_model']}) frozen, h* = {row['h_star']}"
                name(ax, place, words)
    else:
        join(ax, trained, x, "trained")
        join(ax, frozen, x, "frozen", linestyle=DASHED)
    for row in shown.to_dict("records"):
        draw(ax, row, float(row[x]))
    style.legend(ax, shown["h_star"].dropna())
    return ax


def kinds(
    table: pd.DataFrame, *, ax: Axes | Sequence[Axes] | None = None, width: float = style.WIDE
) -> list[Axes]:
    """D_K* of each kind of rows and edges against the law's scale, a panel for each step limit.

    Args:
        table: rows of ``embeddings.embeddings``.
    """
    panels = [*dict.fromkeys(table["how"])]
    axes = style.axes_of(ax, len(panels), width, 2.4)
    table = table[table["D_K"].notna() | (table["D_K_low"] > 1).fillna(False)]
    ends = [value for name in ("D_K", "D_K_low", "D_K_high") for value in table[name].dropna()]
    kinds = table.groupby(["edges", "rows"], sort=False)
    for panel, how in zip(axes, panels, strict=True):
        style.log_axis(panel, "x", table["scale"], "")
        style.log_axis(panel, "y", ends, "")
        for i, (_, every) in enumerate(kinds):
            own, aside = every[every["how"] == how], 1.02**i
            middle = own.groupby("scale")["D_K"].median().dropna()
            panel.plot(middle.index * aside, middle, **(LINE | {"color": style.colour_of(2**i)}))
            for row in own.to_dict("records"):
                draw(panel, row, float(row["scale"]) * aside, 2**i)
        panel.set_title(how)
    style.outer_labels(axes, SCALE, "D_K*")
    names = [", ".join(str(part) for part in kind if part) for kind, _ in kinds]
    style.legend(axes[0], (), [(style.handle(2**i), name) for i, name in enumerate(names)])
    return axes
