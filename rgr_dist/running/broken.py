"""What Ray raises as it breaks becomes one line, with a log that has the rest."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rgr_dist.faults import RunBroken, UserError
from rgr_dist.running.ray_health import RayDied
from rgr_dist.running.ray_output import RayOutput

OURS = ("rgr_dist", "search", "analysis")


@contextmanager
def reported_in_one_line(output: RayOutput, log_to: Path | None) -> Iterator[None]:
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
        log = output.save(error, log_to)
        details = f"details in {log}" if log else "no log could be written"
        raise RunBroken(f"{_what_broke(error)}; {details}") from error


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
    if isinstance(error, RayDied):
        return str(error)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
    # Tune gives the text of a traceback, whose last line says what was wrong.
    line = lines[-1] if lines[0].startswith("Traceback") else lines[0]
    return f"Ray failed: {type(error).__name__}: {line.rstrip('.')[:200]}"
