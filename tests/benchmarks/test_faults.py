"""The campaign of faults: it notices what it looks for, and finds nothing of it in a short form."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fault_campaign import ours
from fault_campaign.ledger import Ledger
from rgr_dist.store.store import Store
from tests.store.made_up_runs import run_row

SCRIPT = Path(__file__).parents[2] / "benchmarks/faults.py"


def written(root: Path, *seeds: int, **changed: Any) -> Path:
    """The part that holds one more write of these runs."""
    before = set(root.glob("runs/*"))
    Store(root).append([run_row(seed=seed, **changed) for seed in seeds])
    (part,) = set(root.glob("runs/*")) - before
    return part


def test_rows_that_stay_are_neither_lost_nor_trained_twice(tmp_path: Path) -> None:
    written(tmp_path, 0, 1)
    ledger = Ledger(tmp_path)
    assert ledger.stored() == ledger.look() == 2
    written(tmp_path, 2)
    Store(tmp_path).compact(above=1)
    written(tmp_path, 3, stop_reason="failed", score=None)
    assert ledger.stored() == ledger.look() == 3
    assert (ledger.lost, ledger.twice, ledger.backwards) == (set(), set(), 0)


def test_a_run_is_known_again_whatever_other_runs_its_part_holds(tmp_path: Path) -> None:
    def ended(second: str) -> pd.Timestamp:
        return pd.Timestamp(f"2031-01-01 00:00:{second}", tz="UTC")

    written(tmp_path, 0, finished_at=ended("01.5"))  # as text "…01.500" alone, "…01.500000" below
    ledger = Ledger(tmp_path)
    ledger.look()
    written(tmp_path, 1, finished_at=ended("01.500001"))
    Store(tmp_path).compact(above=1)
    assert ledger.look() == 2
    assert ledger.twice == set()


def test_a_lost_row_is_counted(tmp_path: Path) -> None:
    part = written(tmp_path, 0)
    written(tmp_path, 1)
    ledger = Ledger(tmp_path)
    ledger.look()
    part.unlink()
    ledger.look()
    assert (len(ledger.lost), ledger.twice, ledger.backwards) == (1, set(), 1)


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_run_that_is_trained_again_is_counted(tmp_path: Path, is_replaced: bool) -> None:
    part = written(tmp_path, 0)
    ledger = Ledger(tmp_path)
    ledger.look()
    written(tmp_path, 0, finished_at=pd.Timestamp("2031-01-01", tz="UTC"))
    if is_replaced:
        part.unlink()
    ledger.look()
    assert (ledger.lost, len(ledger.twice), ledger.backwards) == (set(), 1, 0)


def test_what_the_campaign_tore_may_be_trained_again(tmp_path: Path) -> None:
    part = written(tmp_path, 0, 1)
    written(tmp_path, 1, 2)  # one run is in both
    ledger = Ledger(tmp_path)
    ledger.look()
    ledger.tear(part, keep=100)
    assert ledger.torn == 1
    written(tmp_path, 0, finished_at=pd.Timestamp("2031-01-01", tz="UTC"))
    ledger.look()
    assert (ledger.lost, ledger.twice, ledger.backwards) == (set(), set(), 0)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes in /proc")
def test_only_processes_of_the_campaign_are_its_own(tmp_path: Path) -> None:
    def started(home: Path) -> subprocess.Popen[bytes]:
        environment, pipe = {**os.environ, ours.MARK: str(home)}, subprocess.PIPE
        process = subprocess.Popen(["cat"], env=environment, stdin=pipe, stdout=pipe, bufsize=0)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"x")
        assert process.stdout.read(1) == b"x"  # only now is its environment sure to be there
        return process

    with started(tmp_path) as own, started(tmp_path / "other") as other:
        assert ours.processes(tmp_path) == {own.pid: "cat"}
        ours.end(tmp_path)
        assert own.wait() < 0
        assert other.poll() is None
        assert ours.processes(tmp_path) == {}
        other.kill()


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.skipif(not Path("/proc/meminfo").exists(), reason="Linux alone")
def test_a_short_campaign_loses_nothing(tmp_path: Path) -> None:
    call = [sys.executable, str(SCRIPT), "--drivers", "12", "--others", "12", "--format", "json"]
    done = subprocess.run(call, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    times = {row["what"]: 0 for row in told["faults"]}
    for row in told["faults"]:
        times[row["what"]] += row["times"]
    assert times["driver"] == 12
    assert times["worker"] + times["raylet"] + times["node"] >= 12
    assert min(times.get(what, 0) for what in ("worker", "raylet", "node")) > 0
    assert told["failed_calls_between_rays_processes"] > 0
    assert {row["is"] for row in told["outcome"]} == {0}
