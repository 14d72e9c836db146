"""The Ray that a run starts: on the loopback, with a token, its files for nobody else."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import ray

from rgr_dist.running.cluster import connect
from rgr_dist.search.tune import connect as own
from tests.cli.test_faults import in_mid_study
from tests.running.head import free_port, head
from tests.small_study import write_study

NOBODY = 65534

CONNECTED = """
import sys
from rgr_dist.search.tune.connect import connect
with connect("local", 1):
    import ray
    ray.get(ray.remote(lambda: None).remote())
    print("ready", flush=True)
    sys.stdin.read()
"""


AGAIN = """
import os
from rgr_dist.search.tune.connect import connect
found = []
for _ in range(2):
    with connect("local", 1):
        import ray
        found.append(ray.get(ray.remote(lambda: os.environ["RAY_AUTH_TOKEN"]).remote()))
ray.init(address="local", num_cpus=1, include_dashboard=False)
found.append(ray.get(ray.remote(lambda: os.environ["RAY_AUTH_TOKEN"]).remote()))
assert found == 3 * [os.environ["RAY_AUTH_TOKEN"]]
"""
"""A Ray of its own, another, and one that the user starts: all ask for one token."""

THEN_A_CLUSTER = """
import os, sys
from rgr_dist.search.tune.connect import connect
with connect("local", 1):
    import ray
    ray.get(ray.remote(lambda: None).remote())
assert "RAY_AUTH_TOKEN" not in os.environ
ray.init(address=sys.argv[1])
ray.get(ray.remote(lambda: None).remote())
"""
"""A Ray of its own, then a cluster that asks for the user's token."""


@pytest.fixture
def everybodys(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temporary folder as /tmp is: open to all."""
    folder = Path(tempfile.mkdtemp(prefix="ray", dir="/tmp"))  # Ray's socket paths must be short
    folder.chmod(0o1777)
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.delenv("RAY_TMPDIR", raising=False)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def family(process: int) -> set[int]:
    """A process and all that descend from it."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True)
    pairs = [tuple(map(int, line.split())) for line in listed.stdout.splitlines()]
    found, count = {process}, 0
    while len(found) > count:
        count = len(found)
        found |= {child for child, parent in pairs if parent in found}
    return found


@pytest.mark.slow
@pytest.mark.skipif(not (shutil.which("ss") and shutil.which("ps")), reason="asks ss and ps")
def test_every_socket_is_on_the_loopback_where_ray_was_not_imported_before(
    everybodys: Path,
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CONNECTED],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == "ready\n"
        sockets = subprocess.run(["ss", "-Hltunp"], capture_output=True, text=True, check=True)
        ours = family(driver.pid)
        driver.communicate("")
    assert driver.returncode == 0
    assert not list(everybodys.iterdir())
    lines = [
        line
        for line in sockets.stdout.splitlines()
        if ours & set(map(int, re.findall(r"pid=(\d+)", line)))
    ]
    assert len(lines) >= 5, sockets.stdout  # gcs_server, two of the raylet, the driver, a worker
    addresses = {line.split()[4].rpartition(":")[0] for line in lines}
    assert addresses <= {"127.0.0.1", "[::ffff:127.0.0.1]"}, lines


@pytest.mark.slow
def test_later_rays_of_the_process_start_and_ask_for_the_same_token(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", AGAIN],
        env=os.environ | {"HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_cluster_that_is_joined_later_is_shown_the_users_token(tmp_path: Path) -> None:
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray/auth_token").write_text("7" * 32)
    address, home = f"127.0.0.1:{free_port()}", {"HOME": str(tmp_path)}
    with head({"RAY_AUTH_MODE": "token", **home}, f"--port={address.rpartition(':')[2]}"):
        done = subprocess.run(
            [sys.executable, "-c", THEN_A_CLUSTER, address],
            env=os.environ | home,
            capture_output=True,
            text=True,
        )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_another_user_can_neither_read_nor_write_what_a_run_puts_into_the_temporary_folder(
    tmp_path: Path, everybodys: Path
) -> None:
    write_study(tmp_path)
    search = ["find", str(everybodys), "-mindepth", "1"]
    with in_mid_study(tmp_path) as driver:
        known = subprocess.run(search, capture_output=True, text=True, check=False)
        opened = subprocess.run(
            [*search, "(", "-readable", "-o", "-writable", ")"],
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            capture_output=True,
            text=True,
            check=False,
        )
        driver.terminate()
        driver.communicate()
    assert "sockets/raylet" in known.stdout
    assert opened.stdout == ""
    assert "Permission denied" in opened.stderr


@pytest.mark.usefixtures("_ray")
def test_a_ray_of_the_process_is_used_whatever_the_environment_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "http://127.0.0.1:8265")  # as `ray job submit` reads it
    before = ray.get_runtime_context().get_node_id()
    with own.connect():
        assert ray.get_runtime_context().get_node_id() == before


@pytest.mark.usefixtures("_ray")
def test_what_others_print_while_a_study_is_connected_is_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with connect("local"):
        print("from a notebook's other thread")
    assert capsys.readouterr().out == "from a notebook's other thread\n"
