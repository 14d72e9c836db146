"""A Ray cluster of several nodes on this machine: they are killed, and others join."""

from __future__ import annotations

import logging
import os
import random
import secrets
import signal
from contextlib import suppress
from typing import Any

TRIES = 9
"""Failed attempts to start a node before a failure counts as an error."""


class Nodes:
    """A head without workers, and nodes of one worker each.

    Args:
        workers: how many nodes beside the head.
        settings: what the nodes have in their environment in addition to the campaign's own.
    """

    def __init__(self, workers: int, settings: dict[str, str]) -> None:
        from ray.cluster_utils import Cluster

        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
        logging.getLogger("ray").setLevel(logging.CRITICAL)  # it reports each node that ends
        self.workers, self.settings = workers, settings
        self.cluster: Any = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 0, **self._options()}
        )
        self.nodes = [self._added() for _ in range(workers)]

    @property
    def address(self) -> str:
        """What ``rgr run --address`` takes."""
        return str(self.cluster.address)

    def replace_one(self, draw: random.Random, whole: bool) -> int:
        """Kill a node, or its raylet alone; returns the raylet's process number.

        Another node joins while the study goes on, which takes seconds.
        """
        node = self.nodes.pop(draw.randrange(len(self.nodes)))
        raylet = int(node.all_processes["raylet"][0].process.pid)
        if not whole:
            with suppress(ProcessLookupError):
                os.kill(raylet, signal.SIGKILL)
        self.cluster.remove_node(node, allow_graceful=False)
        self.nodes.append(self._added())
        return raylet

    def end(self) -> None:
        """Kill what remains of the cluster."""
        with suppress(Exception):  # Ray complains about nodes that were killed
            self.cluster.shutdown()

    def _added(self) -> Any:
        """Add a node; this may take several tries if calls between Ray's processes fail."""
        for _ in range(TRIES):
            try:
                return self._tried()
            except Exception:  # whatever Ray raises
                continue
        return self._tried()

    def _tried(self) -> Any:
        return self.cluster.add_node(num_cpus=1, **self._options())

    def _options(self) -> dict[str, Any]:
        return {
            "include_dashboard": False,
            "object_store_memory": 100 * 2**20,
            "env_vars": self.settings,
        }
