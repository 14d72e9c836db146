"""How many probes a cluster can run at once, while nodes join and leave it."""

from __future__ import annotations

from collections.abc import Callable

from rgr_dist.running.cluster import slots_of


class ClusterSlots:
    """Counts a cluster's slots anew at each call, and asks for one more.

    What waits for that one makes an autoscaler add a node. Where nothing adds any, it waits for a
    worker to be free.

    Args:
        cpus: at most so many; as many as there are by default.
        gpus: share of a GPU that a slot needs.
        tell: called with how many there are.
    """

    def __init__(self, cpus: int | None, gpus: float, tell: Callable[[int], None]) -> None:
        self.cpus, self.gpus, self.tell = cpus, gpus, tell

    def __call__(self) -> int:
        """How many probes to hand out at once now."""
        there = slots_of(self.cpus, self.gpus)
        self.tell(there)
        return there if self.cpus is not None and there >= self.cpus else there + 1
