"""What ``rgr plan`` lists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rgr_dist.planning.forecast import forecast, seconds_per_work
from rgr_dist.planning.listing import plan_study
from rgr_dist.planning.search_of import stored_search
from rgr_dist.store.store import Store
from tests.planning.made_up_runs import study_of, trained
from tests.store.made_up_runs import run_row


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
