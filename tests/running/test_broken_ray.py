"""Ray dies under a study, does not start, or fills its disk: one line, and nothing is lost."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pytest

from tests.small_study import Rgr, driver, parts, runs_on, tables, write_study

in_proc = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds them in /proc")


def processes(mark: str, program: str) -> list[int]:
    """Living processes of a program that have ``mark`` in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            name = (process / "cmdline").read_bytes().split(b"\0")[0].rpartition(b"/")[2]
            if name == program.encode() and mark.encode() in (process / "environ").read_bytes():
                found.append(int(process.name))
    return found


def check_end(status: int, errors: str, options: str) -> None:
    """One line by us, or Ray's own if the driver waited for its control store as that died."""
    (line,) = errors.splitlines()
    if status == 1:
        assert "Failed to connect to GCS" in line
    else:
        assert status == 4, errors
        assert line.startswith("rgr: Ray died: its ")
        assert line.endswith(f"; resume with: rgr run small.yaml {options}")


@in_proc
@pytest.mark.slow
@pytest.mark.parametrize("program", ["raylet", "gcs_server"])
def test_death_of_ray_is_one_line_and_nothing_stored_is_lost(
    program: str, finished: Path, tmp_path: Path, rgr_here: Rgr
) -> None:
    write_study(tmp_path)
    mark = f"RGR_MARK={tmp_path}"
    with driver(tmp_path, "--cpus", "2", environment={"RGR_MARK": str(tmp_path)}) as run:
        while not parts(tmp_path) and runs_on(run):
            pass
        (victim,) = processes(mark, program)
        os.kill(victim, signal.SIGKILL)
        _, errors = run.communicate(timeout=120)
    check_end(run.returncode, errors, "--cpus 2")
    assert not processes(mark, "raylet") + processes(mark, "gcs_server")

    stored = pd.read_parquet(tmp_path / "results/runs")
    assert (stored["stop_reason"] != "failed").all()
    done = rgr_here("run", "small.yaml", "--cpus", 1, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    kept = pd.read_parquet(tmp_path / "results/runs").merge(stored, on=["run_id", "finished_at"])
    assert len(kept) == len(stored)  # none was trained again
    for name, table in tables(finished).items():
        pd.testing.assert_frame_equal(table, tables(tmp_path)[name], check_exact=True)
