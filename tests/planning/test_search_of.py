"""From stored rows to a study's search and its tables, without Ray or torch."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rgr_dist.planning.explain import ENDS, explain_cell
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
    rows = trained(study)
    found = threshold_rows(study, opened(study, rows))
    assert [(row["m"], row["d_model"], row["h"]) for row in found] == [
        (m, d_model, h) for m, d_model in ((16, 8), (32, 8), (16, 4)) for h in (8, 1, 2)
    ]
    for row in found:
        h, d_k = row["h"], row["d_k"]
        assert (d_k, row["D_K"]) == (WIDTHS[h], h * d_k)
        cell = next(
            one for one in study.cells if (one.m, one.d_model) == (row["m"], row["d_model"])
        )
        assert row["cell_id"] == cell.cell_id
        assert (row["model"], row["graph"], row["degree"]) == ("max", "permutation", 1)
        assert (row["n_edges"], row["max_steps"]) == (row["m"], cell.training.max_steps)
        assert (row["confirmed"], row["fresh_seeds"], row["fresh_mean"]) == (True, 20, 1)
        assert (row["mean_score"], row["n_seeds"], row["D_K_first"]) == (1, 2, h * d_k)
        assert (row["status"], row["fails_above"]) == ("found", [])
        assert row["because"]
        failed = [(cell.cell_id, h, d_k - 1) == (r["cell_id"], r["h"], r["d_k"]) for r in rows]
        assert json.loads(row["certificate"]) == {
            "pass": {"d_k": d_k, "mean_score": 1, "n_seeds": 2, "D_K": h * d_k},
            "fail": {
                "d_k": d_k - 1,
                "mean_score": 0.5,
                "n_seeds": sum(failed),
                "D_K": h * (d_k - 1),
            },
            "fresh": {"d_k": d_k, "mean_score": 1, "n_seeds": 20, "D_K": h * d_k},
        }


def test_only_the_best_has_an_interval_and_its_first_fail_and_pass_of_every_seed_are_its_ends() -> (
    None
):
    study = study_of(heads=[1, 2], seeds=4, confirm_seeds=0)
    table = {row["h"]: row for row in thresholds(study, trained(study))}
    assert [table[2][key] for key in ("D_K", "D_K_low", "D_K_high")] == [8, 8, 8]
    assert [table[1][key] for key in ("D_K", "D_K_low", "D_K_high")] == [9, None, None]


def test_a_threshold_that_fresh_seeds_refute_gives_way_to_a_larger_one() -> None:
    """Width 4 passes on the study's own seeds alone, and no width but 6 on fresh ones too."""
    study = study_of(heads=[2], seeds=2, max_D_K=12)

    def passes(probe: Probe) -> bool:
        return probe.value >= (4 if max(probe.seeds) < 2 else 6)

    (row,) = thresholds(study, trained(study, passes=passes))
    assert (row["status"], row["d_k"], row["confirmed"]) == ("found", 6, True)
    assert (row["D_K"], row["D_K_first"]) == (12, 8)
    (row,) = thresholds(study, trained(study, passes=lambda p: p.value >= 4 and max(p.seeds) < 2))
    assert (row["status"], row["d_k"], row["confirmed"]) == ("censored", None, False)
    assert (row["fresh_mean"], row["D_K"], row["D_K_first"]) == (0.5, None, 8)


def test_a_mean_error_that_is_infinite_is_none_in_a_table() -> None:
    document = {"name": "x", "model": "value", "cells": [{"m": 16, "d_model": 8}]}
    search = {"heads": [1], "seeds": 2, "mode": "grid", "D_K": [3, 4], "target": 0.25}
    study = parse_study({**document, "search": search})
    (cell,) = study.cells
    rows = [
        run_row(1, d_k, seed, cell, score=0.2 if d_k == 4 else None, stop_reason=reason)
        for d_k, reason in ((3, "diverged"), (4, "converged"))
        for seed in range(2)
    ]
    (row,) = threshold_rows(study, opened(study, rows))
    sides = json.loads(row["certificate"])
    assert (row["status"], row["d_k"], row["mean_score"]) == ("found", 4, 0.2)
    assert (sides["pass"]["mean_score"], sides["fail"]["mean_score"]) == (0.2, None)


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


def test_the_probes_of_a_search_are_listed_with_the_seeds_that_it_used() -> None:
    study = study_of(heads=[1, 2], confirm_seeds=3)
    rows = trained(study)
    (cell,) = study.cells
    more = [run_row(1, 9, seed, cell) for seed in (700, 701)]
    seeds = Counter((row["h"], row["d_k"]) for row in rows if row["seed"] < 2)
    asked = asked_probes(study, opened(study, rows + more))
    assert asked == [
        {"cell_id": cell.cell_id, "h": h, "d_k": d_k, "n_seeds": n}
        for (h, d_k), n in sorted(seeds.items())
    ]


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
        assert (row["spared"], row["mean_score"]) == (
            search.test_of(need.want).seeds - len(scores),
            1.0 if row["d_k"] >= WIDTHS[row["h"]] else 0.5,
        )
    assert [row["step"] for row in sections["decisions"]] == list(range(len(search.decisions)))
    assert {row["h"]: row["d_k"] for row in sections["heads"]} == WIDTHS
    assert all(list(row) == list(ENDS) for row in sections["heads"])
    assert facts["steps"] == 1000 * len(rows)
    assert re.findall(r"\d+", facts["found"])[:3] == ["8", "2", "4"], "D_K, h and d_k"
    assert re.findall(r"[\d.]+", facts["test"]) == ["10", "0.99"]
    assert re.findall(r"\d+", facts["start"])[0] == f"{expected(cell)[1]:.0f}"
    assert "failures" not in facts
    some, _ = explain_cell(study, cell, store, [2])
    assert {row["h"] for row in some["decisions"]} == {2}


def test_a_search_that_is_not_finished_is_explained_as_far_as_it_is(tmp_path: Path) -> None:
    study, store = study_of(confirm_seeds=0), Store(tmp_path)
    (cell,) = study.cells
    _, failed = failed_first_probe(study)
    store.append([*trained(study, failed)[:-8]])
    sections, facts = explain_cell(study, cell, store)
    assert not facts["finished"]
    assert len(facts["failures"]) == 1
    lost = [row for row in sections["decisions"] if row["verdict"] == "open"]
    assert lost
    assert {(row["ran"], row["spared"], row["mean_score"]) for row in lost} == {(0, 2, None)}
    _, facts = explain_cell(study, cell, Store(tmp_path / "empty"))
    assert ("found" in facts, facts["runs"], facts["steps"]) == (False, 0, 0)


def test_an_errors_target_is_one_not_to_exceed(tmp_path: Path) -> None:
    document = {"name": "x", "model": "value", "cells": [{"m": 16, "d_model": 8}]}
    study = parse_study(document | {"search": {"target": 0.25}})
    _, facts = explain_cell(study, study.cells[0], Store(tmp_path))
    _, of_scores = explain_cell(study_of(target=0.25), study_of().cells[0], Store(tmp_path))
    assert facts["test"].split()[-1] == of_scores["test"].split()[-1] == "0.25"
    assert facts["test"].split()[-2] != of_scores["test"].split()[-2]


def test_runs_of_a_trial_are_its_own_or_those_of_other_limits_that_are_not_known() -> None:
    training = {"max_steps": [1000, 2000, 4000]}
    study = study_of([{"m": 16, "d_model": 8, "training": training}], heads=[1])
    short, middle, long = study.cells
    early: dict[str, Any] = {"steps": 500, "stop_reason": "converged"}
    own = run_row(1, 4, 0, middle, **early)
    read_off = run_row(1, 4, 0, short, trained_to=2000, **early)
    feed = Feed(study, opened(study))
    mine, others = feed.sorted_out([own, read_off])
    assert mine == [own]
    assert [(row["max_steps"], row["trained_to"]) for row in others] == [(1000, 2000), (4000, 2000)]
    feed.tell(others[1])
    assert feed.knows(others[1])
    assert not feed.knows(own)
    assert feed.sorted_out([own, read_off]) == ([own], [read_off])
    assert others[1]["cell_id"] == long.cell_id
