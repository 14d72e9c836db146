"""Runs ``rgr`` on an input and says what was wrong with its answer, if anything."""

from __future__ import annotations

import contextlib
import io
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from rgr_dist.cli import call
from tests.malformed.inputs import MAKERS

WITHIN = 10
"""Seconds that a refusal may take."""
LONGEST = 500
RGR = (sys.executable, "-P", "-c", "from rgr_dist.cli import main; main()")

Answer = tuple[int | str, str, str]
"""Exit status, or what was raised; standard output; standard error."""


class TooLong(BaseException):
    """An answer takes too long; not an ``Exception``, so that nothing keeps it."""


def check_all(
    count: int, seed: int, processes: int
) -> tuple[dict[str, tuple[int, int]], list[str]]:
    """Run so many inputs; returns those refused and made of each kind, and what went wrong."""
    import torch  # noqa: F401  # some verbs do: an alarm in mid-import would leave half of it

    kinds = list(MAKERS)
    tally, faults = dict.fromkeys(kinds, (0, 0)), []
    sampled = set(range(0, count, max(1, count // processes))) if processes else set()
    for number in range(count):
        kind = kinds[number % len(kinds)]
        found = check_one(kind, f"{seed} {number}", number in sampled)
        refused, made = tally[kind]
        tally[kind] = refused + (not found), made + 1
        faults += [f"input {number} ({kind}): {fault}" for fault in found]
    return tally, faults


def check_one(kind: str, seed: str, in_process: bool) -> list[str]:
    """What is wrong with the answer to one input."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="malformed-") as folder:
        arguments = rng.choice(MAKERS[kind])(rng, Path(folder))
        before = _tree(Path(folder))
        start = time.monotonic()
        found = [*_wrong(_answer_here(arguments, folder), arguments)]
        if in_process and not any("\0" in argument for argument in arguments):
            found += _wrong(_answer_of_process(arguments, folder), arguments)
        if not in_process and time.monotonic() - start > WITHIN:
            found.append(f"took {time.monotonic() - start:.0f} s: {_shown(arguments)}")
        if _tree(Path(folder)) != before:
            found.append(f"wrote files: {_shown(arguments)}")
        return found


def _wrong(answer: Answer, arguments: list[str]) -> Iterator[str]:
    status, out, err = answer
    asked = _shown(arguments)
    if status != 2:
        yield f"ended with {status}, not 2: {asked}: {err[:300]!r}"
    elif out:
        yield f"printed {out[:100]!r}: {asked}"
    elif not err.endswith("\n") or not err[:-1].isprintable() or len(err) > LONGEST + 1:
        yield f"is not one printable line of {LONGEST} characters: {asked}: {err[:600]!r}"


def _answer_here(arguments: list[str], folder: str) -> Answer:
    out, err = io.StringIO(), io.StringIO()
    before = signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(WITHIN)
    try:
        with (
            contextlib.chdir(folder),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            status: int | str = call(arguments)
    except TooLong:
        status = f"no answer within {WITHIN} s"
    except BaseException as error:
        status = f"{type(error).__name__}: {error}"[:200]
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return status, out.getvalue(), err.getvalue()


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TooLong


def _answer_of_process(arguments: list[str], folder: str) -> Answer:
    try:
        done = subprocess.run(
            [*RGR, *arguments],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=6 * WITHIN,
            env={**os.environ, "TERM": "dumb"},
            check=False,
        )
    except OSError:  # the system takes no argument of that length
        return 2, "", "\n"
    except subprocess.TimeoutExpired:
        return f"no answer within {6 * WITHIN} s in its own process", "", ""
    return done.returncode, done.stdout, done.stderr


def _tree(folder: Path) -> dict[str, bytes | None]:
    found: dict[str, bytes | None] = {}
    for path in folder.rglob("*"):
        found[path.relative_to(folder).as_posix()] = path.read_bytes() if path.is_file() else None
    return found


def _shown(arguments: list[str]) -> str:
    return repr(arguments)[:300]
