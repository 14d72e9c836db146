"""A study that is killed, told to end, torn or failing: nothing stored is lost."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pandas as pd
import pytest

from rgr_dist.cli import call
from tests.marks import slow_in_ci
from tests.small_study import RGR, Rgr, parts, runs_on, tables, write_study


def test_a_torn_part_is_told_left_out_and_trained_again(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], rgr_here: Rgr
) -> None:
    store = tmp_path / "results"
    shutil.copytree(finished / "results", store)
    whole = pd.read_parquet(store / "runs")
    torn = max((store / "runs").iterdir(), key=lambda part: part.stat().st_size)
    torn.write_bytes(torn.read_bytes()[:500])
    assert call(["plan", str(finished / "small.yaml"), "--store", str(store)]) == 0
    assert f"{torn.name} in {store} cannot be read" in capsys.readouterr().err
    done = rgr_here("run", finished / "small.yaml", "--store", store, "--cpus", 1, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert torn.name in done.stderr
    torn.unlink()
    mended = pd.read_parquet(store / "runs").set_index("run_id")[["score", "steps"]]
    # Which probes are tried ahead of need hangs on timing; what is trained twice is the same twice.
    both = whole.set_index("run_id")[["score", "steps"]].loc[
        lambda runs: runs.index.isin(mended.index)
    ]
    assert len(both) > 0
    pd.testing.assert_frame_equal(mended.loc[both.index], both)
    for name in ("thresholds",):
        pd.testing.assert_frame_equal(tables(finished)[name], tables(tmp_path)[name])


@slow_in_ci
def test_a_study_with_failed_runs_ends_with_status_3_and_tries_them_again(
    tmp_path: Path, rgr_here: Rgr
) -> None:
    cells = [{"m": 16, "d_model": 8}, {"m": 2**20, "d_model": 2**24}]  # more than any memory
    write_study(tmp_path, cells=cells, search={"heads": [1], "seeds": 1, "max_D_K": 2})
    ended = []
    for _ in range(2):
        done = rgr_here("run", "small.yaml", "--cpus", 1, cwd=tmp_path)
        assert done.returncode == 3, done.stderr
        assert "allocate" in done.stderr
        ended.append("nothing was left to train" in done.stdout)
        runs = pd.read_parquet(tmp_path / "results/runs").drop_duplicates("run_id")
        failed = runs[runs["stop_reason"] == "failed"]
        assert set(failed["m"]) == {2**20}
        assert failed["error"].str.contains("allocate").all()
        assert (runs[runs["m"] == 16]["stop_reason"] != "failed").all()
    assert ended == [False, False]


def hears_interrupts() -> None:
    """Undo what a shell does to a command in the background, this test run perhaps."""
    for number in signal.SIGINT, signal.SIGHUP:
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture
def temporary(_ray: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temporary folder for drivers and their Rays, of their own.

    The Ray of this process has been started elsewhere by then, and outlives it.
    """
    folder = Path(tempfile.mkdtemp(prefix="ray", dir="/tmp"))  # Ray's socket paths must be short
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def in_mid_study(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A driver of the small study that has stored its first runs."""
    before = len(parts(folder))
    with subprocess.Popen(
        [*RGR, "run", "small.yaml", "--cpus", "1"],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=hears_interrupts,
    ) as driver:
        while len(parts(folder)) == before and runs_on(driver):
            pass
        yield driver


def workers_marked(mark: str) -> list[int]:
    """Processes that train just now, and have ``mark`` in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            is_ours = mark.encode() in (process / "environ").read_bytes().split(b"\0")
            if is_ours and b"Trainable.train" in (process / "cmdline").read_bytes():
                found.append(int(process.name))
    return found


@slow_in_ci
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds workers in /proc")
def test_a_driver_told_to_end_then_one_killed_then_a_worker_lose_nothing_and_change_nothing(
    finished: Path, tmp_path: Path, temporary: Path, rgr_here: Rgr
) -> None:
    write_study(tmp_path)
    for name in ("search", "analysis", "rgr_dist"):  # no process may import the user's files
        (tmp_path / f"{name}.py").write_text("raise SystemExit('of the working directory')")
    with in_mid_study(tmp_path) as driver:
        # As a terminal that is closed sends them, or an impatient user.
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
            driver.send_signal(number)
        _, errors = driver.communicate(timeout=60)
    assert driver.returncode == 130
    assert errors.decode() == "rgr: interrupted; resume with: rgr run small.yaml --cpus 1\n"
    assert not list(temporary.iterdir())

    with in_mid_study(tmp_path) as driver:
        driver.kill()
    stored = pd.read_parquet(tmp_path / "results/runs")
    assert 0 < len(stored) < len(pd.read_parquet(finished / "results/runs"))

    killed: list[int] = []
    has_ended = threading.Event()

    def kill() -> None:
        while not killed and not has_ended.wait(0.02):
            for worker in workers_marked(f"RGR_MARK={os.environ['RGR_MARK']}"):
                with suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
                    killed.append(worker)

    with ThreadPoolExecutor(1) as beside:
        task = beside.submit(kill)
        try:
            done = rgr_here("run", "small.yaml", "--cpus", 2, cwd=tmp_path)
        finally:
            has_ended.set()
        task.result()
    assert killed, "no worker was there to be killed"
    assert done.returncode == 0, done.stderr
    runs = pd.read_parquet(tmp_path / "results/runs")
    assert runs["run_id"].is_unique
    kept = runs.merge(stored, on="run_id", suffixes=("", "_before"))
    assert len(kept) == len(stored)
    assert (kept["finished_at"] == kept["finished_at_before"]).all()
    undisturbed, resumed = tables(finished), tables(tmp_path)
    for name, table in undisturbed.items():
        pd.testing.assert_frame_equal(table, resumed[name], check_exact=True)


@pytest.mark.slow  # the fast one is told to end in mid-training
def test_a_study_that_is_interrupted_as_it_starts_says_how_to_resume(tmp_path: Path) -> None:
    write_study(tmp_path)
    command = [*RGR, "run", "small.yaml"]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=hears_interrupts,
    ) as driver:
        assert driver.stdout is not None
        next(iter(driver.stdout))
        os.kill(driver.pid, signal.SIGINT)
        _, errors = driver.communicate(timeout=60)
    assert driver.returncode == 130
    assert errors.strip().splitlines()[-1].endswith("resume with: rgr run small.yaml")


def test_an_error_that_a_library_makes_of_an_interrupt_is_one() -> None:
    told = """
import os, signal
import rgr_dist.cli as cli

def call(arguments):
    try:
        os.kill(os.getpid(), signal.SIGINT)
        while True:
            pass
    except KeyboardInterrupt:
        raise SystemError("returned a result with an exception set") from None

cli.call = call
cli.main(["run", "small.yaml"])
"""
    done = subprocess.run(
        [sys.executable, "-c", told],
        capture_output=True,
        text=True,
        preexec_fn=hears_interrupts,
        check=False,
    )
    assert (done.returncode, done.stderr) == (
        130,
        "rgr: interrupted; resume with: rgr run small.yaml\n",
    )


def test_a_long_command_that_resumes_or_trains_is_told_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    study = str(write_study(tmp_path))
    (tmp_path / "results/runs").mkdir(parents=True)
    (tmp_path / "results/runs/other.parquet").touch()
    monkeypatch.chdir(tmp_path)
    cells = [{"m": m, "d_model": 8} for m in range(16, 56)]
    asked = [study, "--set", f"cells={cells}", "--set", "name=two  blanks"]
    assert len(shlex.join(asked)) > 1000
    assert call(["runs", *asked[:3]]) == 0
    told = capsys.readouterr().err.splitlines()[-1]
    assert shlex.split(told.partition("; ")[2]) == ["rgr", "run", *asked[:3], "trains", "them"]

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rgr_dist.cli.command", interrupted)
    assert call(["run", *asked]) == 130
    said, _, command = capsys.readouterr().err.partition("resume with: ")
    assert said == "rgr: interrupted; "
    assert shlex.split(command) == ["rgr", "run", *asked]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not Path("/proc/meminfo").exists(), reason="reads what memory is left there")
def test_a_worker_killed_for_its_memory_is_a_failed_run_and_the_rest_goes_on(
    tmp_path: Path,
) -> None:
    lines = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    kilobytes = {line[0]: int(line[1]) for line in lines}
    total, free = kilobytes["MemTotal:"], kilobytes["MemAvailable:"]
    limit = (total - free + 2e6) / total  # 2 GB more than is in use
    cells = [{"m": 16, "d_model": 8}, {"m": 100_000_000, "d_model": 8}]
    write_study(tmp_path, cells=cells, search={"heads": [1], "seeds": 1, "max_D_K": 2})
    monitor = {"usage_threshold": f"{limit:.4f}", "monitor_refresh_ms": "100"}
    environment = os.environ | {f"RAY_memory_{key}": value for key, value in monitor.items()}
    command = [*RGR, "run", "small.yaml", "--cpus", "1"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 3, done.stderr
    assert "the memory of its machine ran out" in done.stderr
    assert len(done.stderr.splitlines()) == 2
    runs = pd.read_parquet(tmp_path / "results/runs")
    assert set(runs["m"][runs["stop_reason"] == "failed"]) == {100_000_000}
    assert (runs["stop_reason"][runs["m"] == 16] != "failed").all()
    assert (runs["m"] == 16).any()
