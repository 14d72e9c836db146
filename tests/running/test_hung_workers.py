"""A worker that gives no answer: told, ended, and its probe given to another."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from rgr_dist.planning.portfolio import open_portfolio
from rgr_dist.running import hung_workers
from rgr_dist.running.hung_workers import (
    LIMIT_TIMES,
    UNMEASURED_TIMES,
    TimeLimits,
    limit_seconds,
    most_work,
    shortest_limit,
)
from rgr_dist.running.progress import Summary, View
from rgr_dist.running.recorder import Recorder
from rgr_dist.running.worker import WORKER
from rgr_dist.search.tune.searcher import ProbeSearcher
from rgr_dist.store.schema import RUNS
from rgr_dist.store.store import Store
from rgr_dist.study.cell import Cell
from rgr_dist.study.study_file import parse_study
from tests.cli.test_faults import workers_marked
from tests.small_study import RGR, SMALL, Refused, runs_on, tables, write_study


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds workers in /proc")
def test_stopped_workers_are_told_and_their_probes_trained_by_others(
    finished: Path, tmp_path: Path
) -> None:
    write_study(tmp_path)
    stopped: list[int] = []
    with subprocess.Popen(
        [*RGR, "run", "small.yaml", "--cpus", "2"],
        cwd=tmp_path,
        env={**os.environ, "RGR_MARK": str(tmp_path), "RGR_LEASE_SECONDS": "4"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as driver:
        while not stopped and runs_on(driver):
            stopped = workers_marked(f"RGR_MARK={tmp_path}")
        for worker in stopped:
            os.kill(worker, signal.SIGSTOP)
        output, errors = driver.communicate(timeout=120)
    for worker in stopped:  # one that lives on may answer now; nobody listens
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGCONT)
    assert stopped, "no worker was there to be stopped"
    assert (driver.returncode, errors) == (0, "")
    said = "no answer for 4 s; its worker is ended, and another one trains them"
    told = [line for line in output.splitlines() if line.startswith("overdue: ") and said in line]
    assert len(told) >= len(stopped)
    runs = pd.read_parquet(tmp_path / "results/runs")
    assert runs["run_id"].is_unique
    assert (runs["stop_reason"] != "failed").all()
    for name, table in tables(finished).items():
        pd.testing.assert_frame_equal(table, tables(tmp_path)[name], check_exact=True)


def test_a_worker_that_never_begins_is_told_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Told(View):
        def say(self, text: str) -> None:
            told.append(text)

    study, now, told = parse_study(SMALL), 0.0, list[str]()
    monkeypatch.setattr(hung_workers.time, "monotonic", lambda: now)
    monkeypatch.setenv(hung_workers.SETTING, "8")
    portfolio = open_portfolio(study, pd.DataFrame(columns=RUNS.names))
    recorder = Recorder(study, Store(tmp_path), portfolio, Summary(), Told())
    recorder.work["another cell"], recorder.seconds["another cell"] = 1e9, 1e-9
    searcher = ProbeSearcher(portfolio, asdict, lambda *result: None)
    searcher.suggest("a")
    limits = TimeLimits(recorder, searcher)
    trial = SimpleNamespace(trial_id="a", last_result={})
    for now in (4.0, 8.0, 12.0, 16.0, 20.0, 24.0):
        limits.check([trial])
        assert len(told) == (now > 8)
    assert told[0].startswith("overdue: m=16,d_model=")
    assert told[0].endswith(": no worker has begun for 8 s: there is no room, or it stopped")
    trial.last_result = {WORKER: "named"}  # from now on its training counts
    now += 4
    limits.check([trial])
    assert len(told) == 1


def test_a_time_limit_is_ten_times_what_a_probe_takes_at_most() -> None:
    cell = Cell(m=64, d_model=16)
    work = most_work(cell, 8, runs=3)
    assert work == 3 * cell.training.max_steps * 6 * cell.context.length * 16 * 8
    assert limit_seconds(work, 1e-9) == pytest.approx(LIMIT_TIMES * work * 1e-9)
    assert limit_seconds(work, None) == pytest.approx(LIMIT_TIMES * UNMEASURED_TIMES * work / 2e10)


@pytest.mark.parametrize("text", ["soon", "-1", "0", "nan", "inf", ""])
def test_a_shortest_time_limit_that_is_no_time_is_refused(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Refused
) -> None:
    monkeypatch.setenv("RGR_LEASE_SECONDS", text)
    write_study(tmp_path)
    said = f"rgr: RGR_LEASE_SECONDS: '{text}' is not valid; give seconds, by default 600\n"
    refused(said, "run", "small.yaml", "--cpus", "1")


def test_the_shortest_time_limit_is_ten_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RGR_LEASE_SECONDS", raising=False)
    assert shortest_limit() == 600
