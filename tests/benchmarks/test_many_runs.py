"""The benchmark of loading and fitting many runs, on few."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # of what benchmarks use alone

SCRIPT = Path(__file__).parents[2] / "benchmarks/many_runs.py"


def test_it_loads_and_fits_what_it_made_up() -> None:
    call = [sys.executable, str(SCRIPT), "--runs", "6000", "--format", "json"]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    (row,) = json.loads(done.stdout)["rows"]
    assert row["runs"] == 10 * (57 + 28 + 14) * 6
    assert row["cells"] == 6  # every cell has a threshold: nothing was left open
    assert row["total_seconds"] > 0
    assert row["peak_MiB"] > 100
    assert isinstance(row["within_limits"], bool)
