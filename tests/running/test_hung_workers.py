"""A worker that gives no answer: told, ended, and its probe given to another."""

from __future__ import annotations

import math
import os
import signal
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
import ray

from rgr_dist.faults import UserError
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
from rgr_dist.running.run_study import WHY
from rgr_dist.running.worker import WORKER
from rgr_dist.search.tune.searcher import ProbeSearcher
from rgr_dist.store.row import OVERDUE
from rgr_dist.store.schema import RUNS
from rgr_dist.store.store import Store
from rgr_dist.study import assets
from rgr_dist.study.cell import Cell
from rgr_dist.study.study_file import parse_study
from tests.cli.test_faults import workers_marked
from tests.small_study import SMALL, Refused, Rgr, driver, runs_on, tables, write_study


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds workers in /proc")
def test_stopped_workers_are_told_and_their_probes_trained_by_others(
    finished: Path, tmp_path: Path
) -> None:
    write_study(tmp_path)
    stopped: list[int] = []
    marked = {"RGR_MARK": str(tmp_path), "RGR_LEASE_SECONDS": "4"}
    with driver(tmp_path, "--cpus", "2", environment=marked) as run:
        while not stopped and runs_on(run):
            stopped = workers_marked(f"RGR_MARK={tmp_path}")
        for worker in stopped:
            os.kill(worker, signal.SIGSTOP)
        output, errors = run.communicate(timeout=120)
    for worker in stopped:  # one that lives on may answer now; nobody listens
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGCONT)
    assert stopped, "no worker was there to be stopped"
    assert (run.returncode, errors) == (0, "")
    said = "no answer for 4 s; its worker is ended, and another one trains them"
    told = [line for line in output.splitlines() if line.startswith("overdue: ") and said in line]
    assert len(told) >= len(stopped)
    runs = pd.read_parquet(tmp_path / "results/runs")
    assert runs["run_id"].is_unique
    assert (runs["stop_reason"] != "failed").all()
    for name, table in tables(finished).items():
        pd.testing.assert_frame_equal(table, tables(tmp_path)[name], check_exact=True)


@pytest.mark.slow
def test_a_worker_that_stops_before_it_begins_is_given_up_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rgr_here: Rgr
) -> None:
    stopped = tmp_path / "stopped"

    def stop_once() -> int:
        if not stopped.exists():
            stopped.write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGSTOP)
        return 0

    class StopsItsReader:
        def __reduce__(self) -> tuple[Any, ...]:
            return stop_once, ()

    monkeypatch.setattr(assets, "needed", lambda cells: {"file": StopsItsReader()})
    monkeypatch.setenv("RGR_LEASE_SECONDS", "4")
    write_study(tmp_path, cells=[{"m": 16, "d_model": 8}], search={"heads": [1], "seeds": 1})
    done = rgr_here("run", "small.yaml", "--cpus", 1, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    told = [line for line in done.stdout.splitlines() if "worker" in line]
    assert told[0].endswith("no worker has begun for 4 s: there is no room, or it stopped")
    assert told[1] == "no worker begins: the study goes on with a new Ray Tune"
    assert not Path("/proc", stopped.read_text()).exists()
    runs = pd.read_parquet(tmp_path / "results/runs")
    assert runs["run_id"].is_unique
    assert (runs["stop_reason"] != "failed").all()


def test_a_worker_that_does_not_begin_is_told_once_and_one_that_does_not_answer_is_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Told(View):
        def say(self, text: str) -> None:
            told.append(text)

    study, now, told = parse_study(SMALL), 0.0, list[str]()
    killed, failed = list[object](), list[str]()
    monkeypatch.setattr(hung_workers.time, "monotonic", lambda: now)
    monkeypatch.setenv(hung_workers.SETTING, "8")
    monkeypatch.setattr(ray, "kill", killed.append)
    portfolio = open_portfolio(study, pd.DataFrame(columns=RUNS.names))
    recorder = Recorder(study, Store(tmp_path), portfolio, Summary(), Told())
    recorder.work["another cell"], recorder.seconds["another cell"] = 1e9, 1e-9
    searcher = ProbeSearcher(
        portfolio, asdict, lambda *result: None, on_failed=lambda probe, why: failed.append(why)
    )
    searcher.suggest("a")
    probe = searcher.probes["a"] = replace(searcher.probes["a"], seeds=(0, 2))
    limits = TimeLimits(recorder, searcher)
    trial, ended = (SimpleNamespace(trial_id=name, last_result={}) for name in ("a", "ended"))
    for now in (4.0, 8.0, 12.0, 16.0, 20.0, 24.0):
        limits.check([ended, trial])
        assert len(told) == (2 if now > 8 else 0)
    assert told.pop() == "no worker begins: the study goes on with a new Ray Tune"
    searcher.is_stuck = False
    name = study.name_of(recorder.feed.cells[probe.cell])
    of_probe = f"overdue: {name}, h={probe.arm}, d_k={probe.value}, seeds 0, 2: no "
    no_room = "worker has begun for 8 s: there is no room, or it stopped"
    assert told.pop() == of_probe + no_room
    trial.last_result = {WORKER: "named"}  # from now on its training counts
    for passed, count in ((1000, 0), (3, 0), (1, 1), (4, 1), (4, 1)):
        now += passed
        limits.check([ended, trial])  # time in which nobody looked counts as 5 s
        assert (len(told), len(killed)) == (count, count)
    no_answer = "answer for 8 s; its worker is ended, and another one trains them"
    assert (told, killed) == ([of_probe + no_answer], ["named"])
    for trial_id, lost in (("a", 1), ("b", 2), ("c", 3)):
        searcher.explain(trial_id, "its worker died")
        assert limits.limit(probe) == 8 * 2**lost
        searcher.suggest(chr(ord(trial_id) + 1))
    assert [WHY[why] for why in failed] == [OVERDUE]
    recorder.work[probe.cell], recorder.seconds[probe.cell] = 1.0, 1.0
    recorder.seconds["another cell"] = 2e9
    most = most_work(recorder.feed.cells[probe.cell], probe.arm * probe.value, len(probe.seeds))
    assert limits.limit(probe) == 2**3 * limit_seconds(most, 1.0)


@pytest.mark.parametrize("starts", [0, 1])
def test_a_search_is_stuck_if_nobody_is_at_work_for_longer_than_a_worker_may_take_to_begin(
    starts: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    study, now = parse_study(SMALL), 0.0
    monkeypatch.setattr(hung_workers.time, "monotonic", lambda: now)
    monkeypatch.setenv(hung_workers.SETTING, "8")
    monkeypatch.setattr(TimeLimits, "limit", lambda limits, probe: math.inf)
    portfolio = open_portfolio(study, pd.DataFrame(columns=RUNS.names))
    recorder = Recorder(study, Store(tmp_path), portfolio, Summary(), View())
    searcher = ProbeSearcher(portfolio, asdict, lambda *result: None, slots=lambda: 2)
    limits = TimeLimits(recorder, searcher, starts)
    for name in "ab":
        searcher.suggest(name)
    waiting, works = (SimpleNamespace(trial_id=name, last_result={}) for name in "ab")
    works.last_result = {WORKER: "named"}
    most = 8 * 2**starts
    free = 4 * most
    for now in range(4, free + most + 8, 4):
        limits.check([waiting, works] if now <= free else [waiting])
        assert searcher.is_stuck == (now > free + most)
    probe = searcher.probes["a"]
    searcher.on_trial_complete("a")  # as some Tunes say of all trials that they stop
    assert searcher.losses.of(probe) == 0


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
    said = f"RGR_LEASE_SECONDS: '{text}' is not valid; give seconds, by default 600"
    with pytest.raises(UserError, match=f"^{said}$"):
        shortest_limit()
    write_study(tmp_path)
    refused(f"rgr: {said}\n", "run", "small.yaml", "--cpus", "1")


def test_the_shortest_time_limit_is_ten_minutes_or_as_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("RGR_LEASE_SECONDS", raising=False)
    assert shortest_limit() == 600
    monkeypatch.setenv("RGR_LEASE_SECONDS", "0.5")
    assert shortest_limit() == 0.5
