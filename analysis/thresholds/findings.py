"""What limits the thresholds of a study, in words."""

from __future__ import annotations

import pandas as pd

from rgr_dist.analysis.wording import plural


def limits(thresholds: pd.DataFrame) -> str:
    """How many thresholds longer training is seen to lower, and how many it is not."""
    unknown, budget = ((thresholds["limited_by"] == by).sum() for by in ("unknown", "budget"))
    return (
        f"Of {plural(unknown + budget, 'threshold')}, {budget} would be lower with a larger "
        f"training budget: D_K still falls at larger step limits. The other {unknown} are the "
        "same at the two largest; what limits those, training cannot tell."
    )
