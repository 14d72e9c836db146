"""Which process a thing belongs to, so that others know when that process has gone.

A process is told apart by its machine, its number, and when it started: numbers are given anew, and
containers that share a folder have numbers of their own.
"""

from __future__ import annotations

import os
import platform
import uuid
from functools import cache
from pathlib import Path


@cache
def machine() -> str:
    """What tells this machine and container apart from others, until it is started anew."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return f"{platform.node()} {uuid.getnode()}"


def born(process: int) -> str:
    """When a process started, in clock ticks since the machine did; empty where nothing tells."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "ended" if fields[0] == "Z" else fields[19]


def is_running(process: int, since: str) -> bool:
    """Whether a process of this machine runs that started then."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is another user's
        pass
    found = born(process)
    return not (found and since) or found == since
