"""From stored rows to a study's search and its tables, without Ray or torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rgr_dist.planning.explain import explain_cell
from rgr_dist.planning.search_of import (
    Feed,
    StoredSearch,
    expected,
    left_by_failures,
    open_portfolio,
    plan_cell,
    stored_search,
)
from rgr_dist.planning.tables import asked_probes, threshold_rows
from rgr_dist.search.portfolio import Probe
from rgr_dist.store.store import Store
from rgr_dist.study.cell import Cell
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import parse_study
from tests.planning.made_up_runs import WIDTHS, Rows, opened, runs_of, study_of, trained
from tests.store.made_up_runs import run_row


@pytest.mark.parametrize(
    ("cell", "search", "largest"),
    [  # of the first two the law says 64 · 6 / 16 = 24, and four times that is the limit
        ({}, {"heads": [1, 3, 64]}, {1: 96, 3: 32, 64: 4}),  # at least 4 widths a head
        ({}, {"heads": [1, 3], "max_D_K": 50}, {1: 50, 3: 16}),
        ({"model": "ours", "m": 512}, {"heads": [1, 32, 64]}, {1: 16, 32: 16, 64: 16}),
        ({"model": "ours", "m": 512}, {"heads": [1, 64], "max_D_K": 640}, {1: 16, 64: 10}),
    ],
)
def test_heads_are_searched_up_to_four_times_the_law_and_projected_ones_up_to_d_model(
    cell: dict[str, Any], search: dict[str, Any], largest: dict[int, int]
) -> None:
    made = Cell(**{"m": 64, "d_model": 16} | cell)
    plan = plan_cell(made, study_of(**{"max_D_K": None} | search))
    assert plan.axes == {h: range(1, d_k + 1) for h, d_k in largest.items()}


def test_a_plan_holds_what_the_study_asks_for() -> None:
    study = study_of(keep_within=0.2, confirm_seeds=4, seeds=5, target=0.5)
    plan = plan_cell(study.cells[0], study)
    assert (plan.keep_within, plan.confirm_seeds, plan.every_value) == (0.2, 4, False)
    assert (plan.test.seeds, plan.test.target, plan.guess) == (5, 0.5, expected(study.cells[0]))
    assert plan_cell(study.cells[0], study_of()).confirm_seeds == 20, "the default"
    grid = study_of(mode="grid", heads=[1, 2], D_K=[8, 16, 22], max_D_K=None, keep_within=0.1)
    plan = plan_cell(grid.cells[0], grid)
    assert plan.axes == {1: [8, 16, 22], 2: [4, 8, 11]}
    assert (plan.every_value, plan.confirm_seeds, plan.keep_within) == (True, 0, None)
    made = Cell(m=64, d_model=8, model="ours", construction={"iterations": 9})
    assert plan_cell(made, grid).axes == {1: [8, 16, 22], 2: [4, 8, 11]}


def test_cells_of_the_largest_step_limit_come_first_and_then_the_dearest() -> None:
    training = {"max_steps": [1000, 2000]}
    study = study_of([{"m": [16, 32], "d_model": 8, "training": training}])
    cells = {cell.cell_id: cell for cell in study.cells}
    order = [(cells[one].training.max_steps, cells[one].m) for one in opened(study).plans]
    assert order == [(2000, 32), (2000, 16), (1000, 32), (1000, 16)]


def test_the_tables_follow_their_schemas_in_the_studys_order() -> None:
    cells = [{"m": [16, 32], "d_model": 8}, {"m": 16, "d_model": 4}]
    study = study_of(cells, heads=[8, 1, 2])
    found = threshold_rows(study, opened(study, trained(study)))
    assert [(row["m"], row["d_model"], row["h"]) for row in found] == [
        (m, d_model, h) for m, d_model in ((16, 8), (32, 8), (16, 4)) for h in (8, 1, 2)
    ]
    for row in found:
        h, d_k = row["h"], row["d_k"]
        assert (d_k, row["D_K"]) == (WIDTHS[h], h * d_k)
        assert (row["confirmed"], row["fresh_seeds"]) == (True, 20)
        sides = json.loads(row["certificate"])
        assert (sides["pass"]["d_k"], sides["fail"]["d_k"]) == (d_k, d_k - 1)
        assert sides["pass"]["mean_score"] == 1 > 0.99 > sides["fail"]["mean_score"]


def test_fails_above_a_threshold_stand_beside_it() -> None:
    study = study_of(mode="grid", heads=[1], D_K=[2, 4, 6, 8], max_D_K=None, seeds=1)
    (row,) = threshold_rows(
        study, opened(study, trained(study, passes=lambda p: p.value in (4, 8)))
    )
    assert (row["status"], row["d_k"], row["fails_above"]) == ("found", 4, [6])


def thresholds(study: Study, rows: Rows) -> Rows:
    return threshold_rows(study, opened(study, rows))


def test_a_study_with_no_runs_is_open_everywhere() -> None:
    table = thresholds(study_of(), [])
    assert {row["status"] for row in table} == {"open"}
    assert {row[key] for row in table for key in ("d_k", "D_K", "certificate")} == {None}
    assert {row["n_seeds"] for row in asked_probes(study_of(), opened(study_of()))} == {0}


@pytest.mark.parametrize("model", ["max", "value"])
def test_a_probe_is_judged_by_the_studys_target_and_seeds(model: str) -> None:
    cells, search = [{"m": 16, "d_model": 8}], {"heads": [1], "seeds": 4, "target": 0.25}
    study = parse_study({"name": "x", "model": model, "cells": cells, "search": search})
    test = plan_cell(study.cells[0], study).test
    assert (test.target, test.seeds) == (0.25, 4)
    assert (test.minimise, test.high) == ((True, None) if model == "value" else (False, 1.0))


@pytest.mark.parametrize("score", [None, 0.4, 1.0])
def test_a_run_that_failed_or_is_another_studys_is_no_evidence_and_one_that_diverged_scores_zero(
    score: float | None,
) -> None:
    study, other = study_of(), study_of([{"m": 32, "d_model": 8}])
    (cell,), (elsewhere,) = study.cells, other.cells
    rows = [
        run_row(1, 5, 0, cell, stop_reason="failed"),
        run_row(1, 5, 0, elsewhere),
        run_row(2, 4, 0, cell, stop_reason="diverged", score=score),
    ]
    told = opened(study)
    for row in rows:
        Feed(study, told).tell(row)
    for portfolio in (told, opened(study, rows)):
        assert portfolio.search(cell.cell_id).evidence == {(2, 4): {0: 0.0}}


def failed_first_probe(study: Study) -> tuple[Probe, Rows]:
    """The probe that a study asks for first, and rows of its runs, which failed."""
    first = opened(study).ask()
    assert isinstance(first, Probe)
    lost = {"score": None, "stop_reason": "failed", "error": "killed"}
    cell = study.cells[0]
    return first, [run_row(first.arm, first.value, seed, cell, **lost) for seed in (0, 1)]


def test_a_run_that_failed_leaves_its_head_open_until_it_is_tried_again() -> None:
    study = study_of(confirm_seeds=0)
    first, failed = failed_first_probe(study)
    again = open_portfolio(study, runs_of(failed), retry_failed=True)
    assert again.ask() == first
    runs = runs_of(trained(study, failed))
    search = StoredSearch(runs, [], open_portfolio(study, runs))
    assert left_by_failures(study, search) > 0
    assert search.portfolio.is_done
    table = {row["h"]: row for row in threshold_rows(study, search.portfolio)}
    lost = table.pop(first.arm)
    assert (lost["status"], lost["d_k"]) == ("open", None)
    assert {h: row["d_k"] for h, row in table.items()} == {
        h: width for h, width in WIDTHS.items() if h != first.arm
    }


def test_studies_that_share_cells_share_runs() -> None:
    """A wider study over the same cell trains only what the first did not."""
    narrow = study_of(heads=[2, 8], keep_within=0.1)
    wide = study_of([{"m": 16, "d_model": 8}, {"m": 32, "d_model": 8}])
    both = trained(wide, trained(narrow))
    addresses = [row["run_id"] for row in both]
    assert len(set(addresses)) == len(addresses)
    assert thresholds(wide, both) == thresholds(wide, trained(wide))


def test_rows_in_any_order_give_the_same_tables(tmp_path: Path) -> None:
    study, store = study_of(), Store(tmp_path)
    rows = trained(study)
    store.append(rows[::-2])
    store.append(rows)
    again = stored_search(study, store).portfolio
    assert threshold_rows(study, again) == thresholds(study, rows)
    assert asked_probes(study, again) == asked_probes(study, opened(study, rows))


def test_every_decision_is_explained_with_its_reason_and_its_evidence(tmp_path: Path) -> None:
    study, store = study_of(seeds=10), Store(tmp_path)
    rows = trained(study)
    store.append(rows)
    (cell,) = study.cells
    sections, facts = explain_cell(study, cell, store)
    search = opened(study, rows).search(cell.cell_id)
    assert facts["finished"]
    assert facts["runs"] == len(rows)
    assert len(sections["decisions"]) == len(search.decisions)
    for row, (need, verdict, scores) in zip(sections["decisions"], search.decisions, strict=True):
        assert (row["h"], row["d_k"], row["why"]) == (*need.key, need.why)
        assert (row["verdict"], row["ran"]) == (verdict, len(scores))
        assert row["D_K"] == row["h"] * row["d_k"]
        assert row["evidence"]
    assert {row["h"]: row["d_k"] for row in sections["heads"]} == WIDTHS
    some, _ = explain_cell(study, cell, store, [2])
    assert {row["h"] for row in some["decisions"]} == {2}
