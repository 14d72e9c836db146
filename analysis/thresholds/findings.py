"""What limits the thresholds of a study, in words."""

from __future__ import annotations

import pandas as pd

from rgr_dist.analysis.wording import plural


def limits(thresholds: pd.DataFrame) -> str:
    """How many thresholds are known to be limited by training, and how many by capacity."""
    capacity, budget = (
        int((thresholds["limited_by"] == by).sum()) for by in ("capacity", "budget")
    )
    return (
        f"Of {plural(capacity + budget, 'threshold')}, {budget} would be lower with a larger "
        f"training budget: D_K still falls at larger step limits. The other {capacity} are the "
        "same at the two largest."
    )
