"""Whether the Ray that a study runs on lives, and which nodes it has."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rgr_dist.faults import RunBroken

LOOK_EVERY = 1.0
"""Seconds between looks."""
LEAVE_WITHIN = 3.0
"""Seconds that the study has to end by itself once Ray died. Calls of Ray that wait for its control
store end this process without a word after 60."""
SILENT_FOR = {"raylet": 3.0, "gcs_server": 15.0}
"""Seconds without an answer after which a process of a cluster counts as dead. A raylet on this
machine that refuses is dead; once the cluster knows that, it ends this process without a word."""
ANSWER_WITHIN = 5.0
"""Seconds that each look waits."""
DIED = "Ray died"
OWN_PROCESSES = {"raylet": "its raylet", "gcs_server": "its control store (GCS)"}
CLUSTERS_PROCESSES = {
    "raylet": "the raylet of this machine",
    "gcs_server": "the control store (GCS) of the cluster",
}
"""Processes of Ray without which nothing goes on, and what they are."""


class RayDied(RunBroken):
    """Ray died; the message says which part of it."""


@dataclass(frozen=True)
class Node:
    """A machine of a cluster.

    Attributes:
        name: its address.
        cpus: how many it has.
    """

    name: str
    cpus: int

    def __str__(self) -> str:
        return f"{self.name}, {self.cpus} CPU{'' if self.cpus == 1 else 's'}"


class RayHealth:
    """Looks after the Ray of this process; a context manager.

    A thread looks: at the processes of a Ray of our own; else at the control store of the cluster
    and the raylet of this machine, whose answers may be late.

    Args:
        on_stuck: called in that thread if the study has not ended some seconds after Ray died.

    Attributes:
        nodes: the living nodes of a cluster, by their id; empty for a Ray of our own.
    """

    def __init__(self, on_stuck: Callable[[RayDied], None] | None = None) -> None:
        from ray._private import worker

        node: Any = worker._global_node
        self._own = {
            what: node.all_processes[kind][0].process
            for kind, what in OWN_PROCESSES.items()
            if kind in node.all_processes
        }
        self._gcs: Any = worker.global_worker.gcs_client  # type: ignore[attr-defined]
        self._raylet = (node.node_ip_address, node.node_manager_port)
        self.nodes: dict[str, Node] = {}
        self._told: dict[str, Node] = {}
        self._dead: str | None = None
        self._on_stuck = on_stuck
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> RayHealth:
        if not self._own:
            self._look()
            self._told = dict(self.nodes)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()

    def check(self) -> None:
        """Make sure that Ray lives.

        Raises:
            RayDied: it died.
        """
        for what, process in self._own.items():
            if process.poll() is not None:
                raise RayDied(f"{DIED}: {what}, process {process.pid}, {_ended(process)}")
        if self._dead is not None:
            raise RayDied(f"{DIED}: {self._dead}")

    def news(self) -> list[str]:
        """What happened to the nodes of a cluster since the last call, a line each."""
        before, now = self._told, dict(self.nodes)
        self._told = now
        left = [node for key, node in before.items() if key not in now]
        came = [node for key, node in now.items() if key not in before]
        return [
            *(f"a node is lost ({node}); what it trained is trained elsewhere" for node in left),
            *(f"a node has joined ({node})" for node in came),
        ]

    def _watch(self) -> None:
        answered = time.monotonic()
        while not self._ended.wait(LOOK_EVERY):
            silent = None if self._own else self._look()
            if silent is None:
                answered = time.monotonic()
            elif time.monotonic() - answered > SILENT_FOR[silent]:
                which = CLUSTERS_PROCESSES[silent]
                self._dead = f"{which} has given no answer for {SILENT_FOR[silent]:.0f} s"
            try:
                self.check()
            except RayDied as died:
                if not self._ended.wait(LEAVE_WITHIN) and self._on_stuck is not None:
                    self._on_stuck(died)
                return

    def _look(self) -> str | None:
        """Look at a cluster; returns what gave no answer, if anything."""
        try:
            socket.create_connection(self._raylet, timeout=ANSWER_WITHIN).close()
        except OSError:
            return "raylet"
        try:
            found = self._gcs.get_all_node_info(timeout=ANSWER_WITHIN)
        except Exception:  # of Ray's compiled code, of several kinds
            return "gcs_server"
        self.nodes = {
            key.hex(): Node(
                node.node_manager_address,
                int(node.resources_total.get("CPU", 0)),
            )
            for key, node in found.items()
            if node.state == node.ALIVE
        }
        return None


def _ended(process: Any) -> str:
    """How a process ended, in words."""
    code = process.returncode
    return f"was killed by signal {-code}" if code < 0 else f"ended with status {code}"
