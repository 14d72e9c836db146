"""Whether the Ray that a study runs on lives, and which nodes it has."""

from __future__ import annotations

import socket
import time

import ray

from rgr_dist.faults import RunBroken

LOOK_EVERY = 1.0
"""Seconds between looks."""


class RayHealth:
    """Looks at a Ray from outside: whether its processes listen, and which nodes it tells of.

    Attributes:
        nodes: its living nodes, by their id.
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

    def check(self) -> None:
        """Make sure that Ray lives: it died where nothing listens any more.

        Raises:
            RunBroken: it did; the message says which part of it.
        """
        for part, place in self._parts.items():
            try:
                socket.create_connection(place, timeout=LOOK_EVERY).close()
            except ConnectionRefusedError:
                raise RunBroken(f"Ray died: its {part} gives no answer") from None
            except OSError:  # a network that is slow
                continue

    def news(self) -> list[str]:
        """What happened to its nodes since the last look, a line each.

        Raises:
            RunBroken: Ray died.
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


def _nodes() -> dict[str, str]:
    """The living nodes, their address and how many CPUs they have, by their id."""
    found = {}
    for node in ray.nodes():
        if node["Alive"]:
            cpus = int(node["Resources"].get("CPU", 0))
            name = f"{node['NodeManagerAddress']}, {cpus} CPU{'' if cpus == 1 else 's'}"
            found[node["NodeID"]] = name
    return found
