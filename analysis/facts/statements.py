"""What the summary of arXiv:2502.05076 states, what a study measured of it, and a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rgr_dist.analysis.facts.tables import by_tau

Row = dict[str, Any]
Frontier = list[tuple[int, int]]
"""The smallest passing d_vo of each d_qk of a cell: (d_qk, d_vo), by d_qk."""
OPEN = "not asked by this study"
ALIKE = 0.02
"""If distances differ by less than this share of the logits' rank, they are called alike."""
CLAIMED_TAU = 0.95
"""The τ that the summary calls best."""


def statements(rows: Sequence[Row], runs: Sequence[Row], arm: str) -> list[Row]:
    """The four statements, each with a ``verdict`` and the numbers that it follows from.

    ``sections/statements.html.j2`` says what the numbers are.

    Args:
        rows: of ``rgr_dist.analysis.facts.tables.rows_of_facts``.
        runs: of ``rgr_dist.analysis.facts.tables.runs``.
        arm: the width that tells the settings apart.
    """
    frontiers: dict[str, Frontier] = {}
    for row in rows:
        if arm == "d_qk" and row["d_vo"]:
            frontiers.setdefault(row["cell_id"], []).append((row[arm], row["d_vo"]))
    sorted_frontiers = [sorted(frontier) for frontier in frontiers.values()]
    largest = max((row[arm] for row in rows), default=0)
    return [
        {"statement": "Capacity follows d_head,vo, not d_head,qk", **_follows(sorted_frontiers)},
        {
            "statement": "d_head,qk routes: a little is needed, more is neutral or worse",
            **_routes(sorted_frontiers, largest),
        },
        {"statement": "τ = 0.95 matches rank best", **_matches(runs)},
        {"statement": "Argmax and softmax inflate rank", **_inflates(runs)},
    ]


def _follows(frontiers: Sequence[Frontier]) -> Row:
    """How much d_vo changes along the frontier when d_qk doubles, from the frontier's slope."""
    logs = [np.log(frontier).T for frontier in frontiers if len(frontier) > 1]
    slopes = [float(np.polyfit(d_qk, d_vo, 1)[0]) for d_qk, d_vo in logs]
    if not slopes:
        return {"verdict": OPEN}
    ends = float(np.mean(slopes)), min(slopes), max(slopes)
    changes = (2**slope - 1 for slope in ends)
    steepest = round(max(abs(slope) for slope in slopes), 9)
    verdict = "supported" if steepest < 0.5 else "mixed"
    return {
        "verdict": verdict,
        "cells": len(slopes),
        **dict(zip(("change", "change_low", "change_high"), changes, strict=True)),
    }


def _routes(frontiers: Sequence[Frontier], largest: int) -> Row:
    """Whether more d_qk saves d_vo up to some width, and none beyond it."""
    knees, worse = [], 0
    for found in frontiers:
        if len(found) >= 3:
            least = min(width for _, width in found)
            near = [at for at, width in found if 10 * width <= 11 * least]
            knees.append(near[0])
            worse += near[-1] < found[-1][0]
    if not knees:
        return {"verdict": OPEN}
    return {
        "verdict": "supported" if max(knees) < largest else "mixed",
        "cells": len(knees),
        "first_knee": min(knees),
        "last_knee": max(knees),
        "largest": largest,
        "worse": worse,
    }


def _matches(runs: Sequence[Row]) -> Row:
    """The tau at which the 0/1 tensor's rank is nearest to that of the logits."""
    if not runs:
        return {"verdict": OPEN}
    gaps = {row["tau"]: row["gap"] for row in by_tau(list(runs))}
    least, most = min(gaps.values()), max(gaps.values())
    best = [tau for tau, gap in gaps.items() if gap <= least + 1e-9]
    typical = float(np.mean([row["rank_logits"] for row in runs]))
    if most - least < ALIKE * typical:
        verdict = "undecided, since the rank hardly changes with τ"
    else:
        verdict = "supported" if CLAIMED_TAU in best else "not supported"
    return {
        "verdict": verdict,
        "layers": len(runs),
        "best_tau": ", ".join(f"{tau:g}" for tau in best),
        "gap": least,
        "claimed_gap": gaps[CLAIMED_TAU],
        "largest_gap": most,
        "rank_logits": typical,
    }


def _inflates(runs: Sequence[Row]) -> Row:
    """How many layers have an argmax whose rank provably exceeds what their logits can have."""
    if not runs:
        return {"verdict": OPEN}
    times = [row["rank_argmax"] / row["rank_bound"] for row in runs]
    above = sum(ratio > 1 for ratio in times)
    return {
        "verdict": "supported" if above else "not seen",
        "layers": len(runs),
        "above": above,
        "most": max(times),
        "logits_above": sum(row["rank_logits"] > row["rank_bound"] for row in runs),
    }
