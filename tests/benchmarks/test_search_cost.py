"""The benchmarks of the search run, and print what they promise."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rgr_dist.store.store import Store
from rgr_dist.study.study_file import load_study
from tests.run_here import thresholds_here
from tests.small_study import write_study

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
Row = dict[str, Any]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small study, run in ``results/``."""
    folder = tmp_path_factory.mktemp("stored")
    study = load_study(str(write_study(folder)))
    thresholds_here(study, Store(folder / "results"))
    return folder


def content(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def rows(script: str, folder: Path, *options: object) -> list[Row]:
    """What a benchmark prints as JSON."""
    command = [sys.executable, str(BENCHMARKS / script), "--study", "small.yaml", *options]
    done = subprocess.run(
        [*map(str, command), "--format", "json"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    answer = json.loads(done.stdout)
    assert set(answer) == {"rows"}
    listed: list[Row] = answer["rows"]
    return listed


@pytest.mark.slow
def test_search_cost_counts_the_steps_of_every_way(stored: Path) -> None:
    before = content(stored / "results")
    options = ("--measure", "m=16,d_model=8", "--seeds", 3)
    listed = rows("search_cost.py", stored, *options)
    assert content(stored / "results") == before  # the study's report must not count the grid
    trained = Store(stored / "results-search-cost").runs()
    assert rows("search_cost.py", stored, *options) == listed
    again = Store(stored / "results-search-cost").runs()
    assert set(again["finished_at"]) == set(trained["finished_at"])  # nothing is trained again
    keys = {"study", "strategy", "training_steps", "share_of_exhaustive", "same_thresholds"}
    assert {frozenset(row) for row in listed} == {frozenset(keys)}
    cell = "small m=16,d_model=8"
    assert [(row["study"], row["strategy"]) for row in listed] == [
        (cell, "exhaustive"),
        (cell, "adaptive"),
        (cell, "optuna"),
        ("small", "exhaustive"),
        ("small", "adaptive"),
        ("small", "certificates"),
        (cell, "certificates"),
    ]
    exhaustive, adaptive, *_ = listed
    own = trained[(trained["d_model"] == 8) & (trained["D_K"] <= 16)]
    assert exhaustive["training_steps"] == own["steps"].sum()
    assert 0 < adaptive["training_steps"] < exhaustive["training_steps"]
    for row in listed:
        whole = next(r for r in listed if r["study"] == row["study"])["training_steps"]
        assert row["share_of_exhaustive"] == pytest.approx(row["training_steps"] / whole, abs=1e-4)
    assert adaptive["same_thresholds"] is True
    steps = {(row["study"], row["strategy"]): row["training_steps"] for row in listed}
    for name in ("small", cell):  # no search spends less than its certificates
        assert 0 < steps[name, "certificates"] <= steps[name, "adaptive"]


def test_search_slots_simulates_the_stored_study_and_made_up_cells(stored: Path) -> None:
    listed = rows("search_slots.py", stored, "--workers", 1, "--workers", 4, "--cells", 6)
    assert [(row["study"], row["cells"], row["workers"]) for row in listed] == [
        ("small.yaml, paper", 2, 1),
        ("small.yaml, paper", 2, 4),
        ("small.yaml, prior", 2, 1),
        ("small.yaml, prior", 2, 4),
        ("made up", 6, 6),
    ]
    alone, together = listed[:2]
    assert (alone["busy"], alone["useful"]) == (1.0, 1.0)
    assert together["makespan_seconds"] <= alone["makespan_seconds"]
    for row in listed:
        assert 0 < row["useful"] <= 1
        assert 0 < row["busy"] <= 1
        assert row["probes_per_head"] > 0
