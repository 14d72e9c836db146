"""Runs ``rgr`` on an input and says what was wrong with its answer, if anything.

A good answer is the result, or a refusal: exit status 2, one line of at most 500 printable
characters on standard error, nothing on standard output. Either comes within 10 s and 1 GiB, no
verb that reads writes a file, and what is read is what another reader reads (``oracles``).
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import resource
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import FrameType

from rgr_dist.cli import call
from tests.malformed.corpus import PAST
from tests.malformed.inputs import MAKERS, READING
from tests.malformed.oracles import ORACLES
from tests.small_study import RGR

WITHIN = 10
"""Seconds that an answer may take."""
MEMORY = 2**30
"""Bytes that it may take."""
LONGEST = 500
READ_ONLY = {*READING, "explain", "predict", "bounds", "geometry", "studies", "runs"}
"""Verbs that write nothing."""

Answer = tuple[int | str, str, str]
"""Exit status, or what was raised; standard output; standard error."""
Tally = dict[str, list[int]]
"""Of each kind of input: answered, refused, and wrongly answered."""


class TooLong(BaseException):
    """An answer takes too long; not an ``Exception``, so that nothing keeps it."""


def check_all(count: int, seed: int, processes: int, past: bool = True) -> tuple[Tally, list[str]]:
    """Run so many inputs, and those of the past; returns how many of each kind ended how.

    Args:
        processes: how many of them also run in a process of their own.
        past: run the inputs of the past first.
    """
    import torch  # noqa: F401  # some verbs do: an alarm in mid-import would leave half of it

    kinds = [*MAKERS] * bool(count)
    tally: Tally = {kind: [0, 0, 0] for kind in ["past", *kinds]}
    faults = []
    sampled = set(range(0, count, max(1, count // processes))) if processes else set()
    inputs = [("past", name) for name in PAST if past] + [
        (kinds[number % len(kinds)], f"{seed} {number}") for number in range(count)
    ]
    for number, (kind, name) in enumerate(inputs, -len(PAST) * past):
        found, status = check_one(kind, name, number in sampled)
        tally[kind][2 if found else 0 if status in (0, 3) else 1] += 1
        faults += [f"input {name!r} ({kind}): {fault}" for fault in found]
    return tally, faults


def check_one(kind: str, name: str, in_process: bool) -> tuple[list[str], int | str]:
    """What is wrong with the answer to one input, and its exit status."""
    rng = random.Random(name)
    with tempfile.TemporaryDirectory(prefix="malformed-") as folder:
        home = Path(folder)
        arguments = PAST[name](home) if kind == "past" else rng.choice(MAKERS[kind])(rng, home)
        before, start = _tree(home), time.monotonic()
        answer = _answer_here(arguments, folder)
        found = [*_wrong(answer, arguments, _tree(home) != before)]
        if time.monotonic() - start > WITHIN:
            found.append(f"took {time.monotonic() - start:.0f} s")
        if in_process and not any("\0" in argument for argument in arguments):
            before = _tree(home)  # what the first run wrote, as init does, is none of the second's
            found += _wrong(_answer_of_process(arguments, folder), arguments, _tree(home) != before)
        if kind == "past" and answer[0] != 2:
            found.append(f"is taken: {answer[0]}")
        if kind in ORACLES and not found:
            found += ORACLES[kind](home)
        return [f"{fault}: {arguments!r:.300}" for fault in found], answer[0]


def _wrong(answer: Answer, arguments: list[str], wrote: bool) -> Iterator[str]:
    status, out, err = answer
    verb = arguments[0]
    if "Traceback" in err or status not in ((0, 2, 3) if verb == "verify" else (0, 2)):
        yield f"ended with {status}: {err[-300:]!r}"
    elif status == 2 and out:
        yield f"printed {out[:100]!r}"
    elif status == 2 and not (
        err.endswith("\n") and err[:-1].isprintable() and len(err) <= LONGEST + 1
    ):
        yield f"is not one printable line of {LONGEST} characters: {err[:600]!r}"
    elif status != 2 and "\x1b" in out:
        yield f"could command a terminal: {out[:600]!r}"
    if wrote and (status == 2 or verb in READ_ONLY):
        yield "wrote files"


def _answer_here(arguments: list[str], folder: str) -> Answer:
    out, err = io.StringIO(), io.StringIO()
    before = signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(WITHIN)
    try:
        with (
            contextlib.chdir(folder),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            _little_memory(),
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


@contextlib.contextmanager
def _little_memory() -> Iterator[None]:
    """Let this process take ``MEMORY`` more."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * os.sysconf("SC_PAGE_SIZE") + MEMORY, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TooLong


def _answer_of_process(arguments: list[str], folder: str) -> Answer:
    """The answer of a process of its own, which takes more time to begin with.

    A small process starts it: on Linux the peak memory of a process counts that of its parent, and
    this one may have taken more than ``MEMORY`` by now.
    """
    with ProcessPoolExecutor(1, get_context("spawn")) as small:
        return small.submit(_answer_of_child, arguments, folder).result()


def _answer_of_child(arguments: list[str], folder: str) -> Answer:
    environment = {**os.environ, "TERM": "dumb"}
    try:
        done = subprocess.run(
            [*RGR, *arguments], cwd=folder, capture_output=True, timeout=3 * WITHIN, env=environment
        )
    except OSError:  # the system takes no argument of that length
        return 2, "", "\n"
    except subprocess.TimeoutExpired:
        return f"no answer within {3 * WITHIN} s in its own process", "", ""
    taken = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    if taken > MEMORY >> 10:
        return f"took {taken >> 10} MiB", "", ""
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode()


def _tree(folder: Path) -> dict[str, bytes | None]:
    found: dict[str, bytes | None] = {}
    for path in folder.rglob("*"):
        is_small = path.is_file() and path.stat().st_size < 2**24
        found[path.relative_to(folder).as_posix()] = path.read_bytes() if is_small else None
    return found
