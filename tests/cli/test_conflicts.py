"""Two results of one run: both are named, none is used, and training again tells which stays."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rgr_dist.cli import call
from rgr_dist.store.store import Store
from tests.small_study import Rgr, tables

Told = pytest.CaptureFixture[str]


@pytest.fixture
def forged(finished: Path, tmp_path: Path) -> dict[str, Any]:
    """A row that the store in ``tmp_path`` gained beside the true one, and is older than that."""
    shutil.copytree(finished / "results", tmp_path / "results")
    shutil.copy(finished / "small.yaml", tmp_path)
    at = ["cell_id", "h", "d_k"]  # of a certificate, else another search might not ask for it
    found = tables(finished)["thresholds"].query("status == 'found'")[at].astype({"d_k": "int64"})
    runs = Store(tmp_path / "results").runs().merge(found)
    row = runs[runs["score"] > 0.99].iloc[-1]
    row = {name: None if pd.isna(value) else value for name, value in row.items()}
    before = row["finished_at"] - pd.Timedelta(days=1)
    row |= {"score": 0.5, "seed": int(row["seed"]), "finished_at": before}
    Store(tmp_path / "results").append([row])
    return row


def rgr(capsys: Told, *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    status = call(arguments)
    return status, *capsys.readouterr()


SAYS = (
    "1 run in results with more than one result: none of them is used; rgr verify --store results"
)


def test_both_are_named_and_no_table_uses_either(
    forged: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Told
) -> None:
    monkeypatch.chdir(tmp_path)
    status, out, _ = rgr(capsys, "verify", "--format", "json")
    found = json.loads(out)
    told = [problem["problem"] for problem in found["problems"]]
    assert (status, len(told), found["repeated_rows"]) == (3, 2, 0)
    assert len({problem["file"] for problem in found["problems"]}) == 2
    for text in told:
        assert f"run {forged['run_id']} has other results too: " in text
        assert f"by fused on {forged['device']}, 20" in text
    assert sorted("score 0.5, converged after" in text for text in told) == [False, True]
    for verb in ("thresholds", "fit", "report", "runs", "status", "plan"):
        _, out, err = rgr(capsys, verb, "small.yaml")
        assert SAYS in err, verb
        assert forged["run_id"] not in out
    assert forged["run_id"] not in set(Store("results").runs()["run_id"])


def test_repairing_keeps_the_one_that_training_confirms(
    forged: dict[str, Any],
    finished: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Told,
) -> None:
    monkeypatch.chdir(tmp_path)
    status, out, err = rgr(capsys, "verify", "--repair", "--format", "json")
    assert (status, json.loads(out)["repaired"]) == (0, True)
    assert "1 run trained again, and the results that agree are kept" in err
    pd.testing.assert_frame_equal(Store("results").runs(), Store(finished / "results").runs())
    assert rgr(capsys, "verify")[0] == 0
    aside = pd.concat(pd.read_parquet(part) for part in (tmp_path / "results/damaged").iterdir())
    assert sorted(aside[aside["run_id"] == forged["run_id"]]["score"])[0] == 0.5


def test_the_next_run_trains_it_again(
    forged: dict[str, Any], finished: Path, tmp_path: Path, rgr_here: Rgr
) -> None:
    done = rgr_here("run", "small.yaml", "--cpus", 1, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    moved = "1 run with more than one result; moved to damaged/ in results, and trained again"
    assert moved in done.stderr
    for name in ("thresholds", "decisions"):
        pd.testing.assert_frame_equal(tables(finished)[name], tables(tmp_path)[name])
    (own,) = Store(tmp_path / "results").runs().query("run_id == @forged['run_id']")["score"]
    assert own > 0.99
