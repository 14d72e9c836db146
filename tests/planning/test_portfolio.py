"""From stored rows to the tables of a study, without Ray or torch."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rgr_dist.planning.budgets import at_larger_limits, smaller_limits
from rgr_dist.planning.first_guesses import record
from rgr_dist.planning.portfolio import (
    Feed,
    StoredSearch,
    left_by_failures,
    open_portfolio,
    seed_test,
    shown_arms,
    stored_search,
)
from rgr_dist.planning.tables import asked_probes, decision_rows, threshold_rows
from rgr_dist.search.protocol import Probe
from rgr_dist.store.prior import Expectation
from rgr_dist.store.row import lost_rows
from rgr_dist.store.schema import DECISIONS, THRESHOLDS
from rgr_dist.store.store import Store
from rgr_dist.study.run import Run
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import parse_study
from tests.planning.made_up_runs import WIDTHS, opened, runs_of, study_of, trained
from tests.store.made_up_runs import run_row


def test_the_tables_follow_their_schemas_in_the_studys_order() -> None:
    cells = [{"m": [16, 32], "d_model": 8}, {"m": 16, "d_model": 4}]
    study = study_of(cells, heads=[8, 1, 2])
    portfolio = opened(study, trained(study))
    found, decided = threshold_rows(study, portfolio), decision_rows(study, portfolio)
    for rows, schema in ((found, THRESHOLDS), (decided, DECISIONS)):
        of_facts = {"d_vo", *(name for name in schema.names if name.startswith("D_V"))}
        for row in rows:
            assert set(schema.names) - of_facts <= set(row)
        pa.Table.from_pylist(rows, schema=schema)
    assert [(row["m"], row["d_model"], row["h"]) for row in found] == [
        (m, d_model, h) for m, d_model in ((16, 8), (32, 8), (16, 4)) for h in (8, 1, 2)
    ]
    assert {row["h"]: row["d_k"] for row in found} == WIDTHS
    assert all(row["D_K"] == row["D_K_low"] == row["D_K_high"] for row in found)
    for cell in study.cells:
        own = [row for row in decided if row["cell_id"] == cell.cell_id]
        assert [row["step"] for row in own] == list(range(len(own)))
        for row, decision in zip(own, portfolio.state(cell.cell_id).decisions, strict=True):
            assert (row["h"], row["d_k"]) == (decision.arm, decision.value)
            assert row["D_K"] == row["h"] * row["d_k"]
            told = ("want", "first_seed", "reason", "verdict", "mean_score", "n_seeds", "evidence")
            assert [row[name] for name in told] == [getattr(decision, name) for name in told]


def thresholds(study: Study, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return threshold_rows(study, opened(study, rows))


def test_a_study_with_no_runs_is_open_everywhere() -> None:
    study = study_of()
    table = thresholds(study, [])
    assert {row["status"] for row in table} == {"open"}
    assert {row[key] for row in table for key in ("d_k", "D_K", "certificate")} == {None}
    assert decision_rows(study, opened(study)) == []


@pytest.mark.parametrize("model", ["max", "value"])
def test_a_probe_is_judged_by_the_studys_target_and_seeds(model: str) -> None:
    search = {"heads": [1], "seeds": 4, "extra_seeds": 6, "target": 0.25}
    cells = [{"m": 16, "d_model": 8}]
    study = parse_study({"name": "x", "model": model, "cells": cells, "search": search})
    test = seed_test(study)
    assert (test.target, test.seeds, test.extra) == (0.25, 4, 6)
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
        run_row(1, 5, 1, elsewhere, stop_reason="failed"),
        run_row(2, 4, 0, cell, stop_reason="diverged", score=score),
    ]
    told = opened(study)
    for row in rows:
        Feed(study, told).tell(row)
    for portfolio in (told, opened(study, rows)):
        assert portfolio.state(cell.cell_id).evidence == {(2, 4): {0: 0.0}}


def failed_first_probe(study: Study) -> tuple[Probe, list[dict[str, Any]]]:
    """The probe that a study asks for first, and rows of its runs, which failed."""
    (cell,) = study.cells
    first = opened(study).ask()
    assert isinstance(first, Probe)
    lost = {"score": None, "stop_reason": "failed", "error": "killed"}
    return first, [run_row(first.arm, first.value, seed, cell, **lost) for seed in (0, 1)]


def test_a_run_that_failed_leaves_its_head_open_until_it_is_tried_again() -> None:
    study = study_of()
    first, failed = failed_first_probe(study)
    again = open_portfolio(study, runs_of(failed), retry_failed=True)
    assert again.scores(first.cell, first.key) == {}
    assert again.ask() == first
    runs = runs_of(trained(study, failed))
    search = StoredSearch(runs, [], {}, open_portfolio(study, runs))
    assert left_by_failures(study, search) == 1, "the probe's second seed was not needed yet"
    state = search.portfolio.state(first.cell)
    assert (state.is_done, state.is_settled) == (True, False)
    table = {row["h"]: row for row in threshold_rows(study, search.portfolio)}
    lost = table.pop(first.arm)
    assert (lost["status"], lost["d_k"], lost["because"]) == ("open", None, "a run failed")
    assert {h: row["d_k"] for h, row in table.items()} == {
        h: width for h, width in WIDTHS.items() if h != first.arm
    }


@pytest.mark.parametrize("seed", [2, 57])
def test_a_failed_run_of_a_seed_that_another_study_asked_for_changes_nothing(seed: int) -> None:
    study = study_of()
    first, _ = failed_first_probe(study)
    lost = {"score": None, "stop_reason": "failed", "error": "killed"}
    stray = run_row(first.arm, first.value, seed, study.cells[0], **lost)
    runs = runs_of(trained(study, [stray]))
    search = StoredSearch(runs, [], {}, open_portfolio(study, runs))
    assert threshold_rows(study, search.portfolio) == thresholds(study, trained(study))
    assert left_by_failures(study, search) == 0


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


def test_the_widest_heads_are_tried_alone() -> None:
    study = study_of(mode="widest", max_D_K=None, heads=[1, 2])
    d_model = study.cells[0].d_model
    rows = trained(study, passes=lambda probe: probe.arm == 2)
    assert {(row["h"], row["d_k"]) for row in rows} == {(1, d_model), (2, d_model)}
    state = opened(study, rows).state(study.cells[0].cell_id)
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


@pytest.mark.parametrize("schedule", ["constant", "cosine"])
def test_a_converged_run_stands_for_a_longer_one_unless_its_rate_looks_ahead(schedule: str) -> None:
    cells = [{"m": 16, "d_model": 8, "training": {"schedule": schedule}}]
    study = study_of(cells, retest_steps=2)
    short, long = study.cells
    limit, every = short.training.max_steps, short.training.check_every
    row = run_row(1, 9, 0, short, steps=every, max_steps=limit, trained_to=None)
    larger = at_larger_limits(study, row)
    if schedule == "cosine":
        assert (larger, smaller_limits(study, long)) == ([], [])
        return
    (longer,), own = larger, Run(cell=long, h=1, d_k=9, seed=0)
    changed = {"run_id": own.run_id, "cell_id": long.cell_id, "config": own.config_json}
    changed |= {"max_steps": 2 * limit, "trained_to": limit, "seconds": 0}
    assert longer == row | changed
    assert smaller_limits(study, long) == [limit]
    assert at_larger_limits(study, row | {"stop_reason": "max_steps"}) == []
    (as_bad,) = at_larger_limits(study, row | {"stop_reason": "diverged", "score": None})
    assert as_bad == longer | {"stop_reason": "diverged", "score": None}
    assert at_larger_limits(study, row | {"steps": every + 1}) == []
    assert at_larger_limits(study, longer) == []
    (read_off,) = at_larger_limits(study, row | {"trained_to": 7 * limit})
    assert read_off["trained_to"] == 7 * limit


def test_what_a_search_uses_does_not_depend_on_what_else_is_stored() -> None:
    study = study_of(seeds=4)
    (cell,) = study.cells
    rows = trained(study)
    known = {(row["h"], row["d_k"], row["seed"]) for row in rows}
    others = [
        run_row(h, d_k, seed, cell, score=1.0 if d_k >= WIDTHS[h] else 0.5)
        for h in WIDTHS
        for d_k in range(1, 24 // h + 1)
        for seed in range(4)
        if (h, d_k, seed) not in known
    ]
    assert others
    own = asked_probes(study, opened(study, rows))
    assert own == asked_probes(study, opened(study, [*others, *rows]))
    used = {(row["h"], row["d_k"], seed) for row in own for seed in range(row["n_seeds"])}
    assert used == known


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
    portfolio = opened(study, rows)
    (row,) = threshold_rows(study, portfolio)
    at, limit = 5 if refuted else 4, cell.training.max_steps
    of_cell = {"cell_id": cell.cell_id, "m": 16, "d_model": 8, "degree": 3, "max_steps": limit}
    told = {"model": "max", "graph": "regular", "n_edges": 48, "h": 2, "status": "found"}
    assert (of_cell | told).items() <= row.items()
    assert row["because"].startswith(f"passes at d_k = {at}, fails at {at - 1}")
    assert (row["d_k"], row["D_K"], row["D_K_first"]) == (at, 2 * at, 8)
    assert (row["mean_score"], row["n_seeds"], row["limited_by"]) == (1, 2, None)
    assert (row["confirmed"], row["fresh_mean"], row["fresh_seeds"]) == (True, 1, 3)
    sides = json.loads(row["certificate"])
    probe = {"d_k": at, "D_K": 2 * at, "mean_score": 1}
    assert (sides["pass"], sides["fresh"]) == (probe | {"n_seeds": 2}, probe | {"n_seeds": 3})
    assert (sides["fail"]["d_k"], sides["fail"]["D_K"]) == (at - 1, 2 * at - 2)

    decided = decision_rows(study, portfolio)
    for decision in decided:
        assert of_cell.items() <= decision.items()
        first, count = decision["first_seed"], decision["n_seeds"]
        scores = {row["seed"]: row["score"] for row in rows if row["d_k"] == decision["d_k"]}
        behind = [scores[seed] for seed in range(first, first + count)]
        assert decision["mean_score"] == sum(behind) / count
        assert decision["verdict"] == ("pass" if decision["mean_score"] >= 0.99 else "fail")
        assert first == (2 if decision["want"] == "fresh seeds" else 0)
    fresh = [row["d_k"] for row in decided if row["want"] == "fresh seeds"]
    assert fresh == ([4, 5] if refuted else [4])


def test_a_threshold_that_is_contradicted_shows_the_pass_below_the_fail() -> None:
    study = study_of(mode="grid", heads=[1], D_K=[4, 6, 8], max_D_K=None)
    portfolio = opened(study, trained(study, passes=lambda probe: probe.value == 4))
    (row,) = threshold_rows(study, portfolio)
    assert (row["status"], row["d_k"], row["mean_score"]) == ("inconsistent", None, None)
    shown = json.loads(row["certificate"])
    assert [(shown[side]["d_k"], shown[side]["mean_score"]) for side in ("pass", "fail")] == [
        (4, 1.0), (8, 0.5),
    ]  # fmt: skip


def test_the_rows_of_a_trial_are_its_own_or_read_off_for_other_limits() -> None:
    training = {"max_steps": [1000, 2000]}
    study = study_of([{"m": 16, "d_model": 8, "training": training}], heads=[1])
    short, long = study.cells
    feed = Feed(study, opened(study))
    every = study.cells[0].training.check_every
    ended = {"trained_to": 2000, "steps": every}
    trained_long = run_row(1, 9, 0, long, max_steps=2000, **ended)
    read_off = run_row(1, 9, 0, short, max_steps=1000, **ended)
    assert feed.sorted_out([read_off, trained_long]) == ([trained_long], [read_off])
    feed.tell(read_off)
    assert feed.sorted_out([read_off, trained_long]) == ([trained_long], []), "it is known"
    alone = run_row(1, 8, 0, short, max_steps=1000, trained_to=1000, steps=every)
    own, others = feed.sorted_out([alone])
    assert (own, others) == ([alone], at_larger_limits(study, alone))
    assert [row["cell_id"] for row in others] == [long.cell_id]


def test_of_all_heads_those_are_shown_that_were_tried_or_are_next() -> None:
    study = study_of(heads="all")
    (cell,) = study.cells
    rows = [run_row(h, 1, seed, cell, score=0.5) for h in (7, 3) for seed in (0, 1)]
    for some in ([], rows):
        state = opened(study, some).state(cell.cell_id)
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
