"""What a row says of a run: the columns of the schema, and the engine that would have trained."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from rgr_dist.engines.choose import make_engine
from rgr_dist.store import row as store_row
from rgr_dist.store.row import FAILED, LOST, git_revision, lost_rows, run_row
from rgr_dist.store.schema import RUNS
from rgr_dist.study.cell import Cell
from rgr_dist.study.models import MODELS
from rgr_dist.study.run import Run
from tests.store.made_up_runs import run_row as made_up

ENDED = {
    "score": 0.5,
    "val_score": 0.25,
    "threshold_tau": 1.5,
    "null_rate": 0.125,
    "steps": 700,
    "stop_reason": "converged",
    "error": None,
    "seconds": 2.5,
}


def run_of(**cell: Any) -> Run:
    return Run(cell=Cell(**{"m": 64, "d_model": 16, **cell}), h=4, d_k=5, seed=3)


@pytest.mark.parametrize("ended", [ENDED, FAILED | {"error": "MemoryError: 3 GB"}])
def test_a_row_has_the_columns_of_the_schema_and_says_how_the_run_ended(
    ended: dict[str, Any],
) -> None:
    cell = {
        "m": 20,
        "d_model": 8,
        "graph": {"family": "regular", "degree": 3},
        "embedding": {"family": "binary"},
        "context": {"length": 7, "positive_rate": 0.25},
        "training": {"max_steps": 900},
        "model": "softmax",
    }
    run, begun = run_of(**cell), datetime.now(UTC)
    row = run_row(run, ended, "fused", "cpu: made up")
    assert begun <= row["finished_at"] <= datetime.now(UTC)
    told = {key: row[key] for key in ("finished_at", "versions", "git_revision")}
    expected = made_up(4, 5, 3, run.cell, **ended) | told
    assert row == expected | {"engine": "fused", "device": "cpu: made up"}
    assert list(row) == RUNS.names


def test_a_row_names_the_versions() -> None:
    row = run_row(run_of(), {}, None, None)
    torch, numpy, numba = map(metadata.version, ("torch", "numpy", "numba"))
    rgr = metadata.version("rgr-dist").partition("+")[0]
    assert row["versions"] == f"rgr-dist={rgr} torch={torch} numpy={numpy} numba={numba}"
    assert row["git_revision"] == git_revision(Path(store_row.__file__))


def test_an_installed_package_names_the_revision_that_it_was_built_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built = {"rgr-dist": "0.2.0+gabc123"}
    monkeypatch.setattr(store_row, "git_revision", lambda _: None)
    monkeypatch.setattr(store_row, "_version", lambda name: built.get(name, "1"))
    row = run_row(run_of(), {}, None, None)
    assert row["git_revision"] == "abc123"
    assert store_row._versions.__wrapped__() == "rgr-dist=0.2.0 torch=1 numpy=1 numba=1"
    built["rgr-dist"] = "0.2.0"
    assert run_row(run_of(), {}, None, None)["git_revision"] is None


def test_the_revision_is_that_of_the_repository_that_holds_the_file(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        command = ["git", *who, *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    file, other = tmp_path / "one.py", tmp_path / "two.py"
    file.write_text("")
    other.write_text("")
    outside = git_revision.__wrapped__(file)
    git("init", "-q")
    git("add", "one.py")
    git("commit", "-qm", "one")
    git("tag", "-am", "a release", "v1")
    clean = git_revision.__wrapped__(file)
    file.write_text("changed")
    assert (outside, clean) == (None, git("rev-parse", "--short", "HEAD"))
    assert git_revision.__wrapped__(file) == f"{clean}+"
    assert git_revision.__wrapped__(other) is None, "not of this repository"
    assert git_revision.__wrapped__(tmp_path / "nowhere/three.py") is None


@pytest.mark.parametrize("model", [name for name in MODELS if MODELS[name].room is None])
def test_a_lost_run_is_stored_with_the_engine_that_would_have_trained_it(model: str) -> None:
    record = MODELS[model]
    parts: dict[str, Any] = {"model": model, "training": record.defaults}
    if record.embedding == "onehot":
        parts |= {"embedding": {"family": "onehot"}, "m": 64, "d_model": 64}
    if record.task == "own layer":
        parts |= {"layer": {"digest": "0" * 64, "name": "Mine"}}
    runs = [Run(cell=run_of(**parts).cell, h=4, d_k=5, seed=seed) for seed in (3, 4)]
    rows = lost_rows(runs, "auto", "cpu")
    assert [row["run_id"] for row in rows] == [run.run_id for run in runs]
    assert {row["engine"] for row in rows} == {make_engine("auto", model=model).name}
    assert {row["engine"] for row in lost_rows(runs, "auto", "cuda")} == {
        "construction" if record.task == "construction" else "compiled"
    }
    named = "construction" if record.task == "construction" else "reference"
    assert {row["engine"] for row in lost_rows(runs, "reference", "cuda")} == {named}
    assert {row["engine"] for row in lost_rows(runs, "reference", "cpu")} == {named}
    for row in rows:
        assert {key: row[key] for key in FAILED} == FAILED | {"error": LOST}
        assert row["device"] is None
