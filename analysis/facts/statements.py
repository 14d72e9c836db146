"""What the summary of arXiv:2502.05076 states, what a study measured of it, and a verdict."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from rgr_dist.analysis.facts.tables import by_tau
from rgr_dist.analysis.wording import plural, three_digits

Row = dict[str, Any]
OPEN = "not asked by this study"
ALIKE = 0.02
"""Share of a rank within which distances are called alike."""
CLAIMED_TAU = 0.95
"""The τ that the summary calls best."""


def statements(rows: Sequence[Row], runs: Sequence[Row], arm: str) -> list[Row]:
    """The four statements, each with ``measured`` and ``verdict``.

    Args:
        rows: of ``rgr_dist.analysis.facts.tables.rows_of_facts``.
        runs: of ``rgr_dist.analysis.facts.tables.runs``.
        arm: what tells the settings apart.
    """
    return [
        _follows(rows, arm),
        _routes(rows, arm),
        _matches(runs),
        _inflates(runs),
    ]


def _follows(rows: Sequence[Row], arm: str) -> Row:
    """Of two widths, the one whose doubling does more: the slope of the frontier."""
    told = {"statement": "Capacity follows d_head,vo, not d_head,qk"}
    slopes = []
    for own in _by_cell(rows).values():
        found = [(row[arm], row["d_vo"]) for row in own if row["d_vo"]]
        if arm == "d_qk" and len({width for width, _ in found}) > 1:
            x, y = np.log(np.array(found, dtype=np.float64)).T
            slopes.append(float(np.polyfit(x, y, 1)[0]))
    if not slopes:
        return told | {"measured": "one d_qk in each cell", "verdict": OPEN}
    mean = float(np.mean(slopes))
    measured = (
        f"twice the d_qk changes the smallest d_vo by {2**mean - 1:+.0%}, mean of "
        f"{plural(len(slopes), 'cell')} ({2 ** min(slopes) - 1:+.0%} to "
        f"{2 ** max(slopes) - 1:+.0%}); were the two alike, by −50%"
    )
    verdict = "supported" if max(abs(slope) for slope in slopes) < 0.5 else "mixed"
    return told | {"measured": measured.replace("-", "−"), "verdict": verdict}


def _routes(rows: Sequence[Row], arm: str) -> Row:
    """Whether d_qk saves d_vo up to some width, and nothing beyond it."""
    told = {"statement": "d_head,qk routes: a little is needed, more is neutral or worse"}
    knees, worse, cells = [], 0, 0
    for own in _by_cell(rows).values():
        found = sorted((row[arm], row["d_vo"]) for row in own if row["d_vo"])
        if arm != "d_qk" or len(found) < 3:
            continue
        cells += 1
        least = min(width for _, width in found)
        knees.append(next(at for at, width in found if width <= math.ceil(1.1 * least)))
        worse += found[-1][1] > math.ceil(1.1 * least)
    if not cells:
        return told | {"measured": "fewer than three d_qk in each cell", "verdict": OPEN}
    largest = max(row[arm] for row in rows)
    measured = (
        "the smallest d_vo is within 10% of its least from d_qk = "
        f"{min(knees)} to {max(knees)} on, of up to {largest}; at the largest d_qk it is higher "
        f"again in {worse} of {plural(cells, 'cell')}"
    )
    verdict = "supported" if max(knees) < largest else "mixed"
    return told | {"measured": measured, "verdict": verdict}


def _matches(runs: Sequence[Row]) -> Row:
    """At which tau the 0/1 tensor's rank is nearest to that of the logits."""
    told = {"statement": "τ = 0.95 matches rank best"}
    if not runs:
        return told | {"measured": "no run", "verdict": OPEN}
    at = by_tau(list(runs))
    least = min(row["gap"] for row in at)
    best = [row["tau"] for row in at if row["gap"] <= least + 1e-9]
    claimed = next(row for row in at if row["tau"] == CLAIMED_TAU)
    most = max(row["gap"] for row in at)
    typical = float(np.mean([row["rank_logits"] for row in runs]))
    measured = (
        f"|rank softmax≥τ(L) − rank L|, both from unfoldings, is least at τ = "
        f"{', '.join(f'{tau:g}' for tau in best)} ({three_digits(least)}); {claimed['gap']:.2f} at "
        f"0.95 and at most {most:.2f}, means of {plural(len(runs), 'layer')}, whose rank L is "
        f"{typical:.1f}"
    )
    if most - least < ALIKE * typical:
        verdict = "not told apart, for the rank hardly changes with τ"
    else:
        verdict = "supported" if CLAIMED_TAU in best else "not supported"
    return told | {"measured": measured, "verdict": verdict}


def _inflates(runs: Sequence[Row]) -> Row:
    """Layers whose argmax has provably more rank than their logits can have."""
    told = {"statement": "Argmax and softmax inflate rank"}
    if not runs:
        return told | {"measured": "no run", "verdict": OPEN}
    above = [row for row in runs if row["rank_argmax"] > row["rank_bound"]]
    most = max((row["rank_argmax"] / row["rank_bound"] for row in runs), default=0.0)
    measured = (
        "rank of argmax(L) from below exceeds the bound of Prop. 3.5 on rank(L) in "
        f"{len(above)} of {plural(len(runs), 'layer')}, at most {three_digits(most)} times; the "
        f"logits’ own exceeds it in {sum(row['rank_logits'] > row['rank_bound'] for row in runs)}"
    )
    return told | {"measured": measured, "verdict": "supported" if above else "not seen"}


def _by_cell(rows: Sequence[Row]) -> dict[str, list[Row]]:
    own = defaultdict(list)
    for row in rows:
        own[row["cell_id"]].append(row)
    return own
