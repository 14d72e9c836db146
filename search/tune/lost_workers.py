"""What a lost worker triggers: another trains its probe, until too many were lost over it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from ray.air.execution._internal.actor_manager import RayActorManager
from ray.exceptions import OutOfMemoryError, RayActorError

from rgr_dist.search.protocol import Probe, ProbeKey

Cause = Literal["died", "out of memory", "overdue"]
"""Why a worker was lost: it died, was killed for its memory, or as it gave no answer."""

LOW_ON_MEMORY = "running low on memory"
"""What Ray says of a worker that it killed for its memory."""


class LostWorkers:
    """Counts the trials that each probe has lost, with their workers or otherwise.

    Args:
        attempts: trials that a probe may lose before it has failed.
    """

    def __init__(self, attempts: int) -> None:
        self.attempts = attempts
        self._lost: Counter[tuple[str, ProbeKey]] = Counter()
        self._causes: dict[tuple[str, ProbeKey], Cause] = {}

    def add(self, probe: Probe, is_final: bool) -> bool:
        """Count a lost trial; returns whether its probe has failed.

        Args:
            is_final: the next one would be lost too.
        """
        key = probe.cell, probe.key
        self._lost[key] += 1
        return is_final or self._lost[key] >= self.attempts

    def count(self, probe: Probe) -> int:
        """How many trials a probe has lost."""
        return self._lost[probe.cell, probe.key]

    def note(self, probe: Probe, cause: Cause) -> None:
        """Note why a probe loses a worker, where it does not just die."""
        if self.cause(probe) != "out of memory":  # what one can do something about
            self._causes[probe.cell, probe.key] = cause

    def cause(self, probe: Probe) -> Cause:
        """Why a probe lost workers: for memory, if any was, else the last cause noted."""
        return self._causes.get((probe.cell, probe.key), "died")


class KilledForMemory(RayActorError):
    """Ray's memory monitor killed the worker of a trial."""


@contextmanager
def memory_kills_end_one_trial() -> Iterator[None]:
    """Let a worker that was killed for its memory end its own trial alone.

    Tune knows two errors of an actor's task, that the actor died and that the task raised; at any
    other it ends the whole run. ``OutOfMemoryError`` is another (Ray 2.60).
    """
    known = RayActorManager._actor_task_failed

    def failed(manager: Any, tracked_actor_task: Any, exception: Exception) -> None:
        if isinstance(exception, OutOfMemoryError):
            exception = KilledForMemory(error_msg=str(exception))
        known(manager, tracked_actor_task, exception)

    RayActorManager._actor_task_failed = failed  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        RayActorManager._actor_task_failed = known  # type: ignore[method-assign]
