"""Ray dies under a study, does not start, or fills its disk: one line, and nothing is lost."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pytest

from tests.small_study import RGR, Rgr, parts, rgr, runs_on, tables, write_study

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


@in_proc
@pytest.mark.parametrize("program", ["raylet", pytest.param("gcs_server", marks=pytest.mark.slow)])
def test_death_of_ray_is_one_line_and_nothing_stored_is_lost(
    program: str, finished: Path, tmp_path: Path, rgr_here: Rgr
) -> None:
    write_study(tmp_path)
    mark = f"RGR_MARK={tmp_path}"
    with subprocess.Popen(
        [*RGR, "run", "small.yaml", "--cpus", "2"],
        cwd=tmp_path,
        env={**os.environ, "RGR_MARK": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as driver:
        while not parts(tmp_path) and runs_on(driver):
            pass
        (victim,) = processes(mark, program)
        os.kill(victim, signal.SIGKILL)
        _, errors = driver.communicate(timeout=60)
    assert driver.returncode == 4, errors
    (line,) = errors.splitlines()
    assert line.startswith("rgr: Ray died: its ")
    if log := re.search(r"details in (\S+); resume with: rgr run small.yaml --cpus 2$", line):
        assert "What Ray printed" in (tmp_path / log[1]).read_text()
    else:  # the main thread waited for what had died
        assert line.endswith("; run the same command again to go on")
    assert not processes(mark, "raylet") + processes(mark, "gcs_server")

    stored = pd.read_parquet(tmp_path / "results/runs")
    assert (stored["stop_reason"] != "failed").all()
    done = rgr_here("run", "small.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    kept = pd.read_parquet(tmp_path / "results/runs").merge(stored, on=["run_id", "finished_at"])
    assert len(kept) == len(stored)  # none was trained again
    for name, table in tables(finished).items():
        pd.testing.assert_frame_equal(table, tables(tmp_path)[name], check_exact=True)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("unshare") is None, reason="mounts a small disk of its own")
def test_a_full_temporary_folder_ends_in_one_line(tmp_path: Path) -> None:
    write_study(tmp_path)
    full = tmp_path / "full"
    full.mkdir()
    mount = f"mount -t tmpfs -o size=64k tmpfs {full} && exec " + shlex.join(
        [*RGR, "run", "small.yaml"]
    )
    done = subprocess.run(
        ["unshare", "--map-root-user", "--mount", "sh", "-c", mount],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(full), "RAY_TMPDIR": str(full)},
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare" in done.stderr or "mount" in done.stderr.split("rgr:")[0]:
        pytest.skip(done.stderr)
    assert done.returncode == 4
    (line,) = done.stderr.splitlines()
    assert line.endswith("; resume with: rgr run small.yaml")


LISTENING = """
from rgr_dist.running.cluster import connect
import ray, subprocess

def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True).stdout

with connect("local", 2):
    node = ray._private.worker._global_node
    (raylet,) = node.all_processes["raylet"]
    print(output_of("ps", "--ppid", str(raylet.process.pid), "-o", "args="))
    ray.get(ray.remote(lambda: None).remote())
    sockets = output_of("ss", "-Hltnp")
    for kind in node.all_processes.values():
        for process in kind:
            print("process", process.process.pid)
print(sockets)
"""


@pytest.mark.skipif(not (shutil.which("ss") and shutil.which("ps")), reason="asks ss and ps")
def test_a_local_ray_listens_on_the_loopback_alone_and_starts_no_idle_worker() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LISTENING],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    started = re.findall(r"process (\d+)", done.stdout)
    lines = [
        line
        for line in done.stdout.splitlines()
        if any(f"pid={process}," in line for process in started)
    ]
    assert len(lines) >= 3, done.stdout  # gcs_server, and two of the raylet
    addresses = {line.split()[3].rpartition(":")[0] for line in lines}
    assert addresses <= {"127.0.0.1", "[::ffff:127.0.0.1]"}, done.stdout
    of_raylet = done.stdout[: done.stdout.index("process ")].split("\n")
    assert any(re.search("env.?agent", line, re.IGNORECASE) for line in of_raylet), of_raylet
    assert not [line for line in of_raylet if "IDLE" in line or "default_worker.py" in line]


def test_a_ray_that_would_ask_for_no_token_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_study(tmp_path)
    done = rgr("run", "small.yaml", cwd=tmp_path, environment={"RAY_AUTH_MODE": "disabled"})
    assert done.returncode == 2
    assert done.stderr == (
        "rgr: RAY_AUTH_MODE=disabled: whoever can reach Ray on this machine could run code as "
        "you; unset it, or give the --address of a cluster\n"
    )
    assert not (tmp_path / "results").exists()
