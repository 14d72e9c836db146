"""The overhead benchmark runs, and prints what it promises."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "overhead.py"


@pytest.mark.slow  # compiles, and starts a process for each figure
def test_it_prints_a_row_for_each_engine_as_json_alone() -> None:
    options = ["--smallest", "--steps", "500", "--starts", "1", "--format", "json"]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *options], capture_output=True, text=True, check=True
    )
    answer = json.loads(done.stdout)
    assert set(answer) == {"rows", "runs"}
    assert [(row["engine"], row["lanes"]) for row in answer["rows"]] == [
        ("fused", 1),
        ("lanes", 10),
    ]
    for row in answer["rows"]:
        assert set(row) == {
            *("engine", "m", "d_model", "h", "D_K", "lanes", "steps"),
            *("evaluation_share", "evaluation_share_full"),
            *("peak_mib_above_idle", "startup_seconds"),
        }
        assert (row["m"], row["d_model"], row["h"], row["D_K"]) == (64, 16, 4, 20)
        assert 0 < row["evaluation_share"] < 1
        assert 0 < row["evaluation_share_full"] < 1
        needs_torch = row["engine"] == "lanes"
        assert (row["peak_mib_above_idle"] > 0) == needs_torch
        assert row["startup_seconds"] > 0
    for run in answer["runs"]:
        assert (run["m"], run["d_model"], run["h"], run["D_K"]) == (64, 16, 2, 18)
        assert 0 < run["evaluation_share"] < 1
