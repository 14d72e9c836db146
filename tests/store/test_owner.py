"""Which process a thing belongs to, against what the system says of its processes."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rgr_dist.store.owner import born, is_running, machine

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


@contextmanager
def sleeping(folder: Path, name: str = "sleep") -> Iterator[subprocess.Popen[bytes]]:
    """A process of some name that sleeps until the end."""
    program = shutil.which("sleep")
    assert program is not None
    (folder / name).symlink_to(program)
    with subprocess.Popen([f"./{name}", "600"], cwd=folder) as process:
        yield process
        process.kill()


def ticks_since_boot() -> int:
    seconds = float(Path("/proc/uptime").read_text().split()[0])
    return round(seconds * os.sysconf("SC_CLK_TCK"))


def test_a_process_is_born_when_the_system_says_whatever_its_name(tmp_path: Path) -> None:
    before = ticks_since_boot()
    with sleeping(tmp_path, "a) S 1 (b") as process:
        assert before <= int(born(process.pid)) <= ticks_since_boot()
    assert int(born(os.getpid())) <= before


def test_a_process_runs_until_it_has_ended_even_before_anybody_notices(tmp_path: Path) -> None:
    with sleeping(tmp_path) as process:
        since = born(process.pid)
        assert is_running(process.pid, since)
        assert is_running(process.pid, ""), "nothing tells it apart"
        assert not is_running(process.pid, "1"), "another one that was given its number"
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert born(process.pid) == "ended"
        assert not is_running(process.pid, since)
    assert born(process.pid) == ""
    assert not is_running(process.pid, since)
    assert not is_running(process.pid, "")


def test_a_process_of_another_user_runs_and_is_sent_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent = []

    def refuse(process: int, signal: int) -> None:
        sent.append((process, signal))
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    assert is_running(os.getpid(), born(os.getpid()))
    assert sent == [(os.getpid(), 0)]


def test_a_machine_is_its_boot_and_its_container(monkeypatch: pytest.MonkeyPatch) -> None:
    boot = subprocess.run(["cat", "/proc/sys/kernel/random/boot_id"], stdout=-1, text=True).stdout
    container = Path("/proc/self/ns/pid").readlink()
    machine.cache_clear()
    assert machine() == f"{boot.strip()} {container}"

    def missing(path: Path) -> str:
        raise FileNotFoundError(path)

    monkeypatch.setattr(Path, "read_text", missing)
    machine.cache_clear()
    assert machine() == f"{platform.node()} {uuid.getnode()}"
    machine.cache_clear()
