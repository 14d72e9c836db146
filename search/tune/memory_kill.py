"""A worker that Ray's memory monitor kills is a worker that died, to Tune too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ray.air.execution._internal.actor_manager import RayActorManager
from ray.exceptions import OutOfMemoryError, RayActorError

LOW_ON_MEMORY = "running low on memory"
"""What Ray says of a worker that it killed for its memory."""


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
