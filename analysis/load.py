"""What the analysis starts from: one study and its stored tables."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from rgr_dist.study.study import Study


@dataclass(frozen=True)
class StudyResults:
    """A resolved study and its tables, as the store holds them.

    Attributes:
        study: the resolved study; it says which cells, heads and seeds count.
        runs: columns of ``RUNS``; may hold more than the study asked for, since studies share it.
        thresholds: columns of ``THRESHOLDS``, one row per (cell, h) the search has touched.
        decisions: columns of ``DECISIONS``; None where the search left none.
    """

    study: Study
    runs: pd.DataFrame
    thresholds: pd.DataFrame
    decisions: pd.DataFrame | None = None
