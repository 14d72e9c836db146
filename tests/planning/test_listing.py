"""What ``rgr plan`` lists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from rgr_dist.planning.forecast import forecast, seconds_per_work
from rgr_dist.planning.listing import divergence, failures, plan_study, reason, run_keys, run_rows
from rgr_dist.planning.search_of import stored_search
from rgr_dist.store.store import Store
from rgr_dist.study.cell import Cell
from rgr_dist.study.study_file import load_study, parse_study
from tests.planning.made_up_runs import runs_of, study_of, trained
from tests.store.made_up_runs import failed_row, run_row


def test_a_plan_counts_what_is_done_failed_and_left(tmp_path: Path) -> None:
    study, store = study_of(), Store(tmp_path)
    (cell,) = study.cells
    store.append([run_row(1, 5, 0, cell), run_row(2, 3, 1, cell, stop_reason="failed", score=None)])
    (row,), facts = plan_study(study, store)
    assert (row["m"], row["d_model"], row["n_edges"]) == (16, 8, 16)
    for key in ("runs_done", "runs_failed", "runs_left", "steps_left", "core_seconds_left"):
        assert row[key] == facts[key]
    assert (facts["runs_done"], facts["runs_failed"], facts["is_measured"]) == (1, 1, True)
    assert facts["runs_left"] > 0


@pytest.mark.parametrize("mode", [{}, {"mode": "grid", "D_K": [8, 16], "max_D_K": None}])
@pytest.mark.parametrize("stored", [0, 2])
def test_a_plan_is_the_forecast_at_the_pace_of_stored_runs(
    stored: int, mode: dict[str, Any], tmp_path: Path
) -> None:
    study, store = study_of([{"m": [16, 32], "d_model": 8}], **mode), Store(tmp_path)
    (cell, _) = study.cells
    if stored:
        runs = [run_row(1, 8, seed, cell, steps=300, seconds=1e6) for seed in range(stored)]
        store.append(runs)
    rows, facts = plan_study(study, store)
    search = stored_search(study, store)
    left, pace = forecast(study, search.portfolio), seconds_per_work(search.runs, study)
    for key, name in (("runs", "runs_left"), ("steps", "steps_left")):
        assert [row[name] for row in rows] == [getattr(one, key) for one in left]
    seconds = [one.work * pace for one in left]
    assert [row["core_seconds_left"] for row in rows] == pytest.approx(seconds, abs=0.05)
    for name in ("runs_left", "steps_left", "runs_done"):
        assert facts[name] == sum(row[name] for row in rows)
    assert [row["runs_done"] for row in rows] == [stored, 0]


def test_a_finished_study_has_nothing_left(tmp_path: Path) -> None:
    study, store = study_of(seeds=1), Store(tmp_path)
    store.append(trained(study))
    _, facts = plan_study(study, store)
    assert facts["runs_left"] == facts["steps_left"] == facts["core_seconds_left"] == 0


def test_a_row_is_told_apart_by_its_sizes_and_by_its_name_where_they_are_alike(
    tmp_path: Path,
) -> None:
    plain, _ = plan_study(study_of([{"m": [16, 32], "d_model": 8}]), Store(tmp_path))
    assert [list(row)[:3] for row in plain] == [["m", "d_model", "degree"]] * 2
    assert [(row["m"], row["d_model"], row["degree"]) for row in plain] == [(16, 8, 1), (32, 8, 1)]
    rates = {"m": 16, "d_model": 8, "training": {"learning_rate": [0.01, 0.02]}}
    study = study_of([rates])
    alike, _ = plan_study(study, Store(tmp_path))
    assert [row["cell"] for row in alike] == [study.name_of(cell) for cell in study.cells]
    assert len({row["cell"] for row in alike}) == 2


def test_what_a_shorter_limit_implies_is_not_counted_as_done(tmp_path: Path) -> None:
    training = {"max_steps": [1000, 2000]}
    study, store = study_of([{"m": 16, "d_model": 8, "training": training}]), Store(tmp_path)
    short, _ = study.cells
    store.append([run_row(1, 4, 0, short, steps=500)])
    rows, facts = plan_study(study, store)
    assert ([row["runs_done"] for row in rows], facts["runs_done"]) == ([1, 0], 1)


def test_the_most_frequent_reasons_of_failed_runs_are_told() -> None:
    errors = ["Traceback\nMemoryError: 3 GB\n", "b", "MemoryError: 3 GB", None, "c", " ", "c", "c"]
    rows = [failed_row(seed=seed) | {"error": error} for seed, error in enumerate(errors)]
    rows.append(run_row(seed=99, error="it went well after all"))
    told = failures(runs_of(rows))
    assert told[0].partition(": ")[2] == "c"
    assert {line.partition(": ")[2] for line in told[1:]} == {
        "MemoryError: 3 GB",
        reason(""),
    }
    assert [line.split()[0] for line in told] == ["3", "2", "2"]
    assert [line.split()[0] for line in failures(runs_of(rows), most=9)][3:] == ["1"]
    assert reason("a\n" + "x" * 300) == "x" * 200
    assert failures(runs_of([run_row()])) == []


def test_runs_that_diverged_are_counted() -> None:
    rows = [run_row(seed=seed, stop_reason="diverged", score=None) for seed in range(2)]
    assert divergence(runs_of([run_row(seed=9)])) is None
    said = divergence(runs_of([*rows, run_row(seed=9)]))
    assert said is not None
    assert re.findall(r"\d+", said) == ["2", "3"]


def test_the_runs_of_a_study_are_listed_in_its_order_and_by_cell_and_heads(tmp_path: Path) -> None:
    study, store = study_of([{"m": 32, "d_model": 8}, {"m": 16, "d_model": 8}]), Store(tmp_path)
    large, small = study.cells
    probes = [(small, 1, 5, 1), (small, 8, 2, 0), (large, 2, 3, 0), (small, 1, 5, 0)]
    store.append([run_row(h, d_k, seed, cell) for cell, h, d_k, seed in probes])
    keys = ("m", "h", "d_k", "seed")

    def listed(cell: Cell | None = None, *heads: int) -> list[tuple[int, ...]]:
        rows, has_any = run_rows(study, store, cell, heads)
        assert has_any
        for row in rows:
            assert tuple(row) == ("study", "cell", *run_keys(study))
            assert row["study"] == study.name
            assert row["cell"] == study.name_of(large if row["m"] == 32 else small)
            assert all(type(row[key]) is int for key in keys)
        return [tuple(row[key] for key in keys) for row in rows]

    in_order = [(32, 2, 3, 0), (16, 1, 5, 0), (16, 1, 5, 1), (16, 8, 2, 0)]
    assert listed() == in_order
    assert listed(small) == in_order[1:]
    assert listed(small, 8) == in_order[3:]
    assert listed(None, 2, 8) == [in_order[0], in_order[3]]
    assert listed(large, 1) == []


def test_columns_of_layers_and_details_are_listed_where_a_study_has_them() -> None:
    plain = run_keys(study_of())
    document = {"name": "x", "model": {"zoo": "cosine"}, "cells": [{"m": 16, "d_model": 8}]}
    assert run_keys(parse_study(document)) == (*plain, "parameters", "cached")
    assert run_keys(load_study("facts")) == (*plain, "details")
