"""Layers side by side: what each caches for a token to hold a graph."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes

from rgr_dist.analysis.figures import style
from rgr_dist.analysis.wording import with_range
from rgr_dist.paper import capacity_scale


def layers(
    costs: pd.DataFrame,
    *,
    ax: Axes | Sequence[Axes] | None = None,
    width: float = style.WIDE,
) -> list[Axes]:
    """Numbers cached for each token against m′ log₂ m / d_model, a panel for each layer.

    The first layer's line stands in every panel.

    Args:
        costs: rows of ``layers.costs``, each size within one step limit.
    """
    sizes = costs[["m", "d_model", "n_edges"]].itertuples(index=False)
    costs = costs.assign(scale=[capacity_scale(*map(int, size)) for size in sizes])
    seen = costs[costs["cached"].notna() | costs["cached_low"].notna()]
    models = [*dict.fromkeys(seen["model"])]
    axes = style.axes_of(ax, len(models), width, 1.5)
    ends = [v for name in ("cached", "cached_low", "cached_high") for v in seen[name].dropna()]
    for each, model in zip(axes, models, strict=True):
        each.set_title(model)
        style.log_axis(each, "x", seen["scale"], "")
        style.log_axis(each, "y", ends, "")
        for name in dict.fromkeys((models[0], model)):
            line = seen[(seen["model"] == name) & seen["cached"].notna()].sort_values("scale")
            dashes = "solid" if name == model else (0, (4, 3))
            ink = style.LIGHT["soft"]
            each.plot(line["scale"], line["cached"], color=ink, linewidth=0.7, linestyle=dashes)
        for row in seen[seen["model"] == model].to_dict("records"):
            tip = f"({row['m']}, {row['d_model']}), {model}: "
            h, low, high = row["cached_h"], row["cached_low"], row["cached_high"]
            if pd.isna(row["cached"]):
                style.bound(each, row["scale"], low, f"{tip}at least {low}")
                continue
            style.bar(each, row["scale"], low, high, h)
            tip += f"{with_range(row['cached'], low, high)} cached, h = {h}, d_k = "
            style.mark(each, row["scale"], row["cached"], f"{tip}{row['cached_d_k']}", h)
    style.outer_labels(axes, "m′ log₂ m / d_model", "numbers cached")
    style.legend(axes[0], seen["cached_h"].dropna())
    return axes
