"""A Ray of our own starts without the processes that a study leaves idle."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

IDLE = ("start_monitor", "start_log_monitor", "start_api_server")
"""What starts them, in Ray 2.60: the autoscaler's monitor, for nodes that come and go; the log
monitor, for printing what workers print; the API server, for usage statistics and the dashboard.
Each imports Ray, which takes all three two seconds of two cores."""

NO_IDLE_WORKERS = {"prestart_worker_first_driver": False}
"""Configures a Ray of our own to start no worker before one is asked for. Otherwise Ray starts one
for each CPU, which imports Ray and ends unused: a trial's worker is another process."""


@contextmanager
def without_idle_processes() -> Iterator[None]:
    """Keep Ray from starting them; it has no argument for that. Joining a cluster starts none."""
    from ray._private.node import Node

    with ExitStack() as stack:
        for name in IDLE:
            if hasattr(Node, name):
                stack.enter_context(patch.object(Node, name, lambda self, **options: None))
        yield
