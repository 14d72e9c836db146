"""From stored rows to the tables of a study, without Ray or torch."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rgr_dist.planning.budgets import at_larger_limits, smaller_limits
from rgr_dist.planning.first_guesses import Expectation, papers_expectation, record
from rgr_dist.planning.portfolio import (
    Feed,
    StoredSearch,
    left_by_failures,
    open_portfolio,
    plan_cell,
    seed_test,
    shown_arms,
    stored_search,
)
from rgr_dist.planning.tables import asked_probes, decision_rows, threshold_rows
from rgr_dist.search.protocol import Budget, Probe, ProbeKey, Transition
from rgr_dist.store.row import lost_rows
from rgr_dist.store.schema import DECISIONS, THRESHOLDS
from rgr_dist.store.store import Store
from rgr_dist.study.cell import Cell
from rgr_dist.study.errors import StudyError
from rgr_dist.study.run import Run
from rgr_dist.study.search import Search
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import parse_study
from tests.planning.made_up_runs import WIDTHS, run_row, runs_of, study_of, trained


def thresholds(study: Study, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return threshold_rows(study, open_portfolio(study, runs_of(rows)))


def test_the_tables_have_the_columns_and_types_of_their_schemas() -> None:
    study = study_of()
    portfolio = open_portfolio(study, runs_of(trained(study)))
    for rows, schema in (
        (threshold_rows(study, portfolio), THRESHOLDS),
        (decision_rows(study, portfolio), DECISIONS),
    ):
        assert rows
        for row in rows:
            of_facts = {"d_vo", *(name for name in schema.names if name.startswith("D_V"))}
            assert set(schema.names) - of_facts <= set(row)
        pa.Table.from_pylist(rows, schema=schema)


def test_the_thresholds_table_has_a_row_per_cell_and_head_in_the_studys_order() -> None:
    study = study_of(
        [{"m": [16, 32], "d_model": 8}, {"m": 16, "d_model": 4}], heads=[8, 1, 2], confirm_seeds=5
    )
    table = thresholds(study, trained(study))
    assert [(row["m"], row["d_model"], row["h"]) for row in table] == [
        (m, d_model, h) for m, d_model in ((16, 8), (32, 8), (16, 4)) for h in (8, 1, 2)
    ]
    assert {row["h"]: row["d_k"] for row in table} == WIDTHS
    cells = {cell.cell_id: cell for cell in study.cells}
    for row in table:
        cell = cells[row["cell_id"]]
        assert (row["model"], row["graph"], row["degree"]) == ("max", "permutation", 1)
        assert (row["n_edges"], row["max_steps"]) == (cell.m, cell.training.max_steps)
        assert (row["mean_score"], row["n_seeds"], row["limited_by"]) == (1.0, 2, None)
        assert row["because"] == f"passes at d_k = {row['d_k']}, fails at {row['d_k'] - 1}"
        assert (row["confirmed"], row["fresh_mean"], row["fresh_seeds"]) == (True, 1.0, 5)
        assert row["D_K_first"] == row["D_K"]
        assert row["D_K"] == row["h"] * row["d_k"] == row["D_K_low"] == row["D_K_high"]
        certificate = json.loads(row["certificate"])
        sides = {"d_k": row["d_k"], "D_K": row["D_K"], "mean_score": 1.0, "n_seeds": 2}
        assert certificate["pass"] == sides
        assert certificate["fail"] == {
            "d_k": row["d_k"] - 1,
            "D_K": row["h"] * (row["d_k"] - 1),
            "mean_score": 0.5,
            "n_seeds": 2,
        }


def test_a_study_with_no_runs_is_open_everywhere() -> None:
    study = study_of()
    table = thresholds(study, [])
    assert {row["status"] for row in table} == {"open"}
    assert {row[key] for row in table for key in ("d_k", "D_K", "certificate")} == {None}
    assert decision_rows(study, open_portfolio(study, runs_of([]))) == []


def test_decisions_are_numbered_within_their_cell() -> None:
    study = study_of([{"m": [16, 32], "d_model": 8}])
    portfolio = open_portfolio(study, runs_of(trained(study)))
    table = decision_rows(study, portfolio)
    for cell in study.cells:
        own = [row for row in table if row["cell_id"] == cell.cell_id]
        assert [row["step"] for row in own] == list(range(len(own)))
        for row, decision in zip(own, portfolio.state(cell.cell_id).decisions, strict=True):
            of_cell = ("m", "d_model", "degree", "max_steps")
            sizes = (cell.m, cell.d_model, cell.graph.degree, cell.training.max_steps)
            assert tuple(row[name] for name in of_cell) == sizes
            assert (row["h"], row["d_k"]) == (decision.arm, decision.value)
            told = ("want", "first_seed", "reason", "verdict", "mean_score", "n_seeds", "evidence")
            assert [row[name] for name in told] == [getattr(decision, name) for name in told]
    assert all(row["D_K"] == row["h"] * row["d_k"] for row in table)


@pytest.mark.parametrize("model", ["max", "value"])
def test_a_probe_is_judged_by_the_studys_target_and_seeds(model: str) -> None:
    search = {"heads": [1], "seeds": 4, "extra_seeds": 6, "target": 0.25}
    cells = [{"m": 16, "d_model": 8}]
    study = parse_study({"name": "x", "model": model, "cells": cells, "search": search})
    test = seed_test(study)
    assert (test.target, test.seeds, test.extra) == (0.25, 4, 6)
    assert (test.minimise, test.high) == ((True, None) if model == "value" else (False, 1.0))


@pytest.mark.parametrize("score", [None, 0.4, 1.0])
def test_a_run_that_diverged_counts_as_zero(score: float | None) -> None:
    study = study_of()
    (cell,) = study.cells
    rows = [run_row(cell, 2, 4, seed, score=score, stop_reason="diverged") for seed in (0, 1)]
    portfolio = open_portfolio(study, runs_of(rows))
    assert portfolio.scores(cell.cell_id, ProbeKey(2, 4)) == {0: 0.0, 1: 0.0}


def failed_first_probe(study: Study) -> tuple[Probe, list[dict[str, Any]]]:
    """The probe that a study asks for first, and rows of its runs, which failed."""
    (cell,) = study.cells
    first = open_portfolio(study, runs_of([])).ask()
    assert isinstance(first, Probe)
    lost = {"score": None, "stop_reason": "failed", "error": "killed"}
    return first, [run_row(cell, first.arm, first.value, seed, **lost) for seed in (0, 1)]


def test_a_run_that_failed_is_no_evidence_and_can_be_tried_again() -> None:
    study = study_of()
    first, failed = failed_first_probe(study)
    portfolio = open_portfolio(study, runs_of(failed), retry_failed=True)
    assert portfolio.scores(first.cell, first.key) == {}
    assert portfolio.ask() == first


def test_a_run_that_failed_leaves_its_head_open_and_the_others_are_searched() -> None:
    study = study_of()
    first, failed = failed_first_probe(study)
    table = {row["h"]: row for row in thresholds(study, trained(study, failed))}
    lost = table.pop(first.arm)
    assert (lost["status"], lost["d_k"], lost["because"]) == ("open", None, "a run failed")
    state = open_portfolio(study, runs_of(trained(study, failed))).state(first.cell)
    assert (state.is_done, state.is_settled) == (True, False)
    assert {h: row["d_k"] for h, row in table.items()} == {
        h: width for h, width in WIDTHS.items() if h != first.arm
    }


@pytest.mark.parametrize("seed", [2, 57])
def test_a_failed_run_of_a_seed_that_another_study_asked_for_changes_nothing(seed: int) -> None:
    study = study_of()
    first, _ = failed_first_probe(study)
    lost = {"score": None, "stop_reason": "failed", "error": "killed"}
    stray = run_row(study.cells[0], first.arm, first.value, seed, **lost)
    runs = runs_of(trained(study, [stray]))
    search = StoredSearch(runs, [], {}, open_portfolio(study, runs))
    assert threshold_rows(study, search.portfolio) == thresholds(study, trained(study))
    assert left_by_failures(study, search) == 0


def test_the_failed_runs_that_keep_a_setting_open_are_counted() -> None:
    study = study_of()
    _, failed = failed_first_probe(study)
    runs = runs_of(trained(study, failed))
    search = StoredSearch(runs, [], {}, open_portfolio(study, runs))
    assert left_by_failures(study, search) == 1, "the probe's second seed was not needed yet"


def test_runs_of_cells_that_the_study_lacks_are_passed_over() -> None:
    study = study_of()
    others = study_of([{"m": 32, "d_model": 8}])
    assert thresholds(study, trained(others)) == thresholds(study, [])


def test_studies_that_share_cells_share_runs() -> None:
    """A wider study over the same cell trains only what the first did not."""
    narrow = study_of(heads=[2, 8], keep_within=0.1, intervals=False)
    wide = study_of([{"m": 16, "d_model": 8}, {"m": 32, "d_model": 8}])
    rows = trained(narrow)
    both = trained(wide, rows)
    addresses = [row["run_id"] for row in both]
    assert len(set(addresses)) == len(addresses)
    assert thresholds(wide, both) == thresholds(wide, trained(wide))
    asked_alone = {row["run_id"] for row in trained(wide)}
    assert set(addresses) & asked_alone == asked_alone


def test_a_study_of_fewer_seeds_reads_the_runs_of_one_of_more() -> None:
    more, fewer = study_of(seeds=5), study_of(seeds=2)
    rows = trained(more)
    assert trained(fewer, rows) == rows
    assert thresholds(fewer, rows) == thresholds(fewer, trained(fewer))


def test_limits_follow_the_law_unless_they_are_given() -> None:
    cell = Cell(m=64, d_model=16)
    search = study_of(max_D_K=None, heads=[1, 3, 64]).search
    limits = {h: axis[-1] for h, axis in plan_cell(cell, search).axes.items()}
    assert limits == {1: 96, 3: 32, 64: 4}  # at least 4 widths a head
    plan = plan_cell(cell, study_of(max_D_K=50, heads=[1, 3]).search)
    assert plan.axes == {1: range(1, 51), 3: range(1, 17)}


def test_projected_heads_are_searched_up_to_d_model_alone() -> None:
    cell = Cell(m=512, d_model=16, model="ours")
    heads = Search(heads=(1, 32, 64))
    limits = {h: axis[-1] for h, axis in plan_cell(cell, heads).axes.items()}
    assert limits == {1: 16, 32: 16, 64: 16}
    narrow = Search(heads=(1, 32, 64), max_D_K=640)
    assert plan_cell(cell, narrow).axes[64] == range(1, 11)
    every = plan_cell(cell, Search(heads="all", max_D_K=40)).axes
    assert (every[1], every[40]) == (range(1, 17), range(1, 2))


def test_the_widest_heads_are_tried_alone() -> None:
    study = study_of(mode="widest", max_D_K=None, heads=[1, 2])
    d_model = study.cells[0].d_model
    rows = trained(study, passes=lambda probe: probe.arm == 2)
    assert {(row["h"], row["d_k"]) for row in rows} == {(1, d_model), (2, d_model)}
    state = open_portfolio(study, runs_of(rows)).state(study.cells[0].cell_id)
    assert [state.result(h).status for h in (1, 2)] == ["censored", "found"]


def test_constructions_are_decided_for_every_draw_and_pass_where_all_are_exact() -> None:
    keys = {"mode": "widest", "heads": [1, 2], "seeds": 4, "target": 0.8}
    model = ["max", {"construction": "one-head"}, {"construction": "ours"}]
    cells = [{"m": 16, "d_model": 8}]
    study = parse_study({"name": "x", "model": model, "cells": cells, "search": keys})
    rows = trained(study, passes=lambda probe: False)
    asked = Counter((row["cell_id"], row["h"]) for row in rows)
    by_max, one_head, ours = (cell.cell_id for cell in study.cells)
    assert asked[by_max, 1] == asked[by_max, 2] == 2  # the rest cannot save them
    assert [asked[one_head, 1], asked[ours, 1], asked[ours, 2], asked[one_head, 2]] == [4, 4, 4, 0]
    almost = [row | {"score": 0.9 if row["seed"] == 0 else 1.0} for row in rows]
    found = {(row["cell_id"], row["h"]): row["status"] for row in thresholds(study, almost)}
    assert found[one_head, 1] == found[ours, 2] == "censored"


def test_a_grid_trains_the_listed_widths_that_a_head_divides() -> None:
    study = study_of(mode="grid", max_D_K=None, heads=[1, 2, 8], D_K=[4, 8, 16])
    asked = {(row["h"], row["h"] * row["d_k"], row["seed"]) for row in trained(study)}
    widths = {1: (4, 8, 16), 2: (4, 8, 16), 8: (8, 16)}
    assert asked == {(h, D_K, seed) for h in widths for D_K in widths[h] for seed in (0, 1)}


def test_a_head_that_failed_wider_than_the_margin_is_told_so() -> None:
    study = study_of(heads=[1, 2], intervals=False, keep_within=0.1)
    rows = trained(study, passes=lambda probe: probe.arm == 2 and probe.value >= 4)
    state = open_portfolio(study, runs_of(rows)).state(study.cells[0].cell_id)
    low, because = state.brackets[1].low, state.result(1).because
    assert low > 9
    near = "near the best, D_K = 8 (within 10% or one step)"
    assert because == f"fails at d_k = {low}, so at every d_k ≤ 9, those {near}"


@pytest.mark.parametrize("schedule", ["constant", "cosine"])
def test_a_converged_run_stands_for_a_longer_one_unless_its_rate_looks_ahead(schedule: str) -> None:
    cells = [{"m": 16, "d_model": 8, "training": {"schedule": schedule}}]
    study = study_of(cells, retest_steps=2)
    short, long = study.cells
    row = run_row(short, 1, 9, 0) | {
        "steps": short.training.check_every,
        "stop_reason": "converged",
        "max_steps": short.training.max_steps,
        "trained_to": None,
    }
    larger = at_larger_limits(study, row)
    if schedule == "cosine":
        assert (larger, smaller_limits(study, long)) == ([], [])
        return
    (longer,) = larger
    assert longer["run_id"] == Run(cell=long, h=1, d_k=9, seed=0).run_id
    limit = short.training.max_steps
    assert (longer["max_steps"], longer["trained_to"]) == (2 * limit, limit)
    assert (longer["steps"], longer["seconds"]) == (row["steps"], 0)
    own = Run(cell=long, h=1, d_k=9, seed=0)
    assert (longer["cell_id"], longer["config"]) == (long.cell_id, own.config_json)
    assert at_larger_limits(study, row | {"stop_reason": "diverged"})
    assert smaller_limits(study, long) == [limit]
    assert at_larger_limits(study, row | {"stop_reason": "max_steps"}) == []
    (as_bad,) = at_larger_limits(study, row | {"stop_reason": "diverged", "score": None})
    assert as_bad == longer | {"stop_reason": "diverged", "score": None}
    assert at_larger_limits(study, row | {"steps": row["steps"] + 1}) == []
    assert at_larger_limits(study, longer) == []


def test_what_a_search_uses_does_not_depend_on_what_else_is_stored() -> None:
    study = study_of(seeds=4)
    (cell,) = study.cells
    rows = trained(study)
    known = {(row["h"], row["d_k"], row["seed"]) for row in rows}
    others = [
        run_row(cell, h, d_k, seed, score=1.0 if d_k >= WIDTHS[h] else 0.5)
        for h in WIDTHS
        for d_k in range(1, 24 // h + 1)
        for seed in range(4)
        if (h, d_k, seed) not in known
    ]
    assert others
    own = asked_probes(study, open_portfolio(study, runs_of(rows)))
    assert own == asked_probes(study, open_portfolio(study, runs_of([*others, *rows])))
    used = {(row["h"], row["d_k"], seed) for row in own for seed in range(row["n_seeds"])}
    assert used == known


def test_a_failed_run_or_one_of_another_study_is_no_evidence() -> None:
    study, other = study_of(), study_of([{"m": 32, "d_model": 8}])
    (cell,), (elsewhere,) = study.cells, other.cells
    portfolio = open_portfolio(study, runs_of([]))
    for row in (run_row(cell, 1, 5, 0, stop_reason="failed"), run_row(elsewhere, 1, 5, 0)):
        Feed(study, portfolio).tell(row)
    assert not portfolio.state(cell.cell_id).evidence
    Feed(study, portfolio).tell(run_row(cell, 1, 5, 0, stop_reason="diverged", score=None))
    assert portfolio.state(cell.cell_id).evidence == {(1, 5): {0: 0.0}}


@pytest.mark.parametrize("refuted", [False, True])
def test_a_threshold_shows_what_fresh_seeds_say_of_it(refuted: bool) -> None:
    """Width 4 passes on the first seeds; fresh ones may refute it, and 5 is the threshold then."""
    graph = {"graph": {"family": "regular", "degree": 3}}
    cells = [{"m": 16, "d_model": 8} | graph]
    study = study_of(cells, heads=[2], confirm_seeds=3, intervals=False)
    (cell,) = study.cells

    def passes(probe: Probe) -> bool:
        return probe.value >= 4 + (refuted and min(probe.seeds) >= 2)

    rows = trained(study, passes=passes)
    portfolio = open_portfolio(study, runs_of(rows))
    (row,) = threshold_rows(study, portfolio)
    size = {"m": 16, "d_model": 8, "degree": 3}
    at, told = (
        5 if refuted else 4,
        {
            "model": "max",
            "graph": "regular",
            "n_edges": 48,
            "cell_id": cell.cell_id,
            "max_steps": cell.training.max_steps,
            "h": 2,
            "status": "found",
        },
    )
    assert (size | told).items() <= row.items()
    assert (row["d_k"], row["D_K"], row["D_K_first"]) == (at, 2 * at, 8)
    assert (row["mean_score"], row["n_seeds"], row["limited_by"]) == (1, 2, None)
    assert (row["confirmed"], row["fresh_mean"], row["fresh_seeds"]) == (True, 1, 3)
    sides = json.loads(row["certificate"])
    probe = {"d_k": at, "D_K": 2 * at, "mean_score": 1}
    assert (sides["pass"], sides["fresh"]) == (probe | {"n_seeds": 2}, probe | {"n_seeds": 3})

    decided = decision_rows(study, portfolio)
    for decision in decided:
        assert (size | {"cell_id": cell.cell_id, "max_steps": told["max_steps"]}).items() <= (
            decision.items()
        )
        first, count = decision["first_seed"], decision["n_seeds"]
        scores = {row["seed"]: row["score"] for row in rows if row["d_k"] == decision["d_k"]}
        behind = [scores[seed] for seed in range(first, first + count)]
        assert decision["mean_score"] == sum(behind) / count
        assert decision["verdict"] == ("pass" if decision["mean_score"] >= 0.99 else "fail")
        assert first == (2 if decision["want"] == "fresh seeds" else 0)
    fresh = [row["d_k"] for row in decided if row["want"] == "fresh seeds"]
    assert fresh == ([4, 5] if refuted else [4])


def test_a_plan_holds_what_the_study_asks_for() -> None:
    asked = {"keep_within": 0.2, "keep_heads": [8], "intervals": "best", "confirm_seeds": 4}
    study = study_of(**asked, transition_seeds=3, transition_window=0.25)
    (cell,) = study.cells
    plan = plan_cell(cell, study.search, Expectation(30.0, 3.0, 1.7, "it"))
    assert (plan.guess_cost, plan.guess_arm, plan.spread) == (30, 3, 1.7)
    assert (plan.cell, plan.words) == (cell.cell_id, study.search.sizes.words)
    assert (plan.every_value, plan.every_arm, plan.cost) == (False, False, None)
    assert plan.budget == Budget(f"{cell.training.max_steps} steps", None, None)
    assert (plan.keep_within, plan.keep_arms, plan.intervals) == (0.2, (8,), "best")
    assert (plan.confirm_seeds, plan.transition) == (4, Transition(3, 0.25))
    assert plan_cell(cell, study_of(heads="all").search).every_arm
    grid = plan_cell(cell, study_of(mode="grid", D_K=[8, 16], max_D_K=None).search)
    assert (grid.every_value, grid.keep_within) == (True, None)
    assert plan_cell(cell, Search(heads=(1,), mode="widest")).keep_within is None
    assert plan_cell(cell, study_of(heads="all", max_D_K=1).search).axes == {1: range(1, 2)}
    own, papers = plan_cell(cell, study_of(intervals=False).search), papers_expectation(cell)
    assert own.intervals is False
    assert (own.guess_cost, own.guess_arm, own.spread) == (papers.D_K, papers.h, papers.spread)


@pytest.mark.parametrize(
    ("mode", "guides"),
    [
        (
            {},
            {1000: [None, None], 4000: [1000, None], 3000: [None, 4000], 2000: [None, 3000]},
        ),
        (
            {"mode": "grid", "D_K": [8], "max_D_K": None},
            {4000: [None, None], 3000: [None, 4000], 2000: [None, 3000], 1000: [None, 2000]},
        ),
    ],
)
def test_of_several_limits_the_least_is_searched_first_or_all_from_the_largest_down(
    mode: dict[str, Any], guides: dict[int, list[int | None]]
) -> None:
    cells = [{"m": 16, "d_model": 8, "training": {"max_steps": [1000, 2000, 3000, 4000]}}]
    study = study_of(cells, **mode)
    limits = {cell.cell_id: cell.training.max_steps for cell in study.cells}
    for cell in study.cells:
        budget = plan_cell(cell, study.search, budgets=study.cells).budget
        before = [None if name is None else limits[name] for name in budget[1:]]
        assert before == guides[cell.training.max_steps]


@pytest.mark.parametrize(
    ("asked", "widths"),
    [({}, range(1, 17)), ({"max_d_vo": 5}, range(1, 6))],
)
def test_facts_are_searched_up_to_d_model_unless_a_limit_is_given(
    asked: dict[str, Any], widths: range
) -> None:
    database = {"family": "function", "keys": 8, "queries": 4, "values": 8}
    search = {"axis": "d_vo", "per": {"d_qk": [2, 4], "h": 2}} | asked
    keys = {"name": "facts", "model": "facts", "database": database, "search": search}
    study = parse_study(keys | {"cells": [{"d_model": 16}]})
    plan = plan_cell(study.cells[0], study.search)
    assert plan.axes == {2: widths, 4: widths}
    assert plan.cost is not None
    assert plan.cost(4, 3) == 6


def test_all_heads_are_those_that_four_times_the_law_has_room_for() -> None:
    cell = Cell(m=64, d_model=16)  # the law: 64 · 6 / 16 = 24
    axes = plan_cell(cell, study_of(heads="all", max_D_K=None).search).axes
    assert axes == {h: range(1, 96 // h + 1) for h in range(1, 97)}
    assert plan_cell(cell, study_of(heads="all", max_D_K=1).search).axes == {1: range(1, 2)}
    largest = Cell(m=2**16, d_model=16)
    with pytest.raises(StudyError) as refused:
        plan_cell(largest, study_of(heads="all", max_D_K=5_001).search)
    assert str(refused.value) == (
        "search.heads: all are 5,001 of cell m=65536,d_model=16; list some, or give a max_D_K of "
        "at most 5,000"
    )
    assert len(plan_cell(largest, study_of(heads="all", max_D_K=5_000).search).axes) == 5_000


def test_the_rows_of_a_trial_are_its_own_or_read_off_for_other_limits() -> None:
    training = {"max_steps": [1000, 2000]}
    study = study_of([{"m": 16, "d_model": 8, "training": training}], heads=[1])
    short, long = study.cells
    feed = Feed(study, open_portfolio(study, runs_of([])))
    every = study.cells[0].training.check_every
    ended = {"trained_to": 2000, "steps": every}
    trained_long = run_row(long, 1, 9, 0, max_steps=2000, **ended)
    read_off = run_row(short, 1, 9, 0, max_steps=1000, **ended)
    assert feed.sorted_out([read_off, trained_long]) == ([trained_long], [read_off])
    feed.tell(read_off)
    assert feed.sorted_out([read_off, trained_long]) == ([trained_long], []), "it is known"
    alone = run_row(short, 1, 8, 0, max_steps=1000, trained_to=1000, steps=every)
    own, others = feed.sorted_out([alone])
    assert (own, others) == ([alone], at_larger_limits(study, alone))
    assert [row["cell_id"] for row in others] == [long.cell_id]


def test_of_all_heads_those_are_shown_that_were_tried_or_are_next() -> None:
    study = study_of(heads="all")
    (cell,) = study.cells
    rows = [run_row(cell, h, 1, seed, score=0.5) for h in (7, 3) for seed in (0, 1)]
    for some in ([], rows):
        state = open_portfolio(study, runs_of(some)).state(cell.cell_id)
        following = {need.key.arm for need in state.needs}
        assert shown_arms(state) == sorted(following | set(state.tried))
        assert following
    assert shown_arms(open_portfolio(study_of(), runs_of([])).state(cell.cell_id)) == [1, 2, 8]


def test_a_stored_search_begins_where_the_study_first_expected_and_with_the_dearest_cell(
    tmp_path: Path,
) -> None:
    study, store = study_of([{"m": [16, 32], "d_model": 8}]), Store(tmp_path)
    small, large = study.cells
    expected = {cell.cell_id: Expectation(7.0 + cell.m, 3.0, 1.7, "it") for cell in study.cells}
    record(study, store, expected)
    portfolio = stored_search(study, store).portfolio
    assert [*portfolio.plans] == [large.cell_id, small.cell_id]
    guesses = {cell: plan.guess_cost for cell, plan in portfolio.plans.items()}
    assert guesses == {cell: one.D_K for cell, one in expected.items()}
    first = portfolio.ask()
    assert isinstance(first, Probe)
    lost = Run(cell=large, seed=0, h=first.arm, d_k=first.value)
    store.append(lost_rows([lost], "auto", "cpu"))
    assert first.cell == large.cell_id
    assert stored_search(study, store).portfolio.ask() != first
    assert stored_search(study, store, retry_failed=True).portfolio.ask() == first
