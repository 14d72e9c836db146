"""The keys that ``rgr plan`` and ``rgr status`` print as JSON, which others' scripts read."""

from __future__ import annotations

import os
from pathlib import Path

from rgr_dist.planning.listing import plan_study, study_status
from rgr_dist.store.store import Store
from tests.planning.made_up_runs import study_of
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
