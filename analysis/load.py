"""What the analysis starts from: one study, and the tables rebuilt from its stored runs."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from rgr_dist.planning.portfolio import StoredSearch, stored_search
from rgr_dist.planning.tables import decision_rows, threshold_rows
from rgr_dist.store.schema import DECISIONS, THRESHOLDS
from rgr_dist.store.store import Store
from rgr_dist.study.study import Study


@dataclass(frozen=True)
class StudyResults:
    """A resolved study and its tables.

    Attributes:
        study: the resolved study; it says which cells, heads and seeds count.
        runs: columns of ``RUNS``; may hold more runs than the study asks for, since studies share
            a store.
        thresholds: columns of ``THRESHOLDS``, one row per (cell, h) that the search has touched.
        decisions: columns of ``DECISIONS``; None if the search's decisions are not known.
    """

    study: Study
    runs: pd.DataFrame
    thresholds: pd.DataFrame
    decisions: pd.DataFrame | None = None


def open_results(study: Study, store: Store) -> StudyResults:
    """The study's tables, rebuilt from its stored runs alone by replaying the search.

    Raises:
        StoreError: the store cannot be read, or the expectations kept in it are damaged.
    """
    return results_of(study, stored_search(study, store))


def results_of(study: Study, search: StoredSearch) -> StudyResults:
    """The study's tables, from its search as the store leaves it."""
    return StudyResults(
        study=study,
        runs=search.runs,
        thresholds=pd.DataFrame(threshold_rows(study, search.portfolio), columns=THRESHOLDS.names),
        decisions=pd.DataFrame(decision_rows(study, search.portfolio), columns=DECISIONS.names),
    )
