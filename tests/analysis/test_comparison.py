"""Our cells beside the paper's: which are compared, and when they agree."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from analysis.comparison import compare, laws_for
from analysis.runs import cost
from analysis.thresholds import best
from rgr_dist import paper


@pytest.mark.parametrize(
    ("d_k", "agrees"), [(4, True), (5, True), (6, True), (3, False), (7, False)]
)
def test_agreement_is_one_step_of_d_k(made_up: SimpleNamespace, d_k: int, agrees: bool) -> None:
    study = made_up.study_of([(64, 16)], heads=[4])
    rows = [made_up.threshold_row(study.cells[0], 4, d_k)]
    results = made_up.results_of(study, [], rows)
    (row,) = compare(best(results.thresholds, results.runs, study), study).to_dict("records")
    assert (row["difference"], row["step"]) == (4 * d_k - 20, 4)
    assert row["agrees"] == agrees


def test_cells_the_paper_lacks_are_left_out_and_open_ones_have_no_verdict(
    made_up: SimpleNamespace,
) -> None:
    study = made_up.study_of([(64, 16), (96, 24)], heads=[4])
    results = made_up.results_of(study, [], [])
    (row,) = compare(best(results.thresholds, results.runs, study), study).to_dict("records")
    assert (row["m"], row["paper_D_K"], row["paper_d_k"]) == (64, 20, 5)
    assert pd.isna(row["agrees"])
    assert pd.isna(row["difference"])


def test_wide_cells_are_held_against_the_fit_of_the_wide_ones(made_up: SimpleNamespace) -> None:
    def theirs(*places: tuple[int, int], **search: Any) -> dict[str, paper.PublishedLaw]:
        return laws_for(made_up.study_of(list(places), **search))

    assert theirs((64, 16), (128, 32))["D_K"].slope == 0.966
    assert theirs((128, 16), (128, 32))["D_K"].slope == 1.19
    assert theirs((64, 16), mode="grid", heads=[1], D_K=[8]) == {}


def test_what_a_study_took_holds_its_retests_and_their_seeds(made_up: SimpleNamespace) -> None:
    study = made_up.study_of([(64, 16)], heads=[1], retest_steps=4, extra_seeds=5)
    (cell,) = study.cells
    rows = [made_up.run_row(cell, 1, 20, seed, 0.9) for seed in (0, 9, 14, 15)]
    rows.append(made_up.run_row(study.longer(cell), 1, 20, 0, 0.9))
    taken = cost(made_up.results_of(study, rows, []).runs, study).iloc[0]
    assert (taken["runs"], taken["probes"], taken["spared"]) == (4, 1, 8)
    assert taken["steps"] == sum(row["steps"] for row in rows[:3] + rows[4:])
