"""The keys that ``rgr plan`` and ``rgr status`` print as JSON, which others' scripts read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from rgr_dist.planning.forecast import MULTIPLY_ADDS_PER_SECOND, forecast, step_cost
from rgr_dist.planning.listing import plan_study, study_status
from rgr_dist.planning.portfolio import stored_search
from rgr_dist.search.protocol import Probe
from rgr_dist.store.store import Store
from tests.planning.made_up_runs import WIDTHS, study_of, trained
from tests.store.made_up_runs import run_row


def test_plan_and_status_count_stored_and_failed_runs_under_their_keys(tmp_path: Path) -> None:
    study, store = study_of(), Store(tmp_path)
    (cell,) = study.cells
    store.append([run_row(1, 5, 0, cell), run_row(2, 3, 1, cell, stop_reason="failed", score=None)])
    (row,), facts = plan_study(study, store)
    assert (row["m"], row["d_model"]) == (16, 8)
    assert (row["heads"], row["max_D_K"], row["stored_runs"]) == (3, 24, 2)
    assert {"next_h", "next_d_k", "probes_left", "runs_left", "steps_left", "core_seconds_left"} < {
        *row
    }
    assert (facts["stored_runs"], facts["runs_failed"]) == (2, 1)
    assert {*facts} == {
        *("stored_runs", "runs_failed", "runs_to_retry", "runs_left", "steps_left", "at_least"),
        *("core_seconds_left", "cores_here", "bytes_left", "supposing", "pace_from"),
    }
    assert facts["pace_from"] == "stored runs"
    assert row["runs_left"] >= row["probes_left"] > 0
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    assert facts["cores_here"] == cores
    rows, facts = study_status(study, store)
    counts = [(row["h"], row["status"], row["runs_done"], row["runs_failed"]) for row in rows]
    assert counts == [(1, "open", 1, 0), (2, "open", 0, 1), (8, "open", 0, 0)]
    assert (facts["finished"], facts["runs_done"], facts["runs_failed"]) == (False, 1, 1)
    assert {"runs_left", "runs_to_retry", "failures"} < {*facts}


@pytest.mark.parametrize("mode", [{}, {"mode": "grid", "D_K": [8, 16], "max_D_K": None}])
@pytest.mark.parametrize("stored", [0, 2])
def test_a_plan_is_the_forecast_at_the_pace_of_stored_runs(
    stored: int, mode: dict[str, Any], tmp_path: Path
) -> None:
    study, store = study_of([{"m": [16, 32], "d_model": 8}], **mode), Store(tmp_path)
    (cell, _), pace = study.cells, 1 / MULTIPLY_ADDS_PER_SECOND
    if stored:
        runs = [run_row(1, 8, seed, cell, steps=300, seconds=1e6) for seed in range(stored)]
        store.append(runs)
        pace = 1e6 / (300 * step_cost(cell, 8))
    rows, facts = plan_study(study, store)
    portfolio = stored_search(study, store).portfolio
    left = forecast(study, portfolio)
    for key, name in (("probes", "probes_left"), ("runs", "runs_left"), ("steps", "steps_left")):
        assert [row[name] for row in rows] == [getattr(one, key) for one in left]
    seconds = [one.work * pace for one in left]
    assert [row["core_seconds_left"] for row in rows] == pytest.approx(seconds, abs=0.5)
    assert facts["core_seconds_left"] == pytest.approx(sum(seconds), abs=0.5)
    for name in ("runs_left", "steps_left", "stored_runs"):
        assert facts[name] == sum(row[name] for row in rows)
    assert [row["stored_runs"] for row in rows] == [stored, 0]
    first = portfolio.ask()
    assert isinstance(first, Probe)
    row = rows[[one.cell_id for one in study.cells].index(first.cell)]
    assert (row["next_h"], row["next_d_k"]) == first.key
    assert [row["max_D_K"] for row in rows] == [16 if mode else 24] * 2
    assert ("; it may be several times more" in facts["supposing"]) == (not mode)
    assert facts["at_least"] == (not mode)
    assert facts["pace_from"] == (
        "stored runs" if stored else "a rough guess, since none of its runs is stored yet"
    )


def test_status_has_both_ends_of_each_bracket_and_the_steps_that_were_trained(
    tmp_path: Path,
) -> None:
    study, store = study_of(seeds=1, intervals=False), Store(tmp_path)
    rows = trained(study)
    rows[0] |= {"trained_to": 2 * rows[0]["max_steps"]}
    failing = next(row for row in rows if row["score"] < 1)
    failing |= {"score": None, "val_score": None, "stop_reason": "diverged"}
    store.append(rows)
    brackets, facts = study_status(study, store)
    ends = {row["h"]: (row["fails_at"], row["passes_at"]) for row in brackets}
    assert ends == {h: (d_k - 1, d_k) for h, d_k in WIDTHS.items()}
    assert facts["steps_done"] == 1000 * (len(rows) - 1), "one was read off a longer run"
    assert facts["diverged"].startswith(f"1 of {len(rows)} runs diverged")
    assert facts["diverged"].endswith("is training.learning_rate too high?")
    assert (facts["finished"], facts["runs_done"], facts["runs_failed"]) == (True, len(rows), 0)
