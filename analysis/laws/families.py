"""The laws of D_V* in each setting: for each family of databases, and for all together."""

from __future__ import annotations

import itertools
import math

import pandas as pd

from rgr_dist.analysis.facts.tables import Rows, rows_of_facts
from rgr_dist.analysis.laws.scaling_laws import Law, power_law
from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.study.study import Study

SIZES_OF_A_LAW = 3
"""Fewest sizes with a threshold that a law is fitted to: two would give it no interval."""


@per_study
def laws_of_facts(results: StudyResults) -> list[Law]:
    """The laws of D_V*."""
    return laws(rows_of_facts(results), results.study)


def pooled_laws(results: StudyResults) -> list[Law]:
    """The laws of all families of databases together; none in a study of several settings."""
    if len(results.study.search.arms) > 1:
        return []
    return [law for law in laws_of_facts(results) if ", " not in law.cells]


def laws(rows: Rows, study: Study) -> list[Law]:
    """Power laws of D_V* on the number of facts, and on the rank bound of their database.

    At each setting there is one for each family of databases, and one for all families together.

    They are fitted to the cells that share the training, settings of facts and d_model of most
    cells. Each counts with the interval from its failing to its passing D_V, open above where
    censored. A law needs at least ``SIZES_OF_A_LAW`` sizes with a threshold.
    """
    sizes = study.search.sizes
    arm = sizes.shown(sizes.arm)
    frame = pd.DataFrame(rows)
    protocols = {cell.cell_id: (cell.training, cell.facts, cell.d_model) for cell in study.cells}
    most = max(protocols.values(), key=[*protocols.values()].count)
    usual = [cell_id for cell_id, protocol in protocols.items() if protocol == most]
    frame = frame[frame["cell_id"].isin(usual) & frame["status"].isin(["found", "censored"])]
    frame = frame.assign(
        D_V_passes=frame["D_V"].astype("float64").fillna(math.inf),
        D_V_fails=frame["D_V_fails"].astype("float64"),
    )
    fitted = []
    arms = () if study.search.arms == "all" else study.search.arms
    families = list(dict.fromkeys(frame["database"]))
    groups: list[str | None] = [None, *families] if len(families) > 1 else [None]
    predictors = (
        ("facts", "number of facts", "facts"),
        ("rank", "rank bound of the database", "rank_high"),
    )
    for setting, family in itertools.product(arms, groups):
        own = frame[frame[arm] == setting]
        where, name_of = f"{arm} = {setting}", f"{arm}={setting}"
        if family is not None:
            own = own[own["database"] == family]
            where, name_of = f"{where}, {family}", f"{name_of}_{family}"
        for name, predictor, column in predictors:
            if own.loc[own["status"] == "found", column].nunique() < SIZES_OF_A_LAW:
                continue
            ends = ("D_V_fails", "D_V_passes")
            law = power_law(f"D_V_{name}_{name_of}", ("D_V*", predictor), where, own, column, ends)
            fitted.append(law)
    return fitted
