"""Tells the processes of a campaign apart from all others."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

MARK = "RGR_FAULTS"
"""Set to the campaign's folder in its environment, which every process that it starts inherits."""


def processes(home: Path) -> dict[int, str]:
    """Command lines of the living processes of a campaign, by number; its own is left out."""
    mark, found = f"{MARK}={home}".encode(), {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            is_ours = mark in (process / "environ").read_bytes().split(b"\0")
            if is_ours and int(process.name) != os.getpid():
                line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
                if line:  # an ended process that nobody has waited for has none
                    found[int(process.name)] = line
    return found


def end(home: Path) -> None:
    """Kill every process of a campaign."""
    for process in processes(home):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
