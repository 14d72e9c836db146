"""The published figures agree with each other, and the comparison says what it should."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from analysis import paper
from analysis.provenance import cost
from analysis.thresholds import best
from rgr_dist.study.yaml_file import load_study


def test_the_implied_thresholds_are_table_1_times_a_power_of_two() -> None:
    assert paper.IMPLIED.keys() == paper.TABLE_1_D_K_OF_A_HEAD.keys()
    for place, (D_K, h) in paper.IMPLIED.items():
        assert paper.TABLE_1_D_K_OF_A_HEAD[place] * h == D_K
        assert h & (h - 1) == 0


def test_table_1_has_the_printed_range() -> None:
    widths = sorted(paper.TABLE_1_D_K_OF_A_HEAD.values())
    assert (widths[0], widths[-1]) == (5, 24)


def test_the_shipped_base_grid_has_table_2s_limits() -> None:
    for cell in load_study("base-grid").cells:
        assert paper.TABLE_2_MAX_STEPS[cell.m, cell.d_model] == cell.training.max_steps


@pytest.mark.parametrize(
    ("d_k", "agrees"), [(4, True), (5, True), (6, True), (3, False), (7, False)]
)
def test_agreement_is_one_step_of_d_k(made_up: SimpleNamespace, d_k: int, agrees: bool) -> None:
    study = made_up.study_of([(64, 16)], heads=[4])
    rows = [made_up.threshold_row(study.cells[0], 4, d_k)]
    results = made_up.results_of(study, [], rows)
    (row,) = paper.compare(best(results.thresholds, results.runs, study), study).to_dict("records")
    assert (row["difference"], row["step"]) == (4 * d_k - 20, 4)
    assert row["agrees"] == agrees


def test_cells_the_paper_lacks_are_left_out_and_open_ones_have_no_verdict(
    made_up: SimpleNamespace,
) -> None:
    study = made_up.study_of([(64, 16), (96, 24)], heads=[4])
    results = made_up.results_of(study, [], [])
    (row,) = paper.compare(best(results.thresholds, results.runs, study), study).to_dict("records")
    assert (row["m"], row["paper_D_K"], row["paper_d_k"]) == (64, 20, 5)
    assert pd.isna(row["agrees"])
    assert pd.isna(row["difference"])


def test_wide_cells_are_held_against_the_fit_of_the_wide_ones(made_up: SimpleNamespace) -> None:
    def theirs(*places: tuple[int, int], **search: Any) -> dict[str, paper.PublishedLaw]:
        return paper.laws_for(made_up.study_of(list(places), **search))

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
