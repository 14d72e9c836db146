"""Whether the Ray that a study runs on lives, and which nodes it has."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any, NoReturn

from rich import get_console

from rgr_dist.faults import EXIT_BROKEN, RunBroken

LOOK_EVERY = 1.0
"""Seconds between looks."""
LEAVE_WITHIN = 5.0
"""Seconds that the study has to end by itself once Ray died."""
SILENT_FOR = {"raylet": 3.0, "gcs_server": 15.0}
"""Seconds without an answer after which a process of a cluster counts as dead. A raylet on this
machine that refuses is dead; once the cluster knows that, it ends this process without a word."""
ANSWER_WITHIN = 5.0
"""Seconds that each look waits."""
NAMES = {"raylet": "raylet", "gcs_server": "control store (GCS)"}
"""Processes of Ray without which nothing goes on."""


class RayDied(RunBroken):
    """Ray died; the message says which part of it."""

    def __init__(self, part: str) -> None:
        super().__init__(f"Ray died: its {NAMES[part]} gives no answer")


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

    A thread looks: at the processes of a local Ray; else at the control store of the cluster and
    the raylet of this machine, whose answers may be late. If Ray died and the study has not ended
    some seconds later, its main thread waits for that Ray: the process is then ended in one line,
    as Ray would end it after a minute without a word.

    Attributes:
        nodes: the living nodes of a cluster, by their id; empty for a local Ray.
    """

    def __init__(self) -> None:
        from ray._private import worker

        node: Any = worker._global_node
        self._own = {
            part: node.all_processes[part][0].process
            for part in NAMES
            if part in node.all_processes
        }
        self._gcs: Any = worker.global_worker.gcs_client  # type: ignore[attr-defined]
        self._raylet = (node.node_ip_address, node.node_manager_port)
        self.nodes: dict[str, Node] = {}
        self._reported: dict[str, Node] = {}
        self._dead: str | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> RayHealth:
        if not self._own:
            self._look()
            self._reported = dict(self.nodes)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()

    def check(self) -> None:
        """Make sure that Ray lives.

        Raises:
            RayDied: it died.
        """
        ended = (part for part, process in self._own.items() if process.poll() is not None)
        dead = next(ended, self._dead)
        if dead is not None:
            raise RayDied(dead)

    def news(self) -> list[str]:
        """What happened to the nodes of a cluster since the last call, a line each."""
        before, now = self._reported, dict(self.nodes)
        self._reported = now
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
                self._dead = silent
            try:
                self.check()
            except RayDied as died:
                if not self._ended.wait(LEAVE_WITHIN):
                    _leave(died)
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
            key.hex(): Node(node.node_manager_address, int(node.resources_total.get("CPU", 0)))
            for key, node in found.items()
            if node.state == node.ALIVE
        }
        return None


def _leave(died: RayDied) -> NoReturn:
    """End this process, whose main thread can be told nothing, from another one."""
    get_console().show_cursor()  # which a live table hides
    print(f"rgr: {died}; run the same command again to go on", file=sys.stderr, flush=True)
    os._exit(EXIT_BROKEN)
