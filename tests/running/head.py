"""A Ray cluster of one node on this machine, as ``ray start --head`` starts it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

ENVIRONMENT = {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
RAY = (sys.executable, "-m", "ray.scripts.scripts")


def free_port() -> int:
    """A port of the loopback that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def head(
    environment: Mapping[str, str], *options: str, dashboard: int | None = None
) -> Iterator[None]:
    """A cluster with two CPUs.

    Args:
        environment: what its processes have beside that of this one, less what is empty here.
        options: of ``ray start``, its ports among them.
        dashboard: the port of one, where it is to have one; that takes ``ray[default]``.
    """
    folder = tempfile.mkdtemp(prefix="ray", dir="/tmp")  # Ray's socket paths must be short
    command = [*RAY, "start", "--head", "--block", "--node-ip-address=127.0.0.1", "--num-cpus=2"]
    command += [f"--include-dashboard={str(dashboard is not None).lower()}"]
    command += [f"--dashboard-port={dashboard}"] if dashboard else []
    command += [f"--dashboard-agent-listen-port={free_port()}", f"--temp-dir={folder}", *options]
    theirs = {**os.environ, **ENVIRONMENT, **environment}
    with subprocess.Popen(
        command,
        cwd=folder,
        env={name: value for name, value in theirs.items() if value},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as cluster:
        assert cluster.stdout is not None
        said = []
        for line in cluster.stdout:
            said.append(line)
            if "Ray runtime started" in line:
                break
        try:
            assert cluster.poll() is None, "".join(said)
            yield
        finally:
            cluster.terminate()
            cluster.stdout.read()
    shutil.rmtree(folder, ignore_errors=True)
