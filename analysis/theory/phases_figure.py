"""Where heads of the widest useful width are proved impossible, hard to train, and easy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rgr_dist.analysis.drawing.panel import Figure, Key, Panel, Point
from rgr_dist.analysis.drawing.scales import log2_axis
from rgr_dist.analysis.page.section import Row
from rgr_dist.analysis.wording import plural

MEANS = {
    "easy": "easy: training passes within {first} steps",
    "slow": "slow: training passes, but needs up to {last} steps",
    "hard": "hard: weights exist, but training does not find them",
    "impossible": "impossible: proved, in every draw",
    "open": "open: not known to pass, and not decided in every draw",
}
"""What each phase means, from the best to the worst."""
SIDE = 31
"""Pixels between neighbouring values of d_model on the vertical axis."""


def draw_phases(rows: Sequence[Row], limits: Sequence[int]) -> Figure:
    """A panel for each head count: a tile for each size, by compression and d_model.

    Args:
        rows: of ``phases.phases``.
        limits: the study's step limits.
    """
    x = log2_axis("m′ / d_model", [row["compression"] for row in rows], pad=1.5)
    y = log2_axis("d_model", [row["d_model"] for row in rows], pad=1.5)
    height = SIDE * len({row["d_model"] for row in rows}) + SIDE // 6
    heads = sorted({row["h"] for row in rows})
    words = {"first": f"{limits[0]:,}", "last": f"{limits[-1]:,}"}
    shown = {row["phase"] for row in rows}
    return Figure(
        name="phases",
        title="Where heads can hold a graph, and where training finds it",
        caption=(
            "Heads of the widest useful width, d_k = d_model, a panel for each head count. A tile "
            "is a graph of m′ relations in d_model dimensions. Easy and slow: training passes, by "
            "its mean test F1. Hard: it does not, and weights that are right on all pairs are "
            "known in every draw. Impossible: a certificate proves for every draw that no weights "
            "of one head are right on all pairs; of several heads nothing is proved."
        ),
        panels=tuple(
            Panel(
                title=(plural(h, "head"),),
                x=x,
                y=y,
                points=tuple(_tile(row, words) for row in rows if row["h"] == h),
                height=height,
                links=True,
            )
            for h in heads
        ),
        legend=tuple(
            Key(text=text.format(**words), **_mark(phase))
            for phase, text in MEANS.items()
            if phase in shown
        ),
        hollow="",
        columns=2,
    )


def _tile(row: Row, words: Mapping[str, str]) -> Point:
    text = (
        f"({row['m']}, {row['d_model']}), {plural(row['h'], 'head')}\n"
        f"{MEANS[row['phase']].format(**words)}\n"
        f"exact weights known in {row['exact']} of {row['draws']} draws, "
        f"proved impossible in {row['proved']}"
    )
    at = {"x": row["compression"], "y": float(row["d_model"])}
    return Point(**at, text=text, **_mark(row["phase"]))


def _mark(phase: str) -> dict[str, Any]:
    return {"hollow": True} if phase == "open" else {"look": phase}
