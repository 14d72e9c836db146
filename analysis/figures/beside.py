"""What one side needs against what another does, cell by cell."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes

from rgr_dist.analysis.figures import style


def beside(table: pd.DataFrame, *, ax: Axes | None = None, width: float = style.COLUMN) -> Axes:
    """D_K*, or the accuracy, of each second side against that of the first; equal on the line.

    Args:
        table: of ``compare.compare``.
    """
    (ax,) = style.axes_of(ax, 1, width, width)
    of, name = ("D_K", "D_K*") if "D_K_a" in table else ("accuracy", "accuracy")
    both = table[table[f"{of}_a"].notna() & table[f"{of}_b"].notna()]
    first, seconds = table["first"].iloc[0], [*dict.fromkeys(table["second"])]
    if of == "D_K":
        style.log_axis(ax, "x", [*both["D_K_a"], *both["D_K_b"]], f"{name} of {first}")
        style.log_axis(ax, "y", [*both["D_K_a"], *both["D_K_b"]], "")
    ax.set_xlabel(style.tex(f"{name} of ") + first)
    ax.set_ylabel(style.tex(f"{name} of ") + ", ".join(seconds))
    low, high = _ends([*both[f"{of}_a"], *both[f"{of}_b"]])
    ax.axline(
        (low, low), (high, high), color=style.LIGHT["soft"], linewidth=0.7, linestyle=(0, (4, 3))
    )
    handles = []
    for i, second in enumerate(seconds):
        for row in both[both["second"] == second].to_dict("records"):
            x, y, h = row[f"{of}_a"], row[f"{of}_b"], 2**i
            if of == "D_K":
                style.bar(ax, x, row["D_K_low_b"], row["D_K_high_b"], h)
            style.mark(ax, x, y, f"{row['cell']}: {x:g} and {y:g}", h)
        handles.append((style.handle(2**i), second))
    style.legend(ax, (), handles if len(seconds) > 1 else ())
    return ax


def _ends(values: list[float]) -> tuple[float, float]:
    """The least and the largest; a pair apart if they are one, or if there is none."""
    low, high = min(values, default=1.0), max(values, default=1.0)
    return (low, high) if low < high else (low, low * 1.01)
