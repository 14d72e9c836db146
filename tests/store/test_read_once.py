"""A run with nothing left to train reads the store once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from rgr_dist.cli import call
from rgr_dist.store import store


def test_a_run_with_nothing_left_reads_each_part_once(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(finished / "results", tmp_path / "results")
    read, as_runs = 0, store.as_runs

    def counted(table: pa.Table) -> pa.Table:
        nonlocal read
        read += 1
        return as_runs(table)

    monkeypatch.setattr(store, "as_runs", counted)
    count = len(list((tmp_path / "results/runs").glob("*.parquet")))
    where = ["--store", str(tmp_path / "results")]
    assert call(["run", str(finished / "small.yaml"), *where]) == 0
    assert read == count
