"""A Ray cluster of several nodes on this machine, in a process of its own, which takes orders.

    python -m tests.running.nodes CPUS…      starts a node for each number, and prints the address
    add CPUS                                 on standard input: adds a node, and answers "added"
    kill INDEX                               kills the raylet of that node, and answers "killed"

It ends, with all its nodes, when its standard input does.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.running import head

ENVIRONMENT = head.ENVIRONMENT | {
    # That a node is lost is known in a second, not in fifteen.
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "300",
    "RAY_health_check_failure_threshold": "3",
}


@dataclass
class Nodes:
    """A cluster that runs.

    Attributes:
        address: of its control store, HOST:PORT.
    """

    address: str
    process: subprocess.Popen[str]

    def order(self, text: str) -> str:
        """Give an order; returns the answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{text}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()


@contextmanager
def running(*cpus: int) -> Iterator[Nodes]:
    """A cluster with a node for each number of CPUs; the driver joins the first."""
    folder = tempfile.mkdtemp(prefix="ray", dir="/tmp")  # Ray's socket paths must be short
    with subprocess.Popen(
        [sys.executable, "-m", "tests.running.nodes", *map(str, cpus)],
        env={**os.environ, **ENVIRONMENT, "RAY_TMPDIR": folder},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address, "the cluster did not start"
        yield Nodes(address, process)
        assert process.stdin is not None
        process.stdin.close()
    shutil.rmtree(folder, ignore_errors=True)


def _serve(cpus: list[int]) -> None:
    from ray.cluster_utils import Cluster

    cluster = Cluster()
    nodes: list[Any] = []

    def add(count: int) -> None:
        nodes.append(cluster.add_node(num_cpus=count, include_dashboard=False))

    for count in cpus:
        add(count)
    print(cluster.address, flush=True)
    for line in sys.stdin:
        order, _, number = line.partition(" ")
        if order == "add":
            add(int(number))
            print("added", flush=True)
        else:
            cluster.remove_node(nodes[int(number)], allow_graceful=False)
            print("killed", flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    _serve([int(text) for text in sys.argv[1:]])
