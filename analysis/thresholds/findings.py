"""What limits the thresholds of a study, in words."""

from __future__ import annotations

import pandas as pd

from rgr_dist.analysis.wording import plural

LIMITS = {
    "optimisation": "by optimisation, since weights that pass are known at a smaller D_K",
    "budget": "by the budget of training, since D_K is smaller at larger step limits, or still "
    "falls",
    "proved": "by proof: no weights of one head are right on all pairs of any draw",
}


def limits(thresholds: pd.DataFrame) -> str:
    """How many thresholds, or ends of a search without one, each of the four limits has."""
    counts = thresholds["limited_by"].value_counts()
    known = [f"{counts[by]} {why}" for by, why in LIMITS.items() if by in counts]
    total, unknown = plural(int(counts.sum()), "threshold"), int(counts.get("unknown", 0))
    rest = f"what limits {unknown}, nobody can tell from this store"
    return f"Of {total} and ends without one: {'; '.join([*known, *[rest] * bool(unknown)])}."
