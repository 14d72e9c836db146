"""A study on a cluster that has no worker yet: the autoscaler starts one, and takes it away."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.running.nodes import ENVIRONMENT
from tests.running.test_several_nodes import alone, check_same
from tests.small_study import RGR, write_study

RAY = str(Path(sys.executable).parent / "ray")
CLUSTER = {
    "cluster_name": "of-this-machine",
    "provider": {
        "type": "fake_multinode",  # nodes are processes of this machine
        "use_node_id_as_ip": True,
        "disable_node_updaters": True,
        "disable_launch_config_check": True,
    },
    "head_node_type": "ray.head.default",
    "available_node_types": {
        "ray.head.default": {"resources": {"CPU": 0}, "node_config": {}, "max_workers": 0},
        "worker": {"resources": {"CPU": 1}, "node_config": {}, "min_workers": 0, "max_workers": 2},
    },
    "max_workers": 2,
    "idle_timeout_minutes": 60,
    "upscaling_speed": 1.0,
    "auth": {},
    "file_mounts": {},
    "cluster_synced_files": [],
    "file_mounts_sync_continuously": False,
    "initialization_commands": [],
    "setup_commands": [],
    "head_setup_commands": [],
    "worker_setup_commands": [],
    "head_start_ray_commands": [],
    "worker_start_ray_commands": [],
}


PORT = 6379
"""Where its nodes look for the head, whatever that is told."""


def is_free(port: int) -> bool:
    """Whether nothing listens on a port of this machine."""
    with socket.socket() as caller:
        return caller.connect_ex(("127.0.0.1", port)) != 0


@contextmanager
def autoscaled() -> Iterator[str]:
    """The address of a head without CPUs, whose autoscaler starts up to two nodes of one CPU.

    Ray's own test cluster ends every Ray of the machine when it starts and ends; this one's
    processes are in a session of their own.
    """
    with tempfile.TemporaryDirectory(prefix="ray", dir="/tmp") as folder:
        file = Path(folder) / "cluster.json"
        file.write_text(json.dumps(CLUSTER))
        started = subprocess.Popen(
            [
                RAY, "start", "--head", "--block", f"--port={PORT}", "--num-cpus=0",
                f"--autoscaling-config={file}", "--include-dashboard=false",
            ],
            env={
                **os.environ, **ENVIRONMENT, "RAY_TMPDIR": folder,
                "RAY_FAKE_CLUSTER": "1", "AUTOSCALER_UPDATE_INTERVAL_S": "1",
            },
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        try:
            yield f"127.0.0.1:{PORT}"
        finally:
            os.killpg(started.pid, signal.SIGKILL)
            started.wait()


@pytest.mark.slow
@pytest.mark.skipif(not is_free(PORT), reason="another Ray cluster listens on its port")
def test_an_autoscaler_adds_the_first_node(tmp_path: Path) -> None:
    write_study(tmp_path, search={"heads": [1, 2], "seeds": 10})
    with autoscaled() as address:
        done = subprocess.run(
            [*RGR, "run", "small.yaml", "--address", address],
            cwd=tmp_path,
            env={**os.environ, **ENVIRONMENT},
            capture_output=True,
            text=True,
            timeout=300,
        )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    check_same(tmp_path, alone(tmp_path))
