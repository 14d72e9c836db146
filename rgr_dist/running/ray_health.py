"""Watches whether the Ray that a study runs on is alive, and which nodes it has."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from typing import NoReturn

import ray
from rich import get_console

from rgr_dist.faults import EXIT_BROKEN, RayDied

LOOK_EVERY = 1.0
"""Seconds between looks."""
LEAVE_WITHIN = 5.0
"""Seconds that a run has to end by itself once Ray has died."""


class RayHealth:
    """Looks at a Ray from outside: whether its processes listen, and which nodes it reports.

    A context manager, in which a thread looks too: once Ray's control store has died, most calls to
    Ray never return, and after a minute Ray ends the process with status 1. The thread ends it
    sooner, with a one-line message and status 4; stored rows stay stored.

    Attributes:
        nodes: the living nodes, by their id.
    """

    def __init__(self) -> None:
        context = ray.get_runtime_context()
        self.nodes = _nodes()
        host, _, port = context.gcs_address.rpartition(":")
        self._parts = {"control store (GCS)": (host, int(port))}
        for node in ray.nodes():
            if node["NodeID"] == context.get_node_id():
                self._parts["raylet"] = node["NodeManagerAddress"], node["NodeManagerPort"]
        self._looked = time.monotonic()
        self._ended = threading.Event()

    def __enter__(self) -> RayHealth:
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()

    def _watch(self) -> None:
        while not self._ended.wait(LOOK_EVERY):
            try:
                self.check()
            except RayDied as died:
                if not self._ended.wait(LEAVE_WITHIN):
                    _leave(died)
                return

    def check(self) -> None:
        """Make sure that Ray is alive: that each of its parts still listens.

        Raises:
            RayDied: one does not; the message says which.
        """
        for part, place in self._parts.items():
            try:
                socket.create_connection(place, timeout=LOOK_EVERY).close()
            except ConnectionRefusedError:
                raise RayDied(f"Ray died: its {part} gives no answer") from None
            except OSError:  # perhaps the network is slow
                continue

    def news(self) -> list[str]:
        """What happened to the nodes since the last look, a line for each.

        Raises:
            RayDied: Ray is no longer alive.
        """
        if time.monotonic() - self._looked < LOOK_EVERY:
            return []
        self.check()
        before, self.nodes, self._looked = self.nodes, _nodes(), time.monotonic()
        left = [node for key, node in before.items() if key not in self.nodes]
        came = [node for key, node in self.nodes.items() if key not in before]
        return [
            *(f"a node is lost ({node}); what it trained is trained elsewhere" for node in left),
            *(f"a node has joined ({node})" for node in came),
        ]


def _leave(died: RayDied) -> NoReturn:
    """End this process, whose main thread waits for a dead Ray."""
    get_console().show_cursor()  # a live table hides it
    print(f"rgr: {died}; run the same command again to go on", file=sys.stderr, flush=True)
    os._exit(EXIT_BROKEN)


def _nodes() -> dict[str, str]:
    """The address and the number of CPUs of each living node, by its id."""
    found = {}
    for node in ray.nodes():
        if node["Alive"]:
            cpus = int(node["Resources"].get("CPU", 0))
            name = f"{node['NodeManagerAddress']}, {cpus} CPU{'' if cpus == 1 else 's'}"
            found[node["NodeID"]] = name
    return found
