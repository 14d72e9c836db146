"""Ray breaks in many ways; each is told in one line, with a log that has the rest."""

from __future__ import annotations

import errno
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rgr_dist.faults import LAST_RESORT, RunBroken, UserError
from rgr_dist.running.leftovers import session_folder
from rgr_dist.running.ray_health import DIED, RayDied, RayHealth
from rgr_dist.running.ray_output import RayOutput

OURS = ("rgr_dist", "search", "analysis")
DIED_WITHIN = 1.0
"""Seconds in which a process that takes Ray down with it is known to have ended."""
FULL_BELOW = 2**20
"""Bytes left on a disk that is full."""


@contextmanager
def told_in_one_line(output: RayOutput, log_to: Path | None) -> Iterator[None]:
    """Let whatever Ray raises end in one line, and save the rest.

    Errors of ours, of the user's input or of the store, pass as they are.

    Args:
        log_to: folder of the log; the temporary folder by default, or where it cannot be written.

    Raises:
        RunBroken: Ray did not start, died or failed; the message names the log.
    """
    try:
        yield
    except Exception as error:
        if not (isinstance(error, RayDied) or _is_rays(error)):
            raise
        raise _told(error, output, log_to) from error


def leave_stuck(log_to: Path | None, died: RayDied) -> None:
    """End this process, if it is the command line's: its main thread waits for a Ray that died."""
    if LAST_RESORT:
        broken = _told(died, RayOutput.latest or RayOutput(), log_to)
        LAST_RESORT[0](broken)


def _kill_ray() -> None:
    """Kill the processes of a Ray of our own; ``shutdown`` would wait for those that have died."""
    node = getattr(sys.modules.get("ray._private.worker"), "_global_node", None)
    if node is not None:
        with suppress(Exception):
            node.kill_all_processes(check_alive=False, allow_graceful=False)


def _told(error: Exception, output: RayOutput, log_to: Path | None) -> RunBroken:
    """The one line of an error, whose details are saved."""
    what = _what_broke(error)
    log = output.save(error, log_to, session_folder())
    if what.startswith(DIED):
        output.is_cut_short = True
        _kill_ray()
    return RunBroken(f"{what}; {f'details in {log}' if log else 'no log could be written'}")


def _is_rays(error: Exception) -> bool:
    """Whether Ray's code raised an error, or called what did, rather than code of ours."""
    if isinstance(error, UserError):
        return False
    modules = [
        str(frame.f_globals.get("__name__", "")).partition(".")[0]
        for frame, _ in traceback.walk_tb(error.__traceback__)
    ]
    last = [module for module in modules if module in (*OURS, "ray")][-1:]
    return last == ["ray"] or type(error).__module__.partition(".")[0] == "ray"


def _what_broke(error: Exception) -> str:
    """What the user is told: a process of Ray's that died, a full disk, or what Ray said."""
    died = str(error) if isinstance(error, RayDied) else _what_died()
    if died:
        return died
    temporary = tempfile.gettempdir()
    is_full = isinstance(error, OSError) and error.errno == errno.ENOSPC
    with suppress(OSError):
        is_full = is_full or shutil.disk_usage(temporary).free < FULL_BELOW
    if is_full:
        return f"the temporary folder {temporary} is full; make room there, or set TMPDIR"
    lines = [line for line in str(error).splitlines() if line.strip()] or [""]
    # Tune gives the text of a traceback, whose last line says what was wrong.
    line = lines[-1] if lines[0].startswith("Traceback") else lines[0]
    return f"Ray failed: {type(error).__name__}: {line.strip().rstrip('.')[:200]}"


def _what_died() -> str | None:
    until = time.monotonic() + DIED_WITHIN
    with suppress(Exception):  # Ray may not have come so far as to have processes
        health = RayHealth()
        while time.monotonic() < until:
            try:
                health.check()
            except RayDied as error:
                return str(error)
            time.sleep(0.05)
    return None
