"""What the analysis starts from: one study, and the tables rebuilt from its stored runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, wraps
from typing import Any, TypeVar

import pandas as pd

from rgr_dist.planning.search_of import StoredSearch, stored_search
from rgr_dist.planning.tables import asked_probes, threshold_rows
from rgr_dist.search.portfolio import Portfolio
from rgr_dist.store.store import Store
from rgr_dist.study.study import Study

Computed = TypeVar("Computed")


@dataclass(frozen=True, eq=False)
class StudyResults:
    """A resolved study and its tables.

    Attributes:
        study: the resolved study; it says which cells, heads and seeds count.
        runs: columns of ``RUNS``; may hold more runs than the study asks for, since studies share
            a store.
        thresholds: columns of ``threshold_rows``, one row per (cell, h).
        asked: the probes that the search asks for, columns of ``asked_probes``; None if not known.
        search: the search itself; None if not known.
    """

    study: Study
    runs: pd.DataFrame
    thresholds: pd.DataFrame
    asked: pd.DataFrame | None = None
    search: Portfolio | None = None
    _computed: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def searched(self) -> pd.DataFrame:
        """The runs that the search uses, so that nothing depends on what else is stored.

        Fresh seeds are left out; runs that failed are kept.
        """
        if self.asked is None:
            return self.runs
        own = self.runs.merge(self.asked, on=[*self.asked.columns.drop("n_seeds")])
        used = (own["seed"] < own["n_seeds"]) | (own["stop_reason"] == "failed")
        return own[used].drop(columns="n_seeds").reset_index(drop=True)


def per_study(
    compute: Callable[[StudyResults], Computed],
) -> Callable[[StudyResults], Computed]:
    """Make a function of a study's results compute its table only once, when first asked for it."""

    @wraps(compute)
    def once(results: StudyResults) -> Computed:
        known = results._computed
        if compute not in known:
            known[compute] = compute(results)
        computed: Computed = known[compute]
        return computed

    return once


def open_results(study: Study, store: Store) -> StudyResults:
    """The study's tables, rebuilt from its stored runs alone by replaying the search.

    Raises:
        StoreError: the store cannot be read.
    """
    return results_of(study, stored_search(study, store))


def results_of(study: Study, search: StoredSearch) -> StudyResults:
    """The study's tables, from its search as rebuilt from the store."""
    columns = ["cell_id", "h", "d_k", "n_seeds"]
    return StudyResults(
        study=study,
        runs=search.runs,
        thresholds=pd.DataFrame(threshold_rows(study, search.portfolio)),
        asked=pd.DataFrame(asked_probes(study, search.portfolio), columns=columns).astype(
            dict.fromkeys(columns[1:], "int64")
        ),
        search=search.portfolio,
    )
