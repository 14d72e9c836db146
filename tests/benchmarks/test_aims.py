"""The table of aims: what is compared with what, and whole studies as they are timed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SHAPE = {"m": 64, "d_model": 16, "h": 4, "D_K": 20}


def rate(model: str, vs_jax: float | None, share: float, threads: int = 1) -> dict[str, Any]:
    """A row of the throughput benchmark."""
    row = {"engine": "fused", "model": model, "threads": threads, **SHAPE}
    return row | {"vs_jax": vs_jax, "share_of_peak": share, "spread": 0.1}


def test_each_aim_stands_beside_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from aims import aim_rows

    results = {
        "throughput": {
            "rows": [
                rate("max", 4.6, 0.32), rate("max", 9.9, 0.9, threads=2),
                rate("softmax", 3.2, 0.2), rate("softmax", 2.3, 0.4),
                rate("value", None, 0.3), rate("transformer", 4.0, 0.5),
                {"engine": "jax", "model": "softmax", "threads": 1, "vs_jax": 1.0},
            ]
        },
        "facts_throughput": {"rows": [rate("facts", 5.5, 0.2)]},
        "scale": {
            "driver": [{"probes_per_second": 120.0}, {"probes_per_second": 71.0}],
            "clusters": [],
        },
        "whole_studies": {
            "studies": [
                {"study": "quickstart", "seconds": 17.0, "utilisation": 0.84},
                {"study": "base-grid", "seconds": 99.0, "utilisation": 0.97},
            ]
        },
    }  # fmt: skip
    rows = {row["what"]: row for row in aim_rows(results)}
    reached = {what: row["reached"] for what, row in rows.items()}
    assert reached == {
        "softmax, times JAX": "1 of 2",
        "value, times JAX": None,  # JAX is not there
        "transformer, times JAX": "1 of 1",
        "max, times JAX": None,  # nothing is aimed at
        "facts, times JAX": None,
        "transformer, share of peak": "1 of 1",
        "smallest max, share of peak": "0 of 1",
        "base-grid, minutes": "yes",
        "quickstart, workers utilised": "no",
        "base-grid, workers utilised": "yes",
        "one driver, probes a second": "no",
    }
    assert rows["softmax, times JAX"]["measured"] == "3.2, 2.3"
    assert rows["max, times JAX"]["measured"] == "4.6"


@pytest.mark.slow  # a minute: trains quickstart twice
def test_a_whole_study_is_timed_from_an_empty_store() -> None:
    command = [sys.executable, str(BENCHMARKS / "whole_studies.py"), "quickstart"]
    done = subprocess.run(
        [*command, "--format", "json"], capture_output=True, text=True, check=True
    )
    answer = json.loads(done.stdout)
    (row,) = answer["studies"]
    assert row["runs"] > 0
    assert row["failed"] == 0
    assert row["whole"] > row["seconds"] > row["tail"]
    assert 0 < row["utilisation"] < 1
    assert sum(size["seconds"] for size in answer["sizes"]) <= 1
    assert all(0 <= size["to_the_limit"] <= size["steps"] <= 1 for size in answer["sizes"])
